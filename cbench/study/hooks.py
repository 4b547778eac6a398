"""Define the runner's hooks: no-ops in an order study; a screen sets levels in them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from cbench.study.records import FactValue, StoredFacts, StoredRun


@dataclass(frozen=True, slots=True)
class Held:
    """The environment of one trial: additional variables, CPUs, and whether addresses are randomized. None: inherit
    from this process. `facts`: stored with the trial.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    cpus: frozenset[int] | None = None
    aslr: bool | None = None
    partition: bool = False  # the CPUs are those that an applied profile has isolated
    facts: Mapping[str, FactValue] = field(default_factory=dict)


AS_IS = Held()


class TrialHooks:
    """Hooks around trials and runs. In this class they set no levels, as in a study of orders."""

    def start(self) -> None:
        """Called first: restore settings that an earlier process left behind. Raises QuietError."""

    def resets(self, run: StoredRun) -> bool:
        """Whether the host is reset before this run. Raises ResetError if the run must be skipped."""
        return True

    def first(self, run: StoredRun) -> bool:
        """Whether the host is described in full before this run."""
        return True

    def asked(self, run: StoredRun) -> Mapping[str, str]:
        """Environment variables for the reset's command."""
        return {}

    def begin(self, run: StoredRun) -> StoredFacts:
        """Called before a run's first trial, also on a resume. Raises QuietError, which ends the study."""
        return {}

    def trial(self, test: int, run: int, position: int) -> AbstractContextManager[Held]:
        """Set a trial's levels, and restore them. Raises QuietError, which ends the study."""
        return nullcontext(AS_IS)

    def end(self) -> None:
        """Restore everything; called in any case. Raises QuietError if that is impossible."""

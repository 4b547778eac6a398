"""Define the runner's hooks, which do nothing in a study of orders and set levels in a screening experiment."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from cbench.study.records import FactValue, StoredFacts, StoredRun


@dataclass(frozen=True, slots=True)
class Held:
    """The environment of one trial: additional variables, CPUs, and whether addresses are randomized (None: inherit
    from this process). `facts`: the facts to store with the trial.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    cpus: frozenset[int] | None = None
    aslr: bool | None = None
    partition: bool = False  # whether an applied profile has isolated the CPUs
    facts: Mapping[str, FactValue] = field(default_factory=dict)


AS_IS = Held()


class TrialHooks:
    """Hooks around trials and runs. This base class, used in studies of orders, sets no levels."""

    def start(self) -> None:
        """Restore settings left behind by an earlier process; called before the setup. Raises QuietError on failure."""

    def resets(self, run: StoredRun) -> bool:
        """Whether to reset the host before this run. Raises ResetError if the run must be skipped."""
        return True

    def first(self, run: StoredRun) -> bool:
        """Whether to describe the host in full before this run."""
        return True

    def asked(self, run: StoredRun) -> Mapping[str, str]:
        """The environment variables for the command of a reset."""
        return {}

    def begin(self, run: StoredRun) -> StoredFacts:
        """Prepare a run and return facts to store; called before its first trial, and again on a resume. Raises
        QuietError, which ends the study.
        """
        return {}

    def trial(self, test: int, run: int, position: int) -> AbstractContextManager[Held]:
        """A context in which a trial's levels are set. Raises QuietError, which ends the study."""
        return nullcontext(AS_IS)

    def end(self) -> None:
        """Restore all settings; called after the runs, even after an error. Raises QuietError if this fails."""

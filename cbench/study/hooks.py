"""What a runner does around each trial beside running it: nothing in an order study, setting levels in a screen."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from cbench.study.records import StoredRun

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """How one trial runs: variables beside the study's, its CPUs, whether its addresses are random.

    None: as this process has it. `facts` are stored with the trial.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    cpus: frozenset[int] | None = None
    aslr: bool | None = None
    partition: bool = False  # the CPUs are those that an applied profile has isolated
    facts: Mapping[str, Any] = field(default_factory=dict)


class TrialHooks(Protocol):
    """Levels that are set around trials and around runs."""

    def start(self) -> None:
        """Before anything else: put back what an earlier process was killed with. Raises QuietError."""

    def resets(self, run: StoredRun) -> bool:
        """Whether the host is reset before this run. Raises ResetError where the run is to be left out."""

    def first(self, run: StoredRun) -> bool:
        """Whether the host is looked at in full before this run."""

    def asked(self, run: StoredRun) -> Mapping[str, str]:
        """Variables that the reset's command finds."""

    def begin(self, run: StoredRun) -> Facts:
        """Before a run's first trial, also where the run goes on. Raises QuietError, which ends the study."""

    def trial(self, test: int, run: int, position: int) -> AbstractContextManager[Held]:
        """Set what a trial needs, and put it back. Raises QuietError, which ends the study."""

    def end(self) -> None:
        """Put everything back; whatever has happened. Raises QuietError where that cannot be."""


class AsFound:
    """Nothing is set."""

    def start(self) -> None:
        return None

    def resets(self, run: StoredRun) -> bool:
        return True

    def first(self, run: StoredRun) -> bool:
        return True

    def asked(self, run: StoredRun) -> Mapping[str, str]:
        return {}

    def begin(self, run: StoredRun) -> Facts:
        return {}

    def trial(self, test: int, run: int, position: int) -> AbstractContextManager[Held]:
        return nullcontext(AS_IS)

    def end(self) -> None:
        return None


AS_IS = Held()

"""What a reader of results is, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

Number = int | float


@dataclass(frozen=True, slots=True)
class TestSample:
    """One test's values, a tuple a process; `clean` are those of its undisturbed trials, `cpu` None where unknown.

    `counter`: what was counted, `method`: how it was read; "" where that is not known.
    """

    name: str
    test: str
    workload: str
    unit: str
    quantum: int
    cpu: int | None
    host: str
    processes: tuple[tuple[Number, ...], ...]
    clean: tuple[tuple[Number, ...], ...]
    cut_short: int = 0
    counter: str = ""
    method: str = ""

    @property
    def trials(self) -> int:
        return sum(len(values) for values in self.processes)

    def like(self, other: TestSample) -> bool:
        """Whether both are numbers of one kind: cycles in user mode alone are no cycles of all modes."""
        return self.unit == other.unit and (self.counter == other.counter or not (self.counter and other.counter))

    @property
    def polluted(self) -> int:
        return self.trials - sum(len(values) for values in self.clean)


class ResultReader:
    """One format of results. New ones: a class in a file of its own, and an entry in registry.READERS.

    `name`: of the format, for messages.
    """

    name: str

    def matches(self, path: Path) -> bool:
        """Whether an ordinary file is in this format, seen by its beginning. Raises UsageError where it is damaged."""
        raise NotImplementedError

    def read(self, path: Path) -> tuple[TestSample, ...]:
        """The tests, at least one. Raises UsageError with the file and the place."""
        raise NotImplementedError

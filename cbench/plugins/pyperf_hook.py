"""Provide pyperf's hook `quiet` (`--hook quiet`), which stores the interruptions of each run in its metadata.

`cbench compare` reads this metadata, and does not count the values of a disturbed run as clean.
"""

from __future__ import annotations

import json
from types import TracebackType

from cbench.plugins.own_process import OwnCounts, OwnInterruptions, added

PREEMPTED, WAITED, STOLEN, FAULTS, INTERRUPTS, TEXT = (
    f"quiet_{name}" for name in ("preempted", "waited_ns", "stolen_ms", "major_faults", "interrupts", "interrupted")
)


class QuietHook:
    """The hook, which pyperf enters around each timed loop; pyperf calls `teardown` at the end of the worker."""

    def __init__(self) -> None:
        self._counts = OwnCounts()
        self._all: OwnInterruptions | None = None

    def __enter__(self) -> None:
        self._counts.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        seen = self._counts.end()
        self._all = added(self._all, seen) if self._all else seen

    def teardown(self, metadata: dict[str, str | int]) -> None:
        """Add the interruptions to a run's metadata, unless there was no timed loop."""
        self._counts.close()
        if self._all is None:
            return
        numbers = {
            PREEMPTED: self._all.preempted,
            WAITED: self._all.waited_ns,
            STOLEN: self._all.stolen_ms,
            FAULTS: self._all.major_faults,
        }
        metadata.update({name: number for name, number in numbers.items() if number is not None})
        if self._all.interrupts:
            metadata[INTERRUPTS] = json.dumps(dict(self._all.interrupts))
        metadata[TEXT] = self._all.text or "only by the usual interrupts"

"""Measure a workload over working sets and numbers of accesses, as in the thesis's figure 4-3 and table 4.1.

Source: D. Kozak, "Chasing Zero Variability in Software Performance", MIT, chapter 4.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cbench.measure import measurement
from cbench.measure.options import MeasureOptions
from cbench.model import Result, Workload
from cbench.report.text import counted
from cbench.sweep.sizes import binary
from cbench.workloads import registry
from quiet import QuietError, UsageError

ABLE = ("memory", "chase")

Show = Callable[[str, int, int], None]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One working set of `size` bytes with one number of accesses. `result`: None if the measurement failed, with the
    reason in `failed`.
    """

    size: int
    accesses: int
    result: Result | None = None
    failed: str = ""

    @property
    def name(self) -> str:
        return f"{binary(self.size)}, {self.accesses:,} accesses"


def grid(sizes: Sequence[int], accesses: Sequence[int], seed: int) -> list[tuple[int, int]]:
    """All cells as (size, accesses), in random order, so that drift during the sweep does not look like an effect of
    the size.
    """
    cells = [(size, number) for size in sizes for number in accesses]
    random.Random(seed).shuffle(cells)
    return cells


def find(name: str) -> Workload:
    """Find a workload by name. Raises UsageError if it does not exist, or if its rounds are not memory accesses."""
    workload = registry.find(name)
    if name not in ABLE:
        raise UsageError(f"--workload {name}: its rounds are not memory accesses; use {' or '.join(ABLE)}")
    return workload


def run(
    workload: Workload,
    cells: Sequence[tuple[int, int]],
    cpu: int,
    isolated: frozenset[int],
    options: MeasureOptions,
    show: Show,
    tell: Tell,
) -> list[SweepCell]:
    """Measure all cells in the given order. A cell that fails is returned with the reason.

    Raises UsageError, before measuring, for a size or a number of accesses that the workload does not accept. First
    measures one trial of the smallest cell. Raises QuietError if this trial fails, or if every cell fails.
    """
    settings = [registry.parameters(workload, {"size": size, "n": accesses}, False) for size, accesses in cells]
    first = min(range(len(cells)), key=cells.__getitem__)
    measurement.measure(  # an error here, such as a missing counter, would occur in every cell
        [workload], [settings[first]], [cpu], isolated=isolated, options=replace(options, trials=1), show=_silent
    )
    tell(f"{counted(len(cells), 'cell')} of {counted(options.trials, 'trial')}")
    begun = time.monotonic()
    measured: list[SweepCell] = []
    errors: list[QuietError] = []
    for number, (size, accesses) in enumerate(cells):
        cell = SweepCell(size, accesses)
        title = f"{cell.name}: {number + 1} of {len(cells)}"
        if number:
            left = (time.monotonic() - begun) / number * (len(cells) - number)
            title += f", about {duration(left)} left"

        def progress(_text: str, trials: int, wanted: int, before: int = number, title: str = title) -> None:
            show(title, before * wanted + trials, len(cells) * wanted)

        try:
            (result,) = measurement.measure(
                [workload], [settings[number]], [cpu], isolated=isolated, options=options, show=progress
            )
            measured.append(replace(cell, result=result))
        except QuietError as error:
            errors.append(error)
            measured.append(replace(cell, failed=str(error)))
    if len(errors) == len(cells):
        raise errors[0]
    for each in measured:
        if each.failed:
            tell(f"{each.name}: {each.failed}")
    return measured


def _silent(_text: str, _trials: int, _wanted: int) -> None:
    """Show no progress."""


def duration(seconds: float) -> str:
    """A rounded duration as text, such as "40 s" or "3 min"."""
    return f"{max(round(seconds), 1)} s" if seconds < 100 else f"{round(seconds / 60)} min"

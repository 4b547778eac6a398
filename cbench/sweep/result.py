"""Define the result of a sweep for --json, the tables and the plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cbench.machine.describe import HostFacts
from cbench.machine.tlb import Tlb, TlbLevels
from cbench.machine.topology import Cache
from cbench.measure.result import WorkloadResult, workload_result
from cbench.model import Counter
from cbench.results import extended
from cbench.sweep.measure import SweepCell
from cbench.sweep.sizes import binary
from quiet import table_html


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark in the plot and the tables at `size` bytes, the size of a cache or the reach of a TLB; `kind`: "cache" or
    "tlb".
    """

    size: int
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """A cache, its size in bytes (None if unknown), and the CPUs that share it."""

    name: str
    size: int | None
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FailedCell:
    """A working set (in bytes) and a number of accesses that could not be measured, with the reason."""

    size: int
    accesses: int
    failed: str


@dataclass(frozen=True, slots=True)
class MeasuredCell(WorkloadResult):
    """The result of `cbench run` for a cell, plus the figures of the sweep.

    Values are in the counter's unit. The floor is the lowest value that repeats or, if `floor_repeats` is false, the
    minimum. For calibrated cycles, the headline (if any) replaces the floor, and only kept trials (if any) are
    used. `range_pct`, `clean_range_pct` (None if no trial is clean), `above_floor_pct`: in % of the floor;
    `polluted_pct`: in % of the trials.
    """

    size: int
    accesses: int
    failed: None
    floor_repeats: bool
    floor_per_access: float
    median: float
    median_per_access: float
    range_pct: float
    clean_range_pct: float | None
    above_floor_pct: float
    polluted_pct: float


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The whole result of a sweep. `cells`: sorted by size and accesses; `order`: size and accesses of each
    cell, in the order of measurement.
    """

    workload: str
    cpu: int
    counter: Counter
    host: HostFacts
    trials: int
    seed: int
    order: tuple[tuple[int, int], ...]
    caches: tuple[CacheLevel, ...]
    tlb: TlbLevels
    marks: tuple[Mark, ...]
    notes: tuple[str, ...]
    cells: tuple[MeasuredCell | FailedCell, ...]

    def measured(self, accesses: int | None = None) -> list[MeasuredCell]:
        """The cells that have a result; `accesses`: only cells with this number of accesses, None for all."""
        cells = [cell for cell in self.cells if isinstance(cell, MeasuredCell)]
        return [cell for cell in cells if accesses in (None, cell.accesses)]

    def _repr_html_(self) -> str:
        head = ("working set", "accesses", "floor", "median", "range, %")
        rows = []
        for cell in self.measured():
            costs = (f"{cell.floor_per_access:,.3f}", f"{cell.median_per_access:,.3f}")
            rows.append((binary(cell.size), cell.accesses, *costs, f"{cell.range_pct:.3f}"))
        return table_html(f"{self.workload} on CPU {self.cpu}: {self.counter.unit} per access", head, rows)


def marks(caches: Sequence[Cache], tlbs: Sequence[Tlb]) -> tuple[Mark, ...]:
    """The marks at the sizes of caches and at the reach of TLBs, ascending."""
    limits: list[tuple[int, str, str]] = [(c.size, c.name, "cache") for c in caches if c.size]
    limits += [(t.reach, t.name, "tlb") for t in tlbs]
    return tuple(Mark(size, f"{name} {binary(size)}", kind) for size, name, kind in sorted(limits))


def cell_result(cell: SweepCell, virtual: bool) -> MeasuredCell | FailedCell:
    """The result of one cell. `virtual`: whether the host is a virtual machine."""
    if cell.result is None:
        return FailedCell(cell.size, cell.accesses, cell.failed)
    result = workload_result(cell.result, virtual)
    values = result.kept_values or result.trials
    floor: float = min(values) if result.floor is None else result.floor
    center = result.headline.value if result.calibration else None
    if center is not None:
        floor = center
    middle = median(values)
    clean = [t.value for t in cell.result.session.trials if not t.polluted]
    share = 100 / floor if floor else 0.0
    return extended(
        MeasuredCell,
        result,
        size=cell.size,
        accesses=cell.accesses,
        failed=None,
        floor_repeats=result.floor is not None and center is None,
        floor_per_access=floor / cell.accesses,
        median=middle,
        median_per_access=middle / cell.accesses,
        range_pct=share * (max(values) - min(values)),
        clean_range_pct=share * (max(clean) - min(clean)) if clean else None,
        above_floor_pct=share * (middle - floor),
        polluted_pct=100 * (1 - len(clean) / len(result.trials)),
    )


def sweep_result(
    workload: str,
    cpu: int,
    host: HostFacts,
    trials: int,
    seed: int,
    cells: Sequence[SweepCell],
    caches: Sequence[Cache],
    tlbs: TlbLevels,
    notes: Sequence[str],
) -> SweepResult:
    """The result of a sweep. `cells`: in the order of measurement; at least one must have a result."""
    measured = next(cell.result for cell in cells if cell.result)
    return SweepResult(
        workload=workload,
        cpu=cpu,
        counter=measured.session.counter,
        host=host,
        trials=trials,
        seed=seed,
        order=tuple((cell.size, cell.accesses) for cell in cells),
        caches=tuple(CacheLevel(c.name, c.size, tuple(sorted(c.cpus))) for c in caches),
        tlb=tlbs,
        marks=marks(caches, tlbs.levels),
        notes=tuple(notes),
        cells=tuple(cell_result(c, host.virtual) for c in sorted(cells, key=lambda c: (c.size, c.accesses))),
    )

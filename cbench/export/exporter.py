"""Define the type of an exporter, which writes results in one format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from cbench.formats import registry
from cbench.formats.reader import Number, TestSample
from cbench.formats.units import SECOND, TIMES
from cbench.store.records import StoredSeries
from quiet import UsageError

Cell = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class ExportTable:
    """The exported data as rows, which may be iterable only once. `columns`: the type of each column, by pyarrow's
    name.
    """

    columns: dict[str, str]
    rows: Iterable[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class ExportSource:
    """The content of a file to export.

    `table`: all of its trials, or only the undisturbed ones; `trials`: the number of trials in the table. `series`: the
    series of `cbench run`, None for a study's store and for other programs' files; `samples`: the samples of other
    programs' files. `what`, `extra`: the kind of content of a store without series, and the parts of this content that
    only csv and parquet can represent. Both are used in messages; "" for other data. `omitted`: the parts that no
    format can represent; None if there are none.
    """

    path: Path
    table: ExportTable
    trials: int
    series: tuple[StoredSeries, ...] | None = None
    what: str = ""
    extra: str = ""
    samples: tuple[TestSample, ...] | None = None
    omitted: str | None = None

    def tests(self, clean_only: bool) -> tuple[TestSample, ...]:
        """The tests with their values, one tuple per process. Raises UsageError for a study's store, and if there are
        no values.
        """
        if self.what:
            raise UsageError(
                f"{self.path}: the store of {self.what}, whose {self.extra} this format cannot represent; "
                "use --format csv or parquet"
            )
        samples = registry.read(self.path) if self.samples is None else self.samples
        if clean_only:
            samples = tuple(kept for each in samples if (kept := each.undisturbed()).processes)
        if not samples:
            raise UsageError(f"{self.path}: no undisturbed trial to export: omit --clean-only")
        return samples


def headlines(sample: TestSample) -> list[Number]:
    """One value per process, the median of its trials: trials of one process are not independent."""
    return [median(values) for values in sample.processes]


def seconds(sample: TestSample, values: Iterable[Number]) -> list[Number] | None:
    """The values of a test in seconds, unconverted if they are already seconds; None unless the unit is a time."""
    factor = TIMES.get(sample.unit)
    return None if factor is None else [each if factor == SECOND else each * factor / SECOND for each in values]


class Exporter:
    """An output format.

    To add a format, write a class in a separate file and add it to export.EXPORTERS. `name`: the value of --format;
    `binary`: the output cannot be written to a terminal, so --output is required. `samples`: the format stores samples,
    so files that contain only summaries are rejected.
    """

    name: str
    binary = False
    samples = False

    def write(self, source: ExportSource, clean_only: bool) -> str | bytes:
        """The content of the exported file. Raises UsageError for results that this format cannot hold."""
        raise NotImplementedError

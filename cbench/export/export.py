"""Write results in a format that other programs read."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from cbench.export.bencher import BencherExporter
from cbench.export.benchfmt import BenchfmtExporter
from cbench.export.exporter import Exporter, ExportSource
from cbench.export.github_action import BIGGER, SMALLER, GithubActionExporter
from cbench.export.hyperfine import HyperfineExporter
from cbench.export.markdown import MarkdownExporter
from cbench.export.otava import OtavaExporter
from cbench.export.pyperf import PyperfExporter
from cbench.export.sources import source_of
from cbench.results import LEFT_OUT
from cbench.store.database import reading
from cbench.store.kind import check_not_lost
from quiet import UsageError, check_savable, emit, save


class CsvExporter(Exporter):
    """Writes CSV (RFC 4180, but with line feeds): true and false as 1 and 0, numbers in full, missing values as empty
    fields.
    """

    name = "csv"
    samples = True

    def write(self, source: ExportSource, clean_only: bool) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(source.table.columns)
        writer.writerows([int(cell) if isinstance(cell, bool) else cell for cell in row] for row in source.table.rows)
        return text.getvalue()


class ParquetExporter(Exporter):
    """Writes typed columns with pyarrow, an optional dependency; counter values are unsigned 64-bit integers."""

    name = "parquet"
    binary = True
    samples = True

    def write(self, source: ExportSource, clean_only: bool) -> bytes:
        try:
            arrow: Any = import_module("pyarrow")
            parquet = import_module("pyarrow.parquet")
        except ImportError:
            raise UsageError(
                "--format parquet needs pyarrow: pip install 'quiet-cbench[parquet]', or use --format csv"
            ) from None
        types = source.table.columns
        columns = list(zip(*source.table.rows, strict=True)) or [()] * len(types)
        arrays = [
            arrow.array(cells, getattr(arrow, kind)()) for cells, kind in zip(columns, types.values(), strict=True)
        ]
        file = io.BytesIO()
        parquet.write_table(arrow.table(arrays, names=list(types)), file)
        return file.getvalue()


EXPORTERS: tuple[Exporter, ...] = (
    CsvExporter(),
    ParquetExporter(),
    PyperfExporter(),
    HyperfineExporter(),
    BenchfmtExporter(),
    GithubActionExporter(SMALLER),
    GithubActionExporter(BIGGER),
    BencherExporter(),
    OtavaExporter(),
    MarkdownExporter(),
)

NEEDS_SAMPLES = "--format %s requires samples; use markdown, benchfmt, bencher, otava or github-action-benchmark"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of `cbench export`. `output`: None for stdout. Raises UsageError for invalid options."""

    data: str
    format: str
    output: str | None = None
    clean_only: bool = False

    def __post_init__(self) -> None:
        output, formats = self.output, {each.name: each for each in EXPORTERS}
        if self.format not in formats:
            raise UsageError(f"--format {self.format}: use {', '.join(formats)}")
        if output is None:
            if formats[self.format].binary:
                raise UsageError(f"--format {self.format} needs --output FILE")
            return
        check_savable(output, "--output")
        check_not_lost(output, "--output", self.data)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The facts about an export. `output`: None for stdout. `series`: None unless the data are from `cbench run`.
    `omitted`: the parts of the data that the format cannot represent; None if there are none.
    """

    format: str
    output: str | None
    series: int | None = field(metadata={LEFT_OUT: None})
    trials: int
    omitted: str | None = field(default=None, metadata={LEFT_OUT: None})


def export(options: ExportOptions) -> ExportResult:
    """Export data to the file `output`, or to stdout if `output` is None. Raises UsageError if the data cannot be
    exported.
    """
    exporter = next(each for each in EXPORTERS if each.name == options.format)
    with reading(options.data):
        source = source_of(options.data, options.clean_only)
        if source.what:
            if options.clean_only:
                raise UsageError(
                    f"--clean-only: {source.what}'s trials are not marked clean or polluted; omit the option"
                )
            if not source.trials:
                raise UsageError(f"{source.path}: contains no trials")
        if exporter.samples and (summary := next((each for each in source.samples or () if each.summary), None)):
            raise UsageError(f"{source.path}: {summary.name}: {summary.summary}; {NEEDS_SAMPLES % exporter.name}")
        content = exporter.write(source, options.clean_only)
    if options.output is not None:
        save(options.output, content, "--output")
    else:
        emit(content if isinstance(content, str) else content.decode())
    series = None if source.series is None else len(source.series)
    return ExportResult(options.format, options.output, series, source.trials, source.omitted)

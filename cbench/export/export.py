"""Write a store in the formats of other programs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cbench.export.csv import CsvExporter
from cbench.export.exporter import Exporter
from cbench.export.parquet import ParquetExporter
from cbench.export.pyperf import PyperfExporter
from cbench.export.sources import source_of
from cbench.results import LEFT_OUT
from cbench.store.kind import is_store
from quiet import QuietError, UsageError, check_savable, emit

EXPORTERS: tuple[Exporter, ...] = (CsvExporter(), ParquetExporter(), PyperfExporter())


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of `cbench export`, valid on their own. `output`: None for stdout. Raises UsageError."""

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
                raise UsageError(f"--format {self.format}: say where to with --output FILE")
            return
        check_savable(output, "--output")
        if os.path.exists(output) and os.path.exists(self.data) and os.path.samefile(output, self.data):
            raise UsageError(f"--output {output}: is the store itself")
        if os.path.isfile(output) and is_store(Path(output)):
            raise UsageError(
                f"--output {output}: is a store (an SQLite file), which would be lost; choose another name"
            )


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What was written. `series`: None for a study's store."""

    format: str
    output: str | None
    series: int | None = field(metadata={LEFT_OUT: None})
    trials: int


def export(options: ExportOptions) -> ExportResult:
    """Write the file, or stdout without `output`. UsageError for what cannot be exported."""
    exporter = next(each for each in EXPORTERS if each.name == options.format)
    source = source_of(options.data, options.clean_only)
    exporter.check(source)
    if source.series is None:
        if options.clean_only:
            raise UsageError(f"--clean-only: {source.what}'s trials are not told apart so; leave it away")
        if not source.trials:
            raise UsageError(f"{source.path}: no trials in it")
    content = exporter.write(source, options.clean_only)
    if options.output is not None:
        _save(Path(options.output), content)
    else:
        emit(content if isinstance(content, str) else content.decode())
        sys.stdout.flush()
    return ExportResult(
        options.format, options.output, None if source.series is None else len(source.series), source.trials
    )


def _save(path: Path, content: str | bytes) -> None:
    """Whole or not at all; a pipe or a terminal gets it as it is."""
    data = content.encode() if isinstance(content, str) else content
    ordinary = not path.exists() or path.is_file()
    target = path.with_name(f"{path.name}.{os.getpid()}.new") if ordinary else path
    try:
        target.write_bytes(data)
        if ordinary:
            target.replace(path)
    except OSError as error:
        raise QuietError(f"--output {path}: {error.strerror}") from None
    finally:
        if ordinary:
            target.unlink(missing_ok=True)

"""Register the formats that cbench reads, and read files or directories of them."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from cbench.formats import csv_rows
from cbench.formats.asv import AsvReader
from cbench.formats.benchfmt import BenchfmtReader
from cbench.formats.catch2 import Catch2Reader
from cbench.formats.content import Content
from cbench.formats.criterion import CriterionReader
from cbench.formats.google_benchmark import GoogleBenchmarkReader
from cbench.formats.hyperfine import HyperfineReader
from cbench.formats.jmh import JmhReader
from cbench.formats.json_value import DamagedError
from cbench.formats.ordersage import OrderSageReader
from cbench.formats.pyperf import PyperfReader
from cbench.formats.pytest_benchmark import PytestBenchmarkReader
from cbench.formats.reader import ResultReader, TestSample, pooled
from cbench.formats.store import StoreReader
from cbench.formats.table import VALUE, TableReader
from cbench.store.kind import check_ordinary
from cbench.tables.separators import other_separator
from quiet import UsageError

READERS: tuple[ResultReader, ...] = (
    StoreReader(),
    CriterionReader(),
    GoogleBenchmarkReader(),
    HyperfineReader(),
    PytestBenchmarkReader(),
    PyperfReader(),
    AsvReader(),
    JmhReader(),
    Catch2Reader(),
    BenchfmtReader(),
    OrderSageReader(),
    TableReader(),
)


def read(path: Path) -> tuple[TestSample, ...]:
    """The tests in a file, or in all files of a directory, whose processes are combined.

    Raises UsageError if the format is unknown, a file is damaged, a directory contains several formats, or all tests
    failed.
    """
    return tuple(each for each in read_with_failed(path) if each.processes)


def read_with_failed(path: Path) -> tuple[TestSample, ...]:
    """The tests as in read(), plus the tests that failed in every process and have no values."""
    samples = _read_all(path)
    if not any(each.processes for each in samples):
        raise UsageError(f"{path}: every benchmark failed: {samples[0].name[:60]}: {samples[0].failed[0]}")
    return samples


def _read_all(path: Path) -> tuple[TestSample, ...]:
    content = _content(path)
    reader = _reader(content)
    if reader is not None:
        return _read(reader, content)
    if not path.is_dir():
        if other := other_separator(csv_rows.columns(content), VALUE):
            raise UsageError(f"{path}: {other}")
        raise UsageError(f"{path}: unknown format; cbench reads {', '.join(each.name for each in READERS)}")
    parts: list[tuple[TestSample, ...]] = []
    first: tuple[Path, ResultReader] | None = None
    for file in _files(path):
        content = _content(file)
        reader = _reader(content)
        if reader is None:
            raise UsageError(f"{file}: unknown format; the directory must contain only results")
        first = first or (file, reader)
        if reader is not first[1]:
            mixed = f"{first[0].name} is {first[1].name}, {file.name} {reader.name}"
            raise UsageError(
                f"{path}: files of several formats: {mixed}; put the files of each format into a separate directory"
            )
        parts.append(_read(reader, content))
    return pooled(chain.from_iterable(parts))


def recognize(path: Path) -> ResultReader | None:
    """The reader of a file or a directory; None if no format matches. Raises UsageError if the path cannot be
    opened.
    """
    return _reader(_content(path))


def refuse_without(path: Path, what: str, remedy: str) -> None:
    """Raises UsageError, with `remedy`, if the file's format has no `what` ("orders" or "treatments")."""
    reader = recognize(path)
    if reader is not None and not getattr(reader, f"lists_{what}"):
        raise UsageError(f"{path}: {reader.name} has no {what}; {remedy}")


def _files(folder: Path) -> list[Path]:
    try:
        files = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from None
    if not files:
        raise UsageError(f"{folder}: the directory is empty")
    return files


def _content(path: Path) -> Content:
    check_ordinary(path)
    return Content(path)


def _reader(content: Content) -> ResultReader | None:
    return next((each for each in READERS if each.matches(content)), None)


def _read(reader: ResultReader, content: Content) -> tuple[TestSample, ...]:
    path = content.path
    try:
        samples = pooled(reader.read(content))
    except DamagedError as error:
        raise UsageError(f"{path}: {reader.name}: {error}") from None
    if not samples:
        raise UsageError(f"{path}: {reader.name}: contains no results")
    return samples

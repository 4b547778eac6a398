"""What an exporter is: one format that a store can be written in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cbench.store.records import StoredSeries

Cell = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A store as rows, which can be read once. `columns`: their types, as pyarrow names them."""

    columns: dict[str, str]
    rows: Iterable[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class ExportSource:
    """What is in a store. `table`: all of it, or its undisturbed trials; `trials`: how many these are.

    `series`: of `cbench run`, None for a study's store. `what`, `extra`: words for a store without series: what it is
    the store of, and what it has that a file of series cannot hold.
    """

    path: Path
    table: ExportTable
    trials: int
    series: tuple[StoredSeries, ...] | None = None
    what: str = ""
    extra: str = ""


class Exporter:
    """One format. New ones: a class in a file of its own, and an entry in export.EXPORTERS.

    `name`: of --format; `binary`: it cannot go to a terminal, and needs --output.
    """

    name: str
    binary = False

    def write(self, source: ExportSource, clean_only: bool) -> str | bytes:
        """The content of the file. Raises UsageError, also for a store that this format cannot hold."""
        raise NotImplementedError

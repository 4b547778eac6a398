"""`cbench export`: a store in the formats of others."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cbench.store.kind import is_store
from cbench.store.records import StoredSeries
from cbench.store.store import Store
from cbench.study.store import is_study
from quiet.console import check_savable, emit
from quiet.errors import QuietError, UsageError


def _csv(series: Sequence[StoredSeries], clean_only: bool) -> str:
    from cbench.export.rows import as_csv

    return as_csv(series, clean_only)


def _parquet(series: Sequence[StoredSeries], clean_only: bool) -> bytes:
    from cbench.export.parquet import as_parquet

    return as_parquet(series, clean_only)


def _pyperf(series: Sequence[StoredSeries], clean_only: bool) -> str:
    from cbench.export.pyperf import as_pyperf

    return as_pyperf(series, clean_only)


FORMATS: dict[str, Callable[[Sequence[StoredSeries], bool], str | bytes]] = {
    "csv": _csv,
    "parquet": _parquet,
    "pyperf": _pyperf,
}


def export(data: str, kind: str, output: str | None, clean_only: bool = False) -> dict[str, object]:
    """Write the file, or stdout without `output`; what was written. UsageError for what cannot be exported."""
    if kind not in FORMATS:
        raise UsageError(f"--format {kind}: use {', '.join(FORMATS)}")
    if output is not None:
        check_savable(output, "--output")
        if os.path.exists(output) and os.path.exists(data) and os.path.samefile(output, data):
            raise UsageError(f"--output {output}: is the store itself")
        if os.path.isfile(output) and is_store(Path(output)):
            raise UsageError(
                f"--output {output}: is a store (an SQLite file), which would be lost; choose another name"
            )
    if kind == "parquet" and output is None:
        raise UsageError("--format parquet: say where to with --output FILE")
    content, counts = _contents(data, kind, clean_only)
    if output is not None:
        _save(Path(output), content)
    else:
        emit(content if isinstance(content, str) else content.decode())
        sys.stdout.flush()
    return {"format": kind, "output": output, **counts}


def _contents(data: str, kind: str, clean_only: bool) -> tuple[str | bytes, dict[str, int]]:
    """The content in a format, and how much of what is in it."""
    with Store.open(data) as store:
        series = store.series()
    if any(each.trials for each in series):
        kept = sum(not (clean_only and trial.polluted) for each in series for trial in each.trials)
        return FORMATS[kind](series, clean_only), {"series": len(series), "trials": kept}
    if not is_study(Path(data)):
        raise UsageError(f"{data}: no trials in it")
    from cbench.screen.data.load_store import is_screen

    if is_screen(Path(data)):
        from cbench.export import screen

        content, trials = screen.contents(Path(data), kind, clean_only)
        return content, {"trials": trials}
    from cbench.export.study import contents

    content, trials = contents(Path(data), kind, clean_only)
    return content, {"trials": trials}


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

"""Provide the common parts of plots: the import of matplotlib, which is optional, and atomic writing of files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from quiet import UsageError, check_savable, save

FORMATS = (".svg", ".png")


def check(path: str, option: str = "-o") -> None:
    """Check before measuring that a plot can be written to `path`. Raises UsageError if not."""
    if Path(path).suffix.lower() not in FORMATS:
        raise UsageError(f"{option} {path}: a plot must be an .svg or .png file")
    check_savable(path, option)
    pyplot()


def pyplot(missing: str = "plots need matplotlib: pip install 'quiet-cbench[plots]', or omit -o") -> Any:
    """Import matplotlib. Raises UsageError with the message `missing` if it is not installed."""
    os.environ.setdefault("MPLBACKEND", "agg")  # no window, regardless of the user's settings
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise UsageError(missing) from None
    return plt


@contextlib.contextmanager
def figure(path: str, rows: int, option: str = "-o") -> Iterator[Any]:
    """A context with the axes of a figure that has `rows` panels, one below the other; the figure is saved at the end.
    Text in an SVG stays text. Raises UsageError if matplotlib is not installed, QuietError if the file cannot be
    written.
    """
    plt = pyplot()
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cbench", "font.size": 9}):
        made, axes = plt.subplots(rows, 1, sharex=True, figsize=(9, 3.6 * rows), layout="constrained")
        try:
            yield axes
            kind, file = Path(path).suffix.lower()[1:], BytesIO()
            made.savefig(file, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
            save(path, file.getvalue(), option)
        finally:
            plt.close(made)

"""The intended differences: commands whose interface changes on purpose, each with the reason."""

from __future__ import annotations

# The beginning of a label as `--list` prints it ("group: command line") and why that command may differ.
INTENDED: dict[str, str] = {}


def reason(label: str) -> str | None:
    """Why a command may differ; None when it may not."""
    return next((why for start, why in INTENDED.items() if label.startswith(start)), None)

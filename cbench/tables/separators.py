"""Recognize a table whose columns are not separated by commas, without numpy or pyarrow."""

from __future__ import annotations

from collections.abc import Sequence

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def other_separator(names: Sequence[str], column: str = "") -> str:
    """The error in a header that is a single name because another sign than a comma separates its columns; "" if there
    is none. `column`: a name that must be among these columns.
    """
    for sign, said in SEPARATORS.items():
        parts = [each.strip(' "') for each in names[0].split(sign)] if len(names) == 1 else []
        if len(parts) > 1 and (not column or column in parts):
            return f"separated by {said}; export it with commas as separators and points as decimal signs"
    return ""

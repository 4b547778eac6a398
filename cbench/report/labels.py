"""Shorten names that are shown next to each other: drop the parts that they share, and keep the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from cbench.report.svg import LONGEST_NAME, shortened

_PARTS = re.compile(r"[^\s/:=,]*[\s/:=,]*")


def labels(names: Sequence[str], most: int = LONGEST_NAME) -> list[str]:
    """A label for each name; distinct names get distinct labels as far as `most` characters allow. If all names fit,
    they are unchanged.
    """
    if len(names) < 2 or max(map(len, names)) <= most:
        return [shortened(name, most) for name in names]
    parts = [[each for each in _PARTS.findall(name) if each] for name in names]
    begin = _common(parts)
    end = _common([each[begin:][::-1] for each in parts])
    cut = ["".join(each[begin : len(each) - end]).strip(" /:=,") for each in parts]
    return [shortened(short or name, most) for short, name in zip(cut, names, strict=True)]


def _common(rows: Sequence[Sequence[str]]) -> int:
    """The number of leading items that all rows share."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*rows, strict=False)))

"""Helpers shared by the tests of `cbench compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cbench.compare.result import compare
from cbench.export.export import ExportOptions, export
from cbench.results import to_json
from quiet.errors import QuietError


def fails(a: object, b: object, message: str, **changes: Any) -> None:
    with pytest.raises(QuietError) as caught:
        compare(str(a), str(b), **changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def answer(a: object, b: object, **changes: Any) -> Any:
    """As JSON."""
    return to_json(compare(str(a), str(b), **changes))


def rows(a: object, b: object, **changes: Any) -> list[dict[str, Any]]:
    found: Any = answer(a, b, **changes)["comparisons"]
    return list(found)


def one(a: object, b: object, **changes: Any) -> dict[str, Any]:
    (row,) = rows(a, b, **changes)
    return row


def remarks(row: dict[str, Any]) -> list[str]:
    """Its notes, without the one that A was measured before B, as all files of these tests were."""
    return [
        each for each in row["notes"] if not each.startswith(("A was measured before B", "B was measured before A"))
    ]


def exported(path: Path) -> Path:
    export(ExportOptions(str(path), "pyperf", str(path.with_suffix(".json"))))
    return path.with_suffix(".json")

"""Results as JSON text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from cbench import results
from cbench.results import KEY, LEFT_OUT, json_text, to_json


@dataclass(frozen=True, slots=True)
class Inner:
    low: float | None
    name: str = 'a "quoted" name, \N{GREEK SMALL LETTER ALPHA}'


@dataclass(frozen=True, slots=True)
class Outer:
    tests: dict[str, Inner]
    kind: str = field(default="x", metadata={KEY: "class"})
    few: dict[str, int] = field(default_factory=dict)
    host: str | None = field(default=None, metadata={LEFT_OUT: None})
    unit: str | None = field(default="ns", metadata={LEFT_OUT: None})


@pytest.mark.parametrize("entries", [0, 3, 40])
def test_many_entries_are_shown_like_few(monkeypatch: pytest.MonkeyPatch, entries: int) -> None:
    monkeypatch.setattr(results, "MANY_ENTRIES", 10)
    many = Outer({f'test "{number}"': Inner(number / 7 if number % 3 else None) for number in range(entries)})
    assert json_text(many) == json.dumps(to_json(many))


def test_objects_that_are_not_dataclasses_are_printed_too() -> None:
    assert json_text({"a": [1, 2.5, None, True]}) == '{"a": [1, 2.5, null, true]}'

"""Wrap values of a JSON document with their paths, for errors such as `benchmarks[3].real_time: missing`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from math import inf

Number = int | float
MOST = 1 << 64
"""Integers from this one on are rejected, because other programs' integers fit in 64 bits."""


class DamagedError(ValueError):
    """A file violates its format. `place`: the location of the error, "" for the whole file."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}" if place else why)


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A JSON value; `place`: its path in the document. Every method except has() raises DamagedError if the value has
    another type.
    """

    value: object
    place: str = ""

    def __getitem__(self, key: str) -> JsonValue:
        """The value of an object's member `key`. Raises DamagedError if it is missing."""
        found = self.get(key)
        if found is None:
            raise DamagedError(self._at(key), "missing")
        return found

    def get(self, key: str) -> JsonValue | None:
        """The value of an object's member `key`; None if it is missing or null."""
        if not isinstance(self.value, dict):
            raise self._no("an object")
        value = self.value.get(key)
        return None if value is None else JsonValue(value, self._at(key))

    def has(self, *keys: str) -> bool:
        """Whether this is an object with all of these members."""
        return isinstance(self.value, dict) and all(key in self.value for key in keys)

    def members(self) -> Iterator[tuple[str, JsonValue]]:
        """The names and values of an object."""
        if not isinstance(self.value, dict):
            raise self._no("an object")
        for key, value in self.value.items():
            yield key, JsonValue(value, self._at(key))

    def items(self) -> list[JsonValue]:
        """The elements of an array."""
        if not isinstance(self.value, list):
            raise self._no("an array")
        return [JsonValue(each, f"{self.place}[{at}]") for at, each in enumerate(self.value)]

    @property
    def is_list(self) -> bool:
        return isinstance(self.value, list)

    def number(self) -> Number:
        """The value as a finite number."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._no("a number")
        if isinstance(value, int) and abs(value) >= MOST:
            raise DamagedError(self.place, "an integer of more than 64 bits")
        if not math.isfinite(value):
            raise DamagedError(self.place, "not a finite number")
        return value

    def numbers(self) -> tuple[Number, ...]:
        """The value as a nonempty array of finite numbers."""
        if not isinstance(self.value, list):
            raise self._no("an array")
        if not self.value:
            raise DamagedError(self.place, "no values")
        # a JsonValue for each of a million values would be slow
        return tuple(
            each if type(each) is float and -inf < each < inf else JsonValue(each, f"{self.place}[{at}]").number()
            for at, each in enumerate(self.value)
        )

    def text(self) -> str:
        """The value as a string."""
        if not isinstance(self.value, str):
            raise self._no("a string")
        return self.value

    def moment(self) -> int:
        """The value, a date and time in ISO 8601 format, in ns since 1970."""
        try:
            return round(datetime.fromisoformat(self.text()).timestamp() * 1e9)
        except (ValueError, OverflowError, OSError):
            raise DamagedError(self.place, "not a date in ISO 8601 format") from None

    def _at(self, key: str) -> str:
        key = key if len(key) <= 60 else f"{key[:57]}..."
        return f"{self.place}.{key}" if self.place else key

    def _no(self, what: str) -> DamagedError:
        return DamagedError(self.place, f"not {what}")

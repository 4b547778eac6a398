"""Generate random numbers that are the same on every platform and Python version: one stream per seed and name.

The numbers are the bytes of SHA-256 over "seed/name/counter". Python's own generator is not used, because it guarantees
its sequence only for random(), and other code draws from its global instance. With it, recorded seeds would not
reproduce the recorded orders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Stream:
    """A stream of random numbers, determined by its seed and its name."""

    def __init__(self, seed: int, name: str) -> None:
        self._key = f"{seed}/{name}/"
        self._blocks = 0
        self._rest = b""

    def below(self, limit: int) -> int:
        """A whole number from 0 to limit - 1, each equally likely. Raises ValueError for a limit below 1."""
        if limit < 1:
            raise ValueError(f"limit = {limit}: must be at least 1")
        size = ((limit - 1).bit_length() + 7) // 8
        mask = (1 << (limit - 1).bit_length()) - 1
        while True:  # draw again if a value is too large, because a remainder would favor small numbers
            number = int.from_bytes(self._take(size), "big") & mask
            if number < limit:
                return number

    def shuffled(self, items: Sequence[T]) -> tuple[T, ...]:
        """A permutation of the items, each equally likely (R. Durstenfeld, algorithm 235, Commun. ACM 7 (1964) 420)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return tuple(order)

    def _take(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._rest += hashlib.sha256(f"{self._key}{self._blocks}".encode()).digest()
            self._blocks += 1
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

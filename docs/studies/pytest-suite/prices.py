"""Prices of a shop, with a cache that all tests in the process share, and that is never cleared."""

from __future__ import annotations

_CACHE: list[tuple[str, int]] = [("bread", 3), ("milk", 2)]


def remember(name: str, price: int) -> None:
    """Keep the price; the latest first."""
    if (name, price) not in _CACHE:
        _CACHE.insert(0, (name, price))


def price(name: str) -> int:
    """Search the whole cache."""
    return next(value for known, value in _CACHE if known == name)

"""Makes stores for the tests, without measuring anything."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cbench.model import Trial
from cbench.store import schema
from cbench.store.records import StoredSeries
from cbench.store.store import Store

TICKS = {"name": "tsc", "unit": "TSC ticks", "quantum": 25, "why": "a clock", "method": "read", "overhead": 49}
CYCLES = {**TICKS, "name": "cycles", "unit": "cycles", "quantum": 1}
HOST = {"cpu": "Some CPU", "machine": "x86_64", "kernel": "6.12", "virtual": False}


def facts(process: int = 0, **changes: Any) -> dict[str, Any]:
    return {"workload": "hash", "params": {"n": 1000}, "cpu": 1, "process": process, "counter": TICKS, **changes}


def trials(values: Sequence[int], causes: Mapping[int, str] | None = None) -> list[Trial]:
    """One trial per value; `causes` pollutes some of them."""
    found = causes or {}
    return [Trial(value, 7, (schema.cause(found[i], (), {}),) if i in found else ()) for i, value in enumerate(values)]


def stored(path: Path, processes: Sequence[Sequence[int]], **changes: Any) -> Path:
    """A store in which each process has these values."""
    host = changes.pop("host", HOST)
    with Store.create(path, host, ["cbench", "run", "hash"]) as store:
        for process, values in enumerate(processes):
            series = store.begin(facts(process, **changes))
            store.add(series, trials(values))
            settling = {"values": [max(values) + 9, max(values) + 5], "mispredictions": [], "settled": True}
            store.finish(series, {"settling": settling, "stolen_ms": 0})
    return path


def read(path: Path) -> list[StoredSeries]:
    with Store.open(path) as store:
        return store.series()


def noisy(centre: float, processes: int, each: int, seed: int, spread: float = 0.01) -> list[list[int]]:
    """Values that lie around a center, differently in each process; the seed says which."""
    draw = random.Random(seed)
    found = []
    for _ in range(processes):
        own = centre * (1 + draw.gauss(0, spread / 4))
        found.append([round(own * (1 + abs(draw.gauss(0, spread)))) for _ in range(each)])
    return found

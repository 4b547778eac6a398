"""A sweep as one plain object: what --json prints, and what the tables and the plot show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from cbench.machine.tlb import Tlb
from cbench.machine.topology import Cache
from cbench.run import result
from cbench.sweep.measure import Cell, Sweep
from cbench.sweep.sizes import binary


def marks(caches: Sequence[Cache], tlbs: Sequence[Tlb]) -> list[dict[str, object]]:
    """The working sets (bytes) at which a cache is full or a TLB reaches no further, ascending."""
    found: list[tuple[int, str, str]] = [(c.size, c.name, "cache") for c in caches if c.size]
    found += [(t.reach, t.name, "tlb") for t in tlbs]
    return [{"size": size, "name": f"{name} {binary(size)}", "kind": kind} for size, name, kind in sorted(found)]


def cell_dict(cell: Cell, virtual: bool) -> dict[str, Any]:
    """The result of `cbench run` for this cell, and in addition what the sweep is about.

    Per access, in the counter's unit: `floor_per_access` is from the lowest value that repeats, else (`floor_repeats`
    false) from the minimum. `range_pct` and `polluted_pct` are in % of that and of the trials.
    """
    head: dict[str, Any] = {"size": cell.size, "accesses": cell.accesses, "failed": cell.failed or None}
    if cell.result is None:
        return head
    found: dict[str, Any] = result.result_dict(cell.result, virtual)
    values: list[int] = found["trials"]
    repeats = found["floor"] is not None
    floor = found["floor"] if repeats else min(values)
    middle = median(values)
    clean = [t.value for t in cell.result.session.trials if not t.polluted]
    share = 100 / floor if floor else 0.0
    return {
        **found,
        **head,
        "floor_repeats": repeats,
        "floor_per_access": floor / cell.accesses,
        "median": middle,
        "median_per_access": middle / cell.accesses,
        "range_pct": share * (max(values) - min(values)),
        "clean_range_pct": share * (max(clean) - min(clean)) if clean else None,
        "above_floor_pct": share * (middle - floor),
        "polluted_pct": 100 * (1 - len(clean) / len(values)),
    }


def sweep_dict(
    sweep: Sweep,
    cells: Sequence[Cell],
    host: Mapping[str, object],
    caches: Sequence[Cache],
    tlbs: tuple[Sequence[Tlb], str],
    notes: Sequence[str],
) -> dict[str, Any]:
    """The object of `cbench sweep memory --json`; `cells` by size and accesses, `order` as they were measured."""
    virtual = bool(host["virtual"])
    measured = next(cell.result for cell in cells if cell.result)
    found, source = tlbs
    return {
        "workload": sweep.workload.name,
        "cpu": sweep.cpu,
        "counter": result.counter_dict(measured.session.counter),
        "host": dict(host),
        "trials": sweep.options.trials,
        "seed": sweep.seed,
        "order": [[cell.size, cell.accesses] for cell in cells],
        "caches": [{"name": c.name, "size": c.size, "cpus": sorted(c.cpus)} for c in caches],
        "tlb": {
            "source": source,
            "levels": [{"level": t.level, "page": t.page, "entries": t.entries, "reach": t.reach} for t in found],
        },
        "marks": marks(caches, found),
        "notes": list(notes),
        "cells": [cell_dict(c, virtual) for c in sorted(cells, key=lambda c: (c.size, c.accesses))],
    }

"""Read the responses of a table, each in chronological order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cbench.screen.data.data import Codes, ResponseSeries, Values
from cbench.tables.columns import Coded, ColumnError, Columns, coded, numbers_of


def series(
    columns: Columns,
    values: Sequence[str],
    treatment: Codes,
    iteration: Codes | None,
    batch: Codes,
    position: Codes | None,
    workload: Coded | None,
) -> tuple[ResponseSeries, ...]:
    wanted = list(dict.fromkeys(values or ("value",)))
    kinds = coded("response", columns["response"], blank=True) if "response" in columns and not values else None
    several = workload is not None and len(workload.names) > 1
    units = coded("unit", columns["unit"], blank=True) if "unit" in columns else None
    every = np.ones(treatment.size, dtype=bool)
    absent = frozenset(range(int(treatment.max(initial=-1)) + 1))
    parts = {column: numbers_of(column, columns[column]) for column in wanted}
    known = np.any([~np.isnan(each) for each in parts.values()], axis=0)
    responses = []  # a treatment without rows cannot have the response; an empty value is a failed trial
    for column, value in parts.items():
        there = _obtained(treatment, value, known)
        for work_code, work in enumerate(workload.names) if workload else [(0, "")]:
            mine = every if workload is None else workload.codes == work_code
            for code, kind in enumerate(kinds.names) if kinds else [(0, "" if column == "value" else column)]:
                rows = np.flatnonzero(there & mine if kinds is None else there & mine & (kinds.codes == code))
                if not rows.size:
                    continue
                name = ":".join(each for each in (work if several else "", kind) if each) or "value"
                unit = _unit(name, units, rows) if units else ""
                nth = _nth(treatment[rows], batch[rows]) if iteration is None else iteration[rows]
                _check_once(treatment[rows], batch[rows], nth, rows)
                place = np.arange(rows.size) if position is None else position[rows]
                untimed = iteration is None and position is None  # then the rows are in chronological order
                order = np.lexsort((place, *([] if untimed else [nth]), batch[rows]))
                ordered = rows[order]
                responses.append(
                    ResponseSeries(
                        name=name,
                        workload=work,
                        response=kind or "value",
                        unit=unit,
                        better="",
                        treatment=treatment[ordered],
                        iteration=nth[order],
                        batch=batch[ordered],
                        sequence=np.arange(rows.size, dtype=np.int32),
                        value=value[ordered],
                        unobtainable=absent - set(treatment[rows].tolist()),
                    )
                )
    names = [each.name for each in responses]
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise ColumnError("response", None, f"{twice[0]!r} comes from several columns")
    return tuple(responses)


def _unit(name: str, units: Coded, rows: NDArray[np.intp]) -> str:
    """The unit of a response's rows; some rows may lack a unit. Raises ColumnError for two different units."""
    known = rows[np.array([bool(each.strip()) for each in units.names])[units.codes[rows]]]
    if not known.size:
        return ""
    unit = units.names[int(units.codes[known[0]])]
    other = known[units.codes[known] != units.codes[known[0]]]
    if other.size:
        why = f"{units.names[int(units.codes[other[0]])]!r} contradicts the unit {unit!r} of {name}"
        raise ColumnError("unit", int(other[0]), why, int(known[0]))
    return unit


def _obtained(treatment: Codes, value: Values, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Flags for the rows of treatments that have a value of this response, or that have no value at all (all of their
    trials failed).
    """
    size = int(treatment.max(initial=-1)) + 1
    has = np.bincount(treatment, ~np.isnan(value), size) > 0
    any_has = np.bincount(treatment, known, size) > 0
    return np.asarray((has | ~any_has)[treatment])


def _check_once(treatment: Codes, batch: Codes, iteration: Codes, rows: NDArray[np.intp]) -> None:
    """Raise ColumnError if a treatment occurs twice in an iteration, unless the design repeats that treatment in every
    iteration. `rows`: row numbers in the file.
    """
    places = np.stack([batch, iteration, treatment], axis=1)
    cells, first, at, counts = np.unique(places, axis=0, return_index=True, return_inverse=True, return_counts=True)
    often = np.unique(np.stack([cells[:, 2], counts], axis=1), axis=0)
    blocks = np.unique(places[:, :2], axis=0).shape[0]
    if often.shape[0] == np.unique(treatment).size and (blocks > 1 or counts.max(initial=1) == 1):
        return
    before = rows[first[at.ravel()]]
    if (again := np.flatnonzero(before != rows)).size and counts.max(initial=1) > 1:
        why = "a treatment may appear only once per iteration, but this one already appears"
        raise ColumnError("iteration", int(rows[again[0]]), why, int(before[again[0]]))


def _nth(treatment: Codes, batch: Codes) -> Codes:
    """The number (from 0) of each trial among the trials of the same treatment and batch."""
    counts = Counter[tuple[int, int]]()
    numbers = []
    for key in zip(batch.tolist(), treatment.tolist(), strict=True):
        numbers.append(counts[key])
        counts[key] += 1
    return np.array(numbers, dtype=np.int32)

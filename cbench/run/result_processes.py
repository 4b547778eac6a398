"""The parts of a result that depend on its processes: clean trials by the rule for this host, floors, spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from cbench.measure import layout
from cbench.model import Result, Session, Trial
from cbench.stats.clean import CAUSES, WORDS, clean, rule_for
from cbench.stats.spread import by_level, spread
from cbench.stats.summary import floor


@dataclass(frozen=True, slots=True)
class Process:
    """One process's trials as they are reported, and the clean ones among them."""

    session: Session
    trials: Sequence[Trial]
    clean: Sequence[Trial]
    floor: int | None

    @property
    def lowest(self) -> int:
        return min(trial.value for trial in self.trials)


def divide(result: Result, trials: Sequence[Trial], virtual: bool) -> list[Process]:
    """The processes of a result, each judged by its own floor."""
    counter = result.session.counter
    rule = rule_for(counter.unit, virtual)
    found: list[Process] = []
    at = 0
    for session in result.sessions:
        mine = trials[at : at + len(session.trials)]
        at += len(session.trials)
        lowest = floor([trial.value for trial in floors_from(mine, rule)])
        found.append(Process(session, mine, clean(mine, counter.quantum or 1, rule), lowest))
    return found


def floors_from(trials: Sequence[Trial], rule: str) -> list[Trial]:
    """The trials that a floor is taken from: where causes are known those without one, if two of these agree."""
    valid = [trial for trial in trials if trial.valid]
    undisturbed = [trial for trial in valid if not trial.polluted]
    return undisturbed if rule == CAUSES and floor([trial.value for trial in undisturbed]) is not None else valid


def clean_dict(result: Result, processes: Sequence[Process], virtual: bool) -> dict[str, object]:
    """The clean trials of all processes; `wanted` None: no number of them was asked for."""
    rule = rule_for(result.session.counter.unit, virtual)
    values = [trial.value for process in processes for trial in process.clean]
    each = [len(process.clean) for process in processes]
    total, wanted = sum(len(process.trials) for process in processes), result.wanted_clean
    return {
        "rule": rule,
        "means": WORDS[rule],
        "count": len(values),
        "share": len(values) / total if total else 0.0,
        "low": min(values, default=None),
        "range": max(values) - min(values) if values else None,
        "each": each,
        "wanted": wanted,
        "reached": None if wanted is None else all(count >= wanted for count in each),
    }


def processes_dict(processes: Sequence[Process]) -> dict[str, object]:
    """Each process's floor and median, and how the clean trials' spread divides.

    `floor_range` is None when in one of them no value repeats; `lowest_range` is of the lowest values.
    """
    levels = [layout.levels(one.session.layout, one.session.params) for one in processes]
    lowest = [process.lowest for process in processes]
    floors = [process.floor for process in processes if process.floor is not None]
    width = max(floors) - min(floors) if len(floors) == len(processes) else None
    found = spread([[trial.value for trial in process.clean] for process in processes])
    return {
        "each": [_row(number, process, levels[number]) for number, process in enumerate(processes)],
        "floor_range": width,
        "floor_range_pct": None if width is None else 100 * width / min(floors) if min(floors) else 0.0,
        "lowest_range": max(lowest) - min(lowest),
        "spread": asdict(found) if found else None,
        "by_level": {name: by_level([one[name] for one in levels], lowest) for name in levels[0]},
    }


def _row(number: int, process: Process, levels: Mapping[str, int]) -> dict[str, object]:
    values = [trial.value for trial in process.clean]
    return {
        "process": number,
        "trials": len(process.trials),
        "floor": process.floor,
        "median": median(trial.value for trial in process.trials),
        "clean": len(values),
        "clean_range": max(values) - min(values) if values else None,
        **levels,
    }

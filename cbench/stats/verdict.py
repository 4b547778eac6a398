"""Format the verdict in two lines: the repeatability of the trials, and the trials that differ, with their causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cbench.model import FAULT, INTERRUPT, KERNEL, SWITCH, TASK, Trial
from cbench.stats.summary import Summary, by_chance

INTERRUPTED = "interrupted"
UNEXPLAINED = "unexplained"
SWITCHED = "with a context switch"
MOST_NAMES = 8


def verdict(trials: Sequence[Trial], summary: Summary, unit: str, quantum: int = 1, virtual: bool = False) -> str:
    """The verdict on trials, in two lines. The values are in `unit` ("cycles", "TSC ticks") with steps of `quantum`.
    `virtual`: whether the trials ran in a virtual machine.

    The first line states whether the values repeat, with the floor or the span. The second line states the number of
    trials that differ (without a floor: of all trials), by cause.
    """
    floor = summary.floor
    if len(trials) == 1:
        return f"one trial cannot show whether it repeats: {summary.minimum:,} {unit}\n{_why(trials, virtual)}"
    if floor is None:
        span = f"no two of {summary.count:,} trials agree; they span {summary.range:,} {unit}"
        return f"does not repeat: {span}\n{_why(trials, virtual)}"
    line = f"{_head(trials, floor, unit, quantum)}: "
    line += f"{summary.at_floor:,} of {summary.count:,} trials on the floor {floor:,}"
    if summary.near_floor > summary.at_floor:
        line += f" ({summary.near_floor:,} within one step of {quantum})"
    if by_chance([trial.value for trial in trials], floor, quantum):
        below = sum(trial.value < floor - quantum for trial in trials)
        line += f", where they agree only by chance: {below:,} lie below"
    if not summary.range:
        return f"{line}\nno trial differs, range 0 {unit}"
    differ = [trial for trial in trials if not _on(trial.value, floor, quantum)]
    if not differ:
        return f"{line}\nno trial differs by more than the counter's step"
    verb = "differs" if len(differ) == 1 else "differ"
    return f"{line}\n{len(differ):,} {verb}, {_why(differ, virtual)}"


def _on(value: int, floor: int, quantum: int) -> bool:
    """Whether a value is within one step of the counter from the floor; if the counter counts single units, the values
    must be equal.
    """
    return value == floor if quantum == 1 else abs(value - floor) <= quantum


def _head(trials: Sequence[Trial], floor: int, unit: str, quantum: int) -> str:
    one = singular(unit)
    clean = [trial.value for trial in trials if trial.valid and not trial.polluted]
    if len(clean) < 2:
        return "only one undisturbed trial" if clean else "no undisturbed trial"
    if all(value == floor for value in clean):
        return f"repeats to the {one}"
    if all(_on(value, floor, quantum) for value in clean):
        return f"repeats to one step of the counter ({quantum} {unit})"
    span = max(clean) - min(clean)
    share = f" ({100 * span / min(clean):.4f} %)" if min(clean) else ""
    return f"does not repeat to the {one}; undisturbed trials span {span:,}{share}"


def singular(unit: str) -> str:
    """The singular of a unit: "cycle" for "cycles", "tick" for "TSC ticks", "miss" for "misses", "ns" for "ns"."""
    word = unit.rsplit(maxsplit=1)[-1]
    if word.endswith(("sses", "ches")):
        return word.removesuffix("es")
    return word if word == "ns" else word.removesuffix("s")


def _why(trials: Sequence[Trial], virtual: bool) -> str:
    """The number of trials by their first known cause, such as "11 interrupted (LOC 9, IRQ 27 2), 2 unexplained"."""
    kinds = Counter(_kind(trial) for trial in trials)
    phrases: list[str] = []
    for kind, count in sorted(kinds.items(), key=lambda item: (item[0] == UNEXPLAINED, -item[1])):
        phrase = kind if len(kinds) > 1 or len(trials) == 1 else f"all {kind}"
        number = f"{count:,} " if len(kinds) > 1 else ""
        phrases.append(f"{number}{phrase}{_detail(kind, trials, virtual)}")
    return ", ".join(phrases)


def _detail(kind: str, trials: Sequence[Trial], virtual: bool) -> str:
    mine = [trial for trial in trials if _kind(trial) == kind]
    if kind == INTERRUPTED:
        return _names(name for trial in mine for name in _interrupts(trial))
    if kind == SWITCHED:
        return _names(part.name for trial in mine for part in trial.traced or () if part.kind == TASK)
    if kind == UNEXPLAINED:
        return f" ({100 * len(mine) / len(trials):.0f} %{'; in a VM: likely the host' if virtual else ''})"
    return ""


def _interrupts(trial: Trial) -> list[str]:
    if trial.traced is None:
        return [short_name(name) for name in trial.interrupts]
    counted = [cause.name for cause in trial.causes if cause.kind == INTERRUPT and cause.ns is None]
    return [part.name for part in trial.traced] + [short_name(name) for name in counted if name in trial.interrupts]


def _names(found: Iterable[str]) -> str:
    names = Counter(found).most_common()
    shown = [f"{name} {count:,}" for name, count in names[:MOST_NAMES]]
    more = [f"and {len(names) - MOST_NAMES:,} more"] if len(names) > MOST_NAMES else []
    return f" ({', '.join([*shown, *more])})" if names else ""


def _kind(trial: Trial) -> str:
    if not trial.valid:
        return "not fully counted"
    if trial.migrated:
        return "migrated"
    traced = {part.kind for part in trial.traced or ()}
    if TASK in traced or any(cause.kind == SWITCH for cause in trial.causes):
        return SWITCHED
    if trial.page_faults or FAULT in traced:
        return "with a page fault"
    if trial.interrupts or traced:
        return INTERRUPTED
    if any(cause.kind == KERNEL for cause in trial.causes):
        return "while the kernel ran"
    return "while the interrupt lines changed" if trial.causes else UNEXPLAINED


def short_name(name: str) -> str:
    """A short name of an interrupt: "LOC" for "LOC (Local timer interrupts)", "IRQ 27" for "27
    (virtio1-virtqueues)".
    """
    label = name.partition(" (")[0]
    return f"IRQ {label}" if label.isdigit() else label

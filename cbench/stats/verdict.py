"""One line in words: do the trials repeat, and if not, is it known why?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cbench.irqs import short_name
from cbench.model import Trial
from cbench.stats.summary import Summary


def verdict(
    trials: Sequence[Trial], summary: Summary, unit: str, quantum: int = 1, virtual: bool = False
) -> str:
    """The verdict on trials whose values are in `unit` ("cycles", "TSC ticks") with steps of `quantum`."""
    if summary.floor is None:
        differ = list(trials)
        head, place = "does not repeat", f"no two of {summary.count:,} trials agree"
    else:
        differ = [trial for trial in trials if trial.value != summary.floor]
        head = _head(trials, summary.floor, unit, quantum)
        place = f"{summary.at_floor:,} of {summary.count:,} trials on the floor {summary.floor:,}"
        if quantum > 1 and summary.near_floor > summary.at_floor:
            place += f" ({summary.near_floor:,} within one step of {quantum})"
            differ = [trial for trial in trials if abs(trial.value - summary.floor) > quantum]
    if not differ:
        return f"{head}: {place}"
    if summary.floor is None:
        return f"{head}: {place}, they span {summary.range:,} {unit}; {_reasons(differ, virtual)}"
    return f"{head}: {place}; {_differ(differ, virtual)}"


def _head(trials: Sequence[Trial], floor: int, unit: str, quantum: int) -> str:
    one = unit.rsplit(maxsplit=1)[-1].removesuffix("s")
    clean = [trial.value for trial in trials if not trial.polluted]
    if not clean:
        return "no undisturbed trial"
    if all(value == floor for value in clean):
        return f"repeats to the {one}"
    if all(abs(value - floor) <= quantum for value in clean):
        return f"repeats to one step of the counter ({quantum} {unit})"
    return f"does not repeat to the {one}"


def _differ(differ: Sequence[Trial], virtual: bool) -> str:
    reasons = _reasons(differ, virtual)
    verb = "differs" if len(differ) == 1 else "differ"
    every = "all " if "; " not in reasons and len(differ) > 1 else ""
    return f"{len(differ):,} {verb}, {every}{reasons if not every else reasons.partition(' ')[2]}"


def _reasons(differ: Sequence[Trial], virtual: bool) -> str:
    """Each trial under its first known cause: "11 interrupted (LOC 9, IRQ 27 2); 2 unexplained"."""
    kinds: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for trial in differ:
        kind = _kind(trial)
        kinds[kind] += 1
        if kind == "interrupted":
            lines.update({short_name(name) for name in trial.interrupts} or {"unknown line"})
    parts = [f"{count:,} {kind}" for kind, count in kinds.most_common() if kind != "unexplained"]
    named = ", ".join(f"{line} {count:,}" for line, count in lines.most_common())
    parts = [f"{part} ({named})" if part.endswith(" interrupted") else part for part in parts]
    if kinds["unexplained"]:
        share = f" ({100 * kinds['unexplained'] / len(differ):.0f} %)" if parts else ""
        host = "; in a VM: likely the host" if virtual else ""
        parts.append(f"{kinds['unexplained']:,} unexplained{share}{host.replace('; ', ', ')}")
    return "; ".join(parts)


def _kind(trial: Trial) -> str:
    if not trial.valid:
        return "not fully counted"
    if trial.migrated:
        return "migrated"
    if trial.context_switches or any(cause.startswith("context switch") for cause in trial.causes):
        return "with a context switch"
    if trial.page_faults:
        return "with a page fault"
    if trial.causes:
        return "interrupted"
    return "unexplained"

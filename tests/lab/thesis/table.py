"""The results in the rows' reports, and their table; plain values in, plain text out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from cbench.stats.summary import summarise
from tests.lab.thesis.rows import BOOTS, Boot, Row

CAUSES_SHOWN = 6
STEP_GROUPS = 16
SETTLING_SHOWN = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)
ABOUT = """\
hash, 10,000 rounds; cycles, counted where QEMU counts time in instructions. The percentiles are differences from the
mode. "thesis": what its abstract claims (0-cycle variability for CPU-bound work, less than 0.3 % for work that touches
memory; https://dspace.mit.edu/handle/1721.1/127419), "-" where the claim is not about the row. Without caches and
branch predictors nothing here is about memory."""
SHARED_CLOCK = """\
All 16 CPUs share one clock, which every instruction of any CPU advances. A trial therefore takes longer if other
CPUs work during it. Trials that take longer without an interrupt of their own are listed separately below."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row with its figures. Cycles, all of them; the percentiles are differences from the mode.

    `explained`: trials that differ from the mode and have a cause; `unexplained`: those that differ and have none,
    `their_most` by how much at most; `for_nothing`: trials with a cause that do not differ. `causes`: how many trials
    had each. `settling`: the discarded first trials.
    """

    key: str
    name: str
    trials: int
    mode: int
    p90: int
    p99: int
    p100: int
    range: int
    explained: int
    unexplained: int
    their_most: int
    for_nothing: int
    causes: Mapping[str, int]
    settling: Sequence[int]
    claim: str
    exact: bool

    @property
    def holds(self) -> bool:
        return not self.exact or self.range == 0


def line(row: Row, report: Mapping[str, Any]) -> Line:
    (result,) = report["results"]
    polluted = {each["trial"] for each in result["polluted"]}
    return _line(
        row,
        [(value, number in polluted) for number, value in enumerate(result["trials"])],
        {each["cause"]: each["trials"] for each in result["causes"]},
        result["settling"]["values"],
    )


def clean_line(row: Row, report: Mapping[str, Any]) -> Line:
    """The same trials without those that have a cause: what `--until-clean` goes by."""
    (result,) = report["results"]
    polluted = {each["trial"] for each in result["polluted"]}
    kept = [(value, False) for number, value in enumerate(result["trials"]) if number not in polluted]
    clean = _line(row, kept, {}, ())
    return replace(clean, key=f"{row.key}-clean", name=f"{row.name}: its clean trials")


def _line(row: Row, trials: Sequence[tuple[int, bool]], causes: Mapping[str, int], settling: Sequence[int]) -> Line:
    values = [value for value, _ in trials]
    found = summarise(values)
    alone = [value for value, polluted in trials if value != found.mode and not polluted]
    return Line(
        key=row.key,
        name=row.name,
        trials=len(values),
        mode=found.mode,
        p90=found.p90,
        p99=found.p99,
        p100=found.max,
        range=found.range,
        explained=sum(polluted and value != found.mode for value, polluted in trials),
        unexplained=len(alone),
        their_most=max((value - found.mode for value in alone), default=0),
        for_nothing=sum(polluted and value == found.mode for value, polluted in trials),
        causes=causes,
        settling=tuple(settling),
        claim=row.claim,
        exact=row.exact,
    )


def lines(boot: Boot, reports: Mapping[str, Mapping[str, Any]]) -> Iterator[Line]:
    for row in boot.rows:
        yield line(row, reports[row.key])
        if boot.machine.cpus == 1 and "--in-kernel" not in row.options:
            yield replace(clean_line(row, reports[row.key]), exact=True)


COLUMNS: tuple[str, ...] = ("", "trials", "mode", "90th", "99th", "100th", "range", "thesis")


def table(title: str, found: Sequence[Line]) -> str:
    rows = [COLUMNS]
    for each in found:
        differences = tuple(f"{value:+,}" if value else "0" for value in (each.p90, each.p99, each.p100))
        numbers = (f"{each.trials:,}", f"{each.mode:,}", *differences, f"{each.range:,}")
        rows.append((each.name, *numbers, each.claim))
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    text = [title]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        cells[0] = row[0].ljust(widths[0])
        cells[-1] = row[-1]
        text.append("  ".join(cells).rstrip())
    return "\n".join(text)


def explanation(each: Line, shared_clock: bool) -> str:
    """Which interrupts make the difference, and what only the clock adds that all CPUs share."""
    parts = [f"{each.explained:,} of {each.trials:,} trials differ and were interrupted"]
    if each.unexplained:
        why = "the shared clock" if shared_clock else "NOT EXPLAINED"
        parts.append(
            f"{each.unexplained:,} differ with no interrupt on that CPU ({why}), by {each.their_most:,} cycles at most"
        )
    if each.for_nothing:
        parts.append(f"{each.for_nothing:,} were interrupted and do not differ")
    text = f"{each.name}:\n    " + ";\n    ".join(parts) + "."
    most = Counter(each.causes).most_common(CAUSES_SHOWN)
    if most:
        text += "\n    " + ", ".join(f"{cause} ({count:,})" for cause, count in most)
        if len(each.causes) > CAUSES_SHOWN:
            text += f", and {len(each.causes) - CAUSES_SHOWN} more"
    return text


def settling(each: Line) -> str:
    """Figure 3-13 as a line: how the first trials, which are discarded, come down to those that follow."""
    values = each.settling
    shown = [number for number in SETTLING_SHOWN if number < len(values)] + [len(values)]
    steps = "  ".join(f"{number}: {values[number - 1] - each.mode:+,}" for number in shown)
    return f"{each.name}: {steps}"


def step(made: Mapping[str, Any]) -> str:
    """Figure 5-1: the series in groups of equal size, before and after the change of frequency."""
    at, width = made["written_after"], len(made["trials"]) // STEP_GROUPS
    text = [
        f"One change of frequency, {made['from_khz'] / 1000:g} to {made['to_khz'] / 1000:g} MHz after trial {at:,} "
        "(figure 5-1; medians of successive trials. QEMU runs as fast at either frequency):"
    ]
    for side, low, high in (("before", 0, at), ("after", at, len(made["trials"]))):
        for start in range(low, high, width):
            part = slice(start, min(start + width, high))
            value, ns = median(made["trials"][part]), median(made["trials_ns"][part])
            text.append(f"  {side:>6}, trial {start + 1:>5,}..  {value:,.0f} {made['unit']}, {ns / 1e3:,.1f} us")
    return "\n".join(text)


def as_json(each: Line) -> dict[str, Any]:
    return {**asdict(each), "holds": each.holds}


def report(groups: dict[str, list[Line]]) -> str:
    parts = ["The thesis's table 3.1 on the exact machines", ABOUT]
    for title, found in groups.items():
        shared = title != BOOTS[0].title
        parts.append(table(f"== {title}", found))
        if shared:
            parts.append(SHARED_CLOCK)
        parts.append("Causes of the difference (figures 3-6 and 3-10):")
        parts.append("\n".join(f"  {explanation(each, shared)}" for each in found))
        parts.append("How the first trials settle, which are discarded (figure 3-13; differences from the mode):")
        parts.append("\n".join(f"  {settling(each)}" for each in found if each.settling))
    return "\n\n".join(parts)


def failures(groups: dict[str, list[Line]]) -> list[str]:
    found = [each for lines in groups.values() for each in lines]
    return [f"NOT EXACT: {each.name}: range {each.range:,} cycles" for each in found if not each.holds]

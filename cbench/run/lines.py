"""Format the short report of `cbench run`: a few lines per workload, beginning with its name and its headline."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cbench.console import decimals
from cbench.measure.result import WorkloadResult
from cbench.model import SWITCH
from cbench.stats.headline import CalibrationFigures, Headline

MOST_LINES = 12
BARS = " ▁▂▃▄▅▆▇█"
COLUMNS = 48
WIDTHS = 3
MOST_CAUSES = 4
SLOWER_SHARE = 0.01
SWITCHES = re.compile(rf"^{SWITCH} \(\d+ voluntary, \d+ involuntary\)$")


def workload_lines(result: WorkloadResult) -> list[str]:
    """The report of one workload, in at most MOST_LINES lines; the first one names the workload and the CPU."""
    settings = " ".join(f"{key}={value:,}" for key, value in result.params.items())
    where = "isolated" if result.isolated else "housekeeping"
    lines = [f"{result.workload} ({settings}) on CPU {result.cpu} ({where})"]
    lines.append(f"  {headline_text(result.headline, result.calibration)}")
    if result.headline.value is not None:
        lines.append(f"  {result.headline.how}")
        lines += [f"  {line}" for line in histogram(result.kept_values, result.headline)]
    if result.calibration:
        lines += [f"  {line}" for line in _frequency(result.calibration)]
    lines += [f"  {line}" for line in _processes(result)]
    lines += [f"  {line}" for line in _causes(result)]
    verdict = [line for line in result.verdict.splitlines() if line != result.headline.how]
    lines += [f"  {line}" for line in verdict]
    return lines[:MOST_LINES]


def headline_text(headline: Headline, calibration: CalibrationFigures | None) -> str:
    """The headline with its interval and, if known, the time that it corresponds to."""
    if headline.value is None or headline.interval is None:
        return headline.how
    low, high = headline.interval
    digits = decimals(headline.value, high - low)
    text = f"{headline.value:,.{digits}f} {headline.unit}, {low:,.{digits}f} to {high:,.{digits}f}"
    if headline.value:
        text += f" ({100 * (high - low) / headline.value:.3g} %)"
    if calibration and calibration.value_ns is not None and calibration.hz:
        text += f"; {_time(calibration.value_ns)} at {calibration.hz / 1e9:.3f} GHz"
    return text


def _time(ns: float) -> str:
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.4g} {unit}"
    return f"{ns:.4g} ns"


def histogram(values: Sequence[int], headline: Headline) -> list[str]:
    """A histogram in one line, from the lowest value to the 95th percentile, but no further than WIDTHS widths from the
    interval; [] if there is no interval, or values are too few or all equal.
    """
    ordered = sorted(values)
    if headline.interval is None or len(ordered) < 2 * len(BARS) or ordered[0] == ordered[-1]:
        return []
    begin, end = headline.interval
    low, high = max(ordered[0], int(begin - WIDTHS * (end - begin))), ordered[round(0.95 * (len(ordered) - 1))]
    high = max(min(high, int(end + WIDTHS * (end - begin))), low + 1)
    counts = [0] * COLUMNS
    for value in ordered:
        if low <= value <= high:
            counts[min((value - low) * COLUMNS // (high - low + 1), COLUMNS - 1)] += 1
    most = max(*counts, 1)
    bars = "".join(BARS[-(-count * (len(BARS) - 1) // most)] for count in counts)
    beyond = len(ordered) - sum(counts)
    return [f"{low:,} |{bars}| {high:,}" + (f", {beyond:,} beyond" if beyond else "")]


def _frequency(found: CalibrationFigures) -> list[str]:
    """A line with the range of the core's frequency, if that range is wide; otherwise []."""
    if not (found.hz and found.low_hz and found.high_hz) or found.low_hz >= found.high_hz * (1 - SLOWER_SHARE):
        return []
    span = f"{found.low_hz / 1e9:.3f} to {found.high_hz / 1e9:.3f} GHz"
    return [f"the core ran at {span}, {found.below:.0%} of the trials more than 1 % below its highest frequency"]


def _processes(result: WorkloadResult) -> list[str]:
    count = len(result.processes.each)
    if count < 2:
        return []
    heads = [each.headline for each in result.processes.each]
    known = [value for value in heads if value is not None]
    if len(known) < 2:
        return [f"{len(known)} of {count} processes have a headline"]
    width = max(known) - min(known)
    share = f" ({100 * width / min(known):.3g} %)" if min(known) else ""
    unknown = f"; {count - len(known)} of {count} have none" if len(known) < count else ""
    return [f"headlines of {len(known)} processes: range {width:,.{decimals(min(known), width)}f}{share}{unknown}"]


def _causes(result: WorkloadResult) -> list[str]:
    """A line with the causes that disturbed trials, the most frequent first; [] if no trial was disturbed."""
    trials: dict[str, int] = {}
    for row in result.causes:
        if row.cause not in ("chains disagree", "core shared"):
            name = SWITCHES.sub(SWITCH, row.cause)  # one row, regardless of their number in a trial
            trials[name] = trials.get(name, 0) + row.trials
    rows = sorted(trials.items(), key=lambda row: -row[1])
    if not rows:
        return []
    shown = ", ".join(f"{name} {count:,}" for name, count in rows[:MOST_CAUSES])
    more = f", and {len(rows) - MOST_CAUSES} more" if len(rows) > MOST_CAUSES else ""
    return [f"disturbed: {shown}{more}"]

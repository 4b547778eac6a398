"""Print measured commands as text, at most twelve lines each."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence

from rich.markup import escape

from cbench.console import table_console
from cbench.external.result import CommandResult, CommandsResult, MedianEstimate
from cbench.measure.cause_counts import CauseCount
from cbench.report.text import counted

BARS = "▁▂▃▄▅▆▇█"
BINS = 40
MOST_CAUSES, MOST_LINES = 4, 4
FEWEST_UNDISTURBED = 5
STEADY = 2
"""The share of an empty program is shown if the ends of the interval of its time differ by at most this factor."""


def results(report: CommandsResult) -> None:
    """Print the lines of each command, the time of an empty program, and the command that names the causes."""
    console = table_console(120)
    for result in report.results:
        name, *lines = command_lines(result)
        console.print(escape(name), style="bold", soft_wrap=True)
        for line in lines:
            console.print(escape(f"  {line}"), soft_wrap=True)
    if report.spawn:
        fastest = min(result.headline.value for result in report.results)
        console.print(escape(spawn_line(report.spawn, fastest)), soft_wrap=True)
    disturbed = [result for result in report.results if result.polluted]
    if disturbed:
        console.print(escape(naming_line(disturbed[0].command)), soft_wrap=True)


def spawn_line(spawn: MedianEstimate, fastest: float) -> str:
    """A line with the time of an empty program and, unless the times of this program vary too much, its share of the
    time of the fastest command (`fastest`, in ns).
    """
    line = f"an empty program takes {_estimated(spawn)}"
    if spawn.interval and spawn.interval[1] > STEADY * spawn.interval[0]:
        return line
    share = spawn.value / fastest
    return f"{line}: {f'{100 * share:.2g} % of' if share < 1 else 'longer than'} the fastest command"


def naming_line(command: Sequence[str]) -> str:
    """A line with the command that names the tasks behind the counted causes."""
    words = shlex.join(command) if shutil.which(command[0]) else "CMD"
    return f"causes are counted, not traced: `quiet why -- {words}` names the tasks"


def command_lines(result: CommandResult) -> list[str]:
    """The lines for one command: its name, then the measurements and their disturbances."""
    count = len(result.trials)
    where = f"CPU{'s' if '-' in result.cpus or ',' in result.cpus else ''} {result.cpus}"
    placed = f"on {where}" if result.pinned else f"on any of {where}"
    head = result.headline
    lines = [
        result.workload,
        f"{_estimated(head)}   median and 95 % interval, {counted(count, 'trial')} {placed}",
    ]
    deviation = "" if result.standard_deviation is None else f" ± {duration(result.standard_deviation)}"
    lines.append(
        f"mean {duration(result.mean)}{deviation}, from {duration(result.min)} to {duration(result.min + result.range)}"
    )
    user, system = result.counts["user_us"].median * 1000, result.counts["system_us"].median * 1000
    beside = [f"user {duration(user)}", f"system {duration(system)}"]
    beside += [f"{name} {row.median:,.0f}" for name, row in result.counts.items() if name.startswith("cycles")]
    lines.append(", ".join(beside))
    lines.append(histogram(result.trials))
    lines.append(disturbed_line(len(result.polluted), len(result.trials), result.causes))
    if result.clean >= FEWEST_UNDISTURBED and result.polluted and result.undisturbed:
        lines.append(f"undisturbed: {_estimated(result.undisturbed)}, {result.clean:,} trials")
    lines += _interrupts(result)
    lines += _remarks(result)
    return lines


def disturbed_line(polluted: int, trials: int, causes: Sequence[CauseCount]) -> str:
    """A line with the number of disturbed trials and the causes."""
    if not polluted:
        return f"disturbed: none of {counted(trials, 'trial')}"
    shown = ", ".join(f"{row.cause} {row.trials:,}" for row in causes[:MOST_CAUSES])
    return f"disturbed: {polluted:,} of {counted(trials, 'trial')} (trials by cause: {shown})"


def _interrupts(result: CommandResult) -> list[str]:
    if result.interrupts_missing:
        return [f"interrupts: /proc/interrupts is {result.interrupts_missing}"]
    if not result.interrupts:
        return []
    shown = list(result.interrupts.items())[:MOST_LINES]
    seconds = sum(result.trials) / 1e9
    rates = ", ".join(f"{name} {count / seconds:,.0f}" for name, count in shown)
    more = len(result.interrupts) - len(shown)
    others = f" and {counted(more, 'more line')}" if more else ""
    return [f"interrupts per second on these CPUs: {rates}{others}"]


def _remarks(result: CommandResult) -> list[str]:
    lines = []
    if result.ratio:
        low, high = result.ratio.interval
        lines.append(
            f"{result.ratio.value:.4g} times the first command's time ({low:.4g} to {high:.4g} at "
            f"{100 * result.ratio.level:.4g} %)"
        )
    failed = sum(count for code, count in result.exit_codes.items() if code != "0")
    if failed:
        lines.append(f"failed: {failed:,} of {len(result.trials):,} trials, exit codes {', '.join(result.exit_codes)}")
    if result.settled is False:
        lines.append(f"not settled after {result.warmup:,} discarded trials: allow more with --warmup N")
    if result.cycles_missing:
        lines.append(f"cycles: {result.cycles_missing}")
    return lines


def histogram(values: tuple[int, ...]) -> str:
    """A histogram in one line, from the lowest value to the 98th percentile, followed by the number of higher
    values.
    """
    ordered = sorted(values)
    low, high = ordered[0], ordered[max(0, round(0.98 * len(ordered)) - 1)]
    width = (high - low) / BINS or 1.0
    counts = [0] * BINS
    for value in ordered:
        if value <= high:
            counts[min(int((value - low) / width), BINS - 1)] += 1
    most = max(counts)
    bars = "".join(BARS[(len(BARS) * count - 1) // most] if count else " " for count in counts)
    above = sum(value > high for value in ordered)
    return f"{duration(low)} |{bars}| {duration(high)}{f', {above:,} above' if above else ''}"


def _estimated(estimate: MedianEstimate) -> str:
    if estimate.interval is None:
        return f"{duration(estimate.value)} (too few values for an interval)"
    low, high = estimate.interval
    return f"{duration(estimate.value)} ({duration(low)} to {duration(high)})"


def duration(ns: float) -> str:
    """The duration with up to four significant digits: "5.123 ms"."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.4g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns:.0f} ns"

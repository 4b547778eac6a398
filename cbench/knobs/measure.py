"""Measure the response once on the isolated CPUs, by `quiet noise` or `cbench run`, in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from math import log, sqrt
from statistics import fmean, median, quantiles, stdev
from typing import Any

from cbench.knobs.options import KnobOptions
from cbench.machine.counters import ticks_name
from cbench.stats.distributions import t_quantile
from quiet import Clock, QuietError, format_cpus, moment, one_line

WINDOWS = 3
"""The noise of an application is the median of this many windows, so a burst in one of them does not count."""
FEWEST_PAIRS = 3
NOT_INTERRUPTS = ("MCP", "PMI", "TLB", "RTR", "ERR", "MIS")
"""Lines of /proc/interrupts that count errors, or interrupts that another line counts too."""


def respond(options: KnobOptions, cpus: frozenset[int]) -> float:
    """Measure the response once, in its unit. Raises QuietError if it cannot be measured."""
    try:
        if options.of.command:
            begun = moment()
            found: Any = json.loads(_output(command_line(options, cpus)))
            times = [float(each) for each in found["results"][0]["trials"]]
            if not options.is_command:  # in ticks
                times = [*map(Clock(begun, moment()).ns, times)]
            return of_times(times, options.response)
        reports: list[Any] = [json.loads(_output(command_line(options, cpus))) for _ in range(WINDOWS)]
        return median(of_noise(list(each["cpus"].values()), each["duration_s"], options.response) for each in reports)
    except (ValueError, LookupError, TypeError) as error:
        raise QuietError(f"--response {options.response}: unreadable measurement: {one_line(repr(error))}") from None


def command_line(options: KnobOptions, cpus: frozenset[int]) -> list[str]:
    """The command line of one measurement."""
    start = [sys.executable, "-P", "-m"]
    if not options.of.command:
        seconds = f"{options.duration / WINDOWS:g}"
        return [*start, "quiet", "noise", "--cpus", format_cpus(cpus), "--duration", seconds, "--no-trace", "--json"]
    trials = [] if options.trials is None else ["--trials", str(options.trials)]
    run = [*start, "cbench", "run", "--cpu", str(min(cpus)), *trials, "--json"]
    if options.is_command:
        return [*run, "--", *options.words]
    # Time, not cycles: a knob that changes the frequency changes only the time.
    return [*run, "--no-trace", "--counter", ticks_name(), *options.words]


def suspects(cpus: frozenset[int], seconds: float) -> list[str]:
    """The knobs that `quiet noise` names as remedies for the current interruptions; [] if it names none or fails."""
    command = [sys.executable, "-P", "-m", "quiet", "noise", "--cpus", format_cpus(cpus)]
    try:
        found: Any = json.loads(_output([*command, "--duration", f"{seconds / WINDOWS:g}", "--json"]))
        named = [cause["knob"] for cpu in found["cpus"].values() for cause in cpu["causes"] if cause["knob"]]
    except (QuietError, ValueError, LookupError, TypeError):
        return []
    return list(dict.fromkeys(named))


def _output(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:  # exit code 1: measured, with shortcomings
        said = done.stderr.strip().splitlines()
        raise QuietError(said[-1].partition(": ")[2] if said else f"{command[3]} exited with {done.returncode}")
    return done.stdout


def of_noise(cpus: list[Any], seconds: float, response: str) -> float:
    """The response, computed from the CPUs' objects in `quiet noise --json`: the mean of the lost time (%) or of the
    interrupts per second over the CPUs, or the longest gap on any CPU in us.
    """
    if response == "gap":
        return max(float(each["max_ns"]) for each in cpus) / 1e3
    if response == "lost":
        return fmean(float(each["lost_pct"]) for each in cpus)
    return fmean(interrupts(each["interrupts"]) / seconds for each in cpus)


def interrupts(lines: Any) -> float:
    """The number of interrupts: the sum of the counts of /proc/interrupts without the lines NOT_INTERRUPTS."""
    return float(sum(line["counted"] for name, line in lines.items() if name not in NOT_INTERRUPTS))


def of_times(times: list[float], response: str) -> float:
    """The response, computed from the times of all runs; `times` must be in the order of the runs."""
    middle = median(times)
    if response == "median":
        return middle
    if response == "spread":
        low, _, high = quantiles(times, n=4)
        return 100 * (high - low) / middle
    return floor(times)


def floor(times: list[float]) -> float:
    """The noise floor in %: half the 95 % interval of the difference between odd and even runs, which stand for A and
    A'. Raises QuietError for too few runs.
    """
    pairs = [log(one / other) for one, other in zip(times[::2], times[1::2], strict=False) if one > 0 and other > 0]
    if len(pairs) < FEWEST_PAIRS:
        raise QuietError(
            f"--response floor: {len(times)} runs are too few: raise --trials to at least {2 * FEWEST_PAIRS}"
        )
    return 100 * t_quantile(0.975, len(pairs) - 1) * stdev(pairs) / sqrt(len(pairs))

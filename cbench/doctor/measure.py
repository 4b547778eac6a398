"""Measure the same work until the time is up, each time in a new process, and observe the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cbench.machine import describe
from cbench.machine.cpus import one_cpu
from cbench.measure import measurement
from cbench.measure.options import measure_options
from cbench.model import Result, Trial
from cbench.stats.chains import unmarked
from cbench.stats.headline import headline as headline_of
from cbench.workloads import registry
from quiet import Reader, UsageError, cpu_ticks, isolated_cpus

WORKLOAD, PARAMS = "hash", {"n": 20_000}
"""A dependent chain of arithmetic without memory accesses, so that its time depends on the machine alone."""
TRIALS, QUICK_TRIALS = 1000, 200
SECONDS, QUICK_SECONDS = 60.0, 10.0
FEWEST, LEAST = 8, 4
"""The fewest processes: FEWEST if they fit into LATEST times the requested duration, but never fewer than LEAST."""
LATEST = 3

Show = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """The options for examining this machine. Raises UsageError for invalid ones."""

    cpu: str | None = None
    counter: str = "auto"
    quick: bool = False
    processes: int = 10
    seed: int = 1

    def __post_init__(self) -> None:
        if not 4 <= self.processes <= 1000:
            raise UsageError(f"--processes {self.processes}: must be from 4 to 1,000 per side")

    @property
    def seconds(self) -> float:
        return QUICK_SECONDS if self.quick else SECONDS


@dataclass(frozen=True, slots=True)
class Examined:
    """The measurements of one process.

    `headline`: None if the cycles cannot be determined; `median`: the median of all its trials; `undisturbed`: the
    median of the trials without a known interruption, None if these are fewer than a tenth. `others_busy`: the share of
    the other CPUs' time that was not idle; `sibling_busy`: the same for the other threads of the measured core; both
    are None if there are no such CPUs, or if no clock tick has passed.
    """

    result: Result
    headline: float | None
    median: float
    undisturbed: float | None
    others_busy: float | None
    sibling_busy: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Examination:
    """The measurements of all processes, in the order in which they ran. `siblings`: the other threads of the core."""

    cpu: int
    isolated: frozenset[int]
    siblings: frozenset[int]
    processes: tuple[Examined, ...]
    seconds: float

    @property
    def has_headlines(self) -> bool:
        """Whether most processes have a headline; otherwise the medians of all trials are used."""
        return 2 * sum(one.headline is not None for one in self.processes) > len(self.processes)

    def headline_of(self, one: Examined) -> float | None:
        """The headline of a process (None if it has none) or, unless most processes have a headline, the median of all
        its trials.
        """
        return one.headline if self.has_headlines else one.median


def examine(options: DoctorOptions, show: Show) -> Examination:
    """Measure processes until the time is up. Raises QuietError if they cannot be measured."""
    isolated = isolated_cpus()
    cpu = one_cpu(options.cpu, isolated)
    siblings = describe.siblings(cpu)
    how = measure_options(QUICK_TRIALS if options.quick else TRIALS, "auto", options.counter, 60.0)
    workload = registry.find(WORKLOAD)
    begin = time.monotonic()
    processes: list[Examined] = []
    longest = 0.0
    while wants_more(len(processes), time.monotonic() - begin, longest, options.seconds):
        started, before = time.monotonic(), cpu_ticks(Reader().text("/proc/stat") or "")
        left = max(0.0, options.seconds - (started - begin))
        show(f"{len(processes)} processes, {left:.0f} s left", int(started - begin), int(options.seconds))
        (result,) = measurement.measure(
            [workload], [PARAMS], [cpu], isolated=isolated, options=how, show=lambda *_: None
        )
        after, took = cpu_ticks(Reader().text("/proc/stat") or ""), time.monotonic() - started
        longest = max(longest, took)
        processes.append(
            Examined(
                result=result,
                headline=headline(result),
                median=float(median(trial.value for trial in result.trials)),
                undisturbed=undisturbed(result.trials),
                others_busy=busy(before, after, before.keys() - {"cpu", f"cpu{cpu}"}),
                sibling_busy=busy(before, after, {f"cpu{each}" for each in siblings}),
                seconds=took,
            )
        )
    return Examination(cpu, isolated, siblings, tuple(processes), time.monotonic() - begin)


def wants_more(done: int, elapsed: float, longest: float, seconds: float) -> bool:
    """Whether to measure another process. The first LEAST processes are always measured. Further processes, up to
    FEWEST, are measured until LATEST times `seconds` have passed. Beyond FEWEST, a process is measured only if one as
    long as the longest would end within `seconds`.
    """
    if done < FEWEST:
        return done < LEAST or elapsed < LATEST * seconds
    return elapsed + longest < seconds


def undisturbed(trials: Sequence[Trial]) -> float | None:
    """The median of the trials without a known interruption, including those that calibration rejects; None if these
    are fewer than a tenth.
    """
    clean = [trial.value for trial in trials if trial.valid and not unmarked(trial)]
    return float(median(clean)) if len(clean) >= len(trials) // 10 > 0 else None


def headline(result: Result) -> float | None:
    """The headline of a process, as in `cbench compare`: its calibrated cycles (None if they cannot be determined) or,
    with any other counter, the median of its trials.
    """
    if result.session.counter.calibration:
        return headline_of([result.trials], [result.trials], result.session.counter).value
    return float(median(trial.value for trial in result.trials))


def busy(before: Mapping[str, list[int]], after: Mapping[str, list[int]], names: Collection[str]) -> float | None:
    """The share of the CPUs' time in which they were not idle, from the ticks of each CPU by name (see cpu_ticks); None
    if there are no such CPUs, or if no tick has passed.
    """
    names = set(names) & before.keys() & after.keys()
    spent = [sum(after[name][field] - before[name][field] for name in names) for field in range(8)]  # the rest: guests
    return 1 - (spent[3] + spent[4]) / sum(spent) if sum(spent) > 0 else None

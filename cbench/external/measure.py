"""Measure commands: warm up each one, then run all of them in rounds, each round in a new random order."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from statistics import median

from cbench.external.disturbance import CountReader, KernelCounts, StartCounts, start_counts, trial_of
from cbench.external.options import WARMUP_SHARE, ExternalCommand, ExternalOptions
from cbench.external.process import Launcher, ProgramEnd
from cbench.external.spawn_cost import empty_starts
from cbench.machine.cpus import choose_cpus
from cbench.machine.describe import describe, to_store
from cbench.measure.runner import away_from
from cbench.model import Counter, Params, Settling, Trial
from cbench.stats import settling
from cbench.stats.random_draws import Stream
from cbench.store.records import EACH_TRIAL, NO_CPU
from cbench.store.store import Store
from cbench.study.instruments.perf_stat import Counting
from cbench.study.process.run_command import CommandError, run_checked
from quiet import QuietError, UsageError, isolated_cpus, isolated_turn

Show = Callable[[str, int, int], None]
PAGE = 4096
PREPARE_S = 24 * 3600.0
SHOWN_EACH_S = 0.2
STORED_NS = 200_000_000
"""Trials are stored in batches of at least this duration, so that short trials do not cause a disk write each."""
WALL = Counter("wall", "ns", True, "", "CLOCK_MONOTONIC before vfork and after the end", quantum=1)


@dataclass(slots=True)
class CommandSeries:
    """The trials of one command so far. `stored`: the number of trials that are already stored; `cycles_missing`: the
    reason why cycles are missing, "" if they are not.
    """

    command: ExternalCommand
    settling: Settling = field(default_factory=Settling)
    trials: list[Trial] = field(default_factory=list)
    stored: int = 0
    cycles_missing: str = ""

    @property
    def pending_ns(self) -> int:
        """The total duration of the trials that are not stored yet."""
        return sum(trial.value for trial in self.trials[self.stored :])


@dataclass(frozen=True, slots=True)
class CommandSession:
    """The runner that measures commands, and the CPUs. `empty`: times of an empty program in ns."""

    runner: CommandRunner
    counter: Counter
    cpus: frozenset[int]
    pinned: bool
    isolated: frozenset[int]
    empty: tuple[int, ...]

    def measured(self, every: Sequence[CommandSeries]) -> Measured:
        """The result of these series in this session."""
        missing = self.runner.interrupts_missing
        return Measured(tuple(every), self.counter, self.cpus, self.pinned, self.isolated, self.empty, missing)


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of all commands on the same CPUs. `empty`: times of an empty program in ns; `interrupts`: the
    reason why interrupt counts are missing, "" if they are available.
    """

    series: tuple[CommandSeries, ...]
    counter: Counter
    cpus: frozenset[int]
    pinned: bool
    isolated: frozenset[int]
    empty: tuple[int, ...]
    interrupts: str


class CommandRunner:
    """Executes commands in a constant environment, each time with a different stack position if `pad` is set."""

    def __init__(self, options: ExternalOptions, launcher: Launcher, cpus: frozenset[int], start: StartCounts) -> None:
        self._options, self._launcher, self._start = options, launcher, start
        self._counts = CountReader(cpus)
        self._padding = Stream(options.seed, "padding")
        self._event = cycles_event(options.counter)
        self._last: KernelCounts | None = None
        self.printed = ""  # the last lines of the last run, as in ProgramEnd.errors
        self.interrupts_missing = self._counts.why

    def close(self) -> None:
        self._counts.close()

    def run(self, series: CommandSeries) -> Trial:
        """Run one trial, after its preparing command. Raises QuietError if the preparing command fails, or if the
        measured command cannot be run or, unless failures are ignored, fails.
        """
        command = series.command
        if command.folder:
            with chdir(command.folder):
                return self._run(series)
        return self._run(series)

    def _run(self, series: CommandSeries) -> Trial:
        command = series.command
        if command.prepare:
            try:
                run_checked(command.prepare, os.getcwd(), {**os.environ, **dict(command.environment)}, PREPARE_S)
            except CommandError as error:
                raise CommandError(f"{command.text}: --prepare: {error}") from None
        padding = self._padding.below(PAGE) if self._options.pad else 0
        program = command.path, command.argv, padding, command.environment, command.text
        before = self._counts.read() if command.prepare or self._last is None else self._last
        counts: dict[str, int] = {}
        if self._event:
            with Counting(self._event) as cycles:
                ended = self._launcher.run(*program)
                reading = cycles.reading()
            series.cycles_missing = reading.why
            counts = {} if reading.value is None else {self._event: reading.value}
        else:
            ended = self._launcher.run(*program)
        after = self._last = self._counts.read()
        seen = self._counts.stolen_ms(before, after), self._counts.interrupts(before, after)
        trial = trial_of(ended, *seen, counts, self._start)
        self.printed = ended.errors
        if ended.code and not self._options.ignore_failure:
            raise UsageError(_failure(command, ended, self._options.on_failure))
        return trial


def cycles_event(counter: str) -> str:
    """The event that counts a command's cycles, "" for none. Raises UsageError if a counter was requested by name and
    cannot count a command's cycles.
    """
    if counter == "wall":
        return ""
    for name in ("cycles", "cycles:u") if counter == "auto" else (counter,):
        why = Counting(name).obstacle(None)
        if not why:
            return name
        if counter != "auto":
            raise UsageError(f"--counter {counter}: {why.rpartition(': ')[2]}; use wall")
    return ""


def seldom(show: Show) -> Show:
    """A function that calls `show` at most once per SHOWN_EACH_S seconds, because drawing takes as long as a short
    command.
    """
    next_at = 0.0

    def shown(text: str, done: int, total: int) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            show(text, done, total)
            next_at = time.monotonic() + SHOWN_EACH_S

    return shown


def measure(options: ExternalOptions, show: Show, tell: Callable[[str], None]) -> Measured:
    """Measure all trials of all commands. Raises QuietError if a command cannot be measured."""
    show = seldom(show)
    with session(options, tell) as here:
        every = tuple(CommandSeries(command) for command in options.commands)
        with _kept(options, here.cpus, tell) as keeper:
            begin = time.monotonic()
            for series in every:
                warm(series, here.runner, options, show)
            keeper.begin(every, here.cpus if here.pinned else None, here.counter)
            in_turn(every, here.runner, options, show, keeper, begin)
            keeper.finish()
        return here.measured(every)


def cpus_of(given: Sequence[str]) -> tuple[frozenset[int] | None, frozenset[int], frozenset[int]]:
    """The CPUs to measure on (None: the kernel decides), the CPUs to report, and the isolated CPUs."""
    isolated = isolated_cpus()
    pinned = frozenset(choose_cpus(given, isolated)) if given else None
    return pinned, pinned or frozenset(os.sched_getaffinity(0)), isolated


@contextmanager
def session(options: ExternalOptions, tell: Callable[[str], None]) -> Iterator[CommandSession]:
    """A context that takes this process's turn on the CPUs, runs the setup, and measures an empty program. Raises
    QuietError if any of these fails.
    """
    pinned, cpus, isolated = cpus_of(options.cpus)
    with ExitStack() as stack:
        stack.enter_context(isolated_turn(pinned or frozenset(), options.commands[0].text, tell))
        if options.setup:
            run_checked(options.setup, os.getcwd(), os.environ, PREPARE_S)
        if pinned:
            stack.enter_context(away_from(set(pinned)))
        launcher = stack.enter_context(
            Launcher(dict(os.environ), pinned, options.timeout, options.on_timeout, options.quote_output)
        )
        starts = empty_starts(launcher)
        empty = tuple(each.wall_ns for each in starts)
        counter = replace(
            WALL, overhead=min(empty, default=None), overhead_median=round(median(empty)) if empty else None
        )
        runner = stack.enter_context(closing(CommandRunner(options, launcher, cpus, start_counts(starts))))
        yield CommandSession(runner, counter, cpus, pinned is not None, isolated, empty)


def warm(series: CommandSeries, runner: CommandRunner, options: ExternalOptions, show: Show) -> None:
    """Run trials to be discarded: the requested number or, by default, until times have settled, but at most LIMIT
    trials, and no longer than WARMUP_SHARE of `options.seconds`.
    """
    values: list[int] = []
    most = settling.LIMIT if options.warmup is None else options.warmup
    until = time.monotonic() + WARMUP_SHARE * options.seconds
    while len(values) < most:
        show(f"{series.command.text}: warming up", len(values), most)
        values.append(runner.run(series).value)
        if options.warmup is None and (is_settled(values) or time.monotonic() > until):
            break
    series.settling = Settling(tuple(values), settled=is_settled(values))


def is_settled(values: Sequence[int]) -> bool:
    """Whether times have settled, by the rule of stats/settling.py with the larger interquartile range of the two
    windows instead of the counter's step.
    """
    if len(values) < 2 * settling.WINDOW:
        return False
    size = settling.WINDOW
    windows = [sorted(values[-2 * size : -size]), sorted(values[-size:])]
    return settling.settled(values, max([1, *(window[3 * size // 4] - window[size // 4] for window in windows)]))


def in_turn(
    every: Sequence[CommandSeries],
    runner: CommandRunner,
    options: ExternalOptions,
    show: Show,
    keeper: CommandKeeper,
    begin: float,
) -> None:
    """Run rounds with one trial of each command until there are enough trials; the time limit counts from `begin`."""
    order = Stream(options.seed, "order")
    first = time.monotonic()
    done, wanted = 0, options.trials or options.fewest
    while done < wanted:
        for series in order.shuffled(every):
            series.trials.append(runner.run(series))
        keeper.add(every, STORED_NS)
        done += 1
        if options.trials is None:
            # The number of rounds that fit into the time limit at the current pace.
            now, until = time.monotonic(), begin + options.seconds * len(every)
            wanted = max(options.fewest, done + int((until - now) * done / (now - first)))
        show(" and ".join(series.command.text for series in every), done, max(wanted, done))
    keeper.add(every)


def _failure(command: ExternalCommand, ended: ProgramEnd, advice: str) -> str:
    said = f": {ended.errors}" if ended.errors else ""
    return f"{command.text}: exited with {ended.code}{said}{f' ({advice})' if advice else ''}"


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """The facts stored about a command before its trials."""

    workload: str
    cpu: int
    command: tuple[str, ...]
    prepare: str
    counter: Counter
    settling: Settling
    params: Params = field(default_factory=dict)
    process: int = 0
    processes: str = EACH_TRIAL


class CommandKeeper:
    """Writes the new trials of commands to the store; without a store, does nothing."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._numbers: list[int] = []

    def begin(self, every: Sequence[CommandSeries], cpus: frozenset[int] | None, counter: Counter) -> None:
        """Store the facts of the run, before the first trial that counts."""
        if self._store:
            cpu = min(cpus) if cpus and len(cpus) == 1 else NO_CPU
            for each in every:
                command = each.command
                facts = CommandFacts(command.text, cpu, command.argv, command.prepare, counter, each.settling)
                self._numbers.append(self._store.begin(asdict(facts)))

    def add(self, every: Sequence[CommandSeries], least_ns: int = 0) -> None:
        """Write the new trials of every command whose unstored trials last at least `least_ns`."""
        for number, series in zip(self._numbers, every, strict=False):
            if self._store and series.pending_ns >= least_ns:
                self._store.add(number, series.trials[series.stored :])
                series.stored = len(series.trials)

    def finish(self) -> None:
        """Mark the series of every command as complete."""
        for number in self._numbers:
            if self._store:
                self._store.finish(number, {})


@contextmanager
def _kept(options: ExternalOptions, cpus: frozenset[int], tell: Callable[[str], None]) -> Iterator[CommandKeeper]:
    """A context with a keeper that stores trials in the requested file; without such a file, the keeper does
    nothing.
    """
    if options.output is None:
        yield CommandKeeper(None)
        return
    host = to_store(describe(cpus, isolated_cpus()))
    with Store.create(options.output, host=host, command=options.command_line) as store:
        try:
            yield CommandKeeper(store)
        except (QuietError, KeyboardInterrupt, SystemExit):
            store.drop_if_empty()
            if store.kept:
                tell(f"{store.kept:,} trials of this run are kept in {options.output}")
            raise

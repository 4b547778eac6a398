"""One `cbench run`: every workload on every CPU, checked before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import psutil

from cbench.machine import describe
from cbench.measure import counters, layout, protocol, runner, user_code
from cbench.measure.inkernel import session
from cbench.model import PLAIN, Counter, Layout, Params, Result, Session, Trial, Workload
from cbench.stats.clean import clean, rule_for
from cbench.workloads import registry
from quiet.errors import QuietError, UsageError
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.noise.follow import Follower

MOST_TRIALS = 1_000_000
MEMORY_SHARE = 0.8
CLEAN_FACTOR, CLEAN_LEAST = 100, 10_000
"""--until-clean K ends at the latest after so many times K trials, or the least if that is more."""

Show = Callable[[str, int, int], None]
Keep = Callable[[Workload, int, int, protocol.Job], runner.Keeper]
"""Makes the keeper for a workload's trials: the CPU, the process's number from 0, and what it is told."""


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """How to measure.

    `trials`: of each process, with `until_clean` at most. `warmup` None: until settled. `events` None: what suits the
    counter. `until_clean`: how many clean trials each process has to have.
    """

    trials: int
    warmup: int | None
    counter: str
    timeout: float
    trace: bool = True
    events: tuple[str, ...] | None = None
    until_clean: int | None = None
    plan: layout.LayoutPlan = layout.SINGLE
    in_kernel: bool = False
    stop_machine: bool = False
    asked: bool = True

    def trials_of(self, workload: Workload) -> int:
        """How many trials a process has; `asked`: somebody gave a number."""
        return self.trials if self.asked or workload.trials is None else min(self.trials, workload.trials)

    def warmup_of(self, workload: Workload) -> int | None:
        """How many trials are discarded, None: until settled."""
        return self.warmup if self.asked or workload.trials is None else self.warmup or 0


def options(
    trials: int | None,
    warmup: str,
    counter: str,
    timeout: float,
    trace: bool = True,
    *,
    events: str = counters.AUTO,
    until_clean: int | None = None,
    plan: layout.LayoutPlan | None = None,
    in_kernel: bool = False,
    stop_machine: bool = False,
    asked: bool = True,
) -> MeasureOptions:
    """UsageError for what cannot be measured so. `trials` None: as many as `until_clean` is likely to take."""
    if until_clean is not None and not 2 <= until_clean <= MOST_TRIALS:
        raise UsageError(f"--until-clean {until_clean}: from 2 to {MOST_TRIALS:,} clean trials")
    if trials is None:
        trials = min(max((until_clean or 0) * CLEAN_FACTOR, CLEAN_LEAST), MOST_TRIALS)
    if not 1 <= trials <= MOST_TRIALS:
        raise UsageError(f"--trials {trials}: from 1 to {MOST_TRIALS:,}")
    if until_clean is not None and trials < until_clean:
        raise UsageError(f"--until-clean {until_clean} cannot be reached with --trials {trials}")
    if warmup != "auto" and not (warmup.isascii() and warmup.isdecimal() and int(warmup) <= MOST_TRIALS):
        raise UsageError(f"--warmup {warmup!r}: 'auto' or a number of trials from 0 to {MOST_TRIALS:,}")
    if not (math.isfinite(timeout) and timeout > 0):
        raise UsageError(f"--timeout {timeout:g}: a number of seconds above 0")
    place = plan or layout.SINGLE
    if stop_machine and not in_kernel:
        raise UsageError("--stop-machine needs --in-kernel: no user process can hold the other CPUs")
    if in_kernel and place.processes > 1:
        raise UsageError("--in-kernel measures in the kernel, not in processes: leave out --processes")
    if in_kernel and (events != counters.AUTO or place.base != PLAIN):
        raise UsageError("--in-kernel counts nothing beside the counter, and has no addresses, environment or stack")
    discarded = None if warmup == "auto" else int(warmup)
    chosen = counters.parse_events(events)
    return MeasureOptions(
        trials, discarded, counter, timeout, trace, chosen, until_clean, place, in_kernel, stop_machine, asked
    )


def find(texts: Iterable[str], cache: Path, tell: Callable[[str], None]) -> list[Workload]:
    """Built-in workloads by name, and the user's own; UsageError for what is neither."""
    names = list(dict.fromkeys(texts))
    builtin = {text: registry.find(text) for text in names if not user_code.is_user_code(text)}
    return [builtin[text] if text in builtin else user_code.load(text, cache, tell) for text in names]


def check_memory(workload: Workload, params: Params) -> None:
    """UsageError when the buffer would not fit: locked memory cannot be swapped out."""
    available = psutil.virtual_memory().available
    if workload.buffers * params.get("size", 0) > MEMORY_SHARE * available:
        raise UsageError(
            f"--param size={params['size']}: {workload.name} would need more than "
            f"{MEMORY_SHARE:.0%} of the {available // 2**20:,} MiB of memory that are free"
        )


def check_outputs(result: Result, expected: int | None) -> None:
    """QuietError when a built-in workload did not compute the same, right value in every trial."""
    if not result.workload.builtin:
        return
    outputs = {trial.output for trial in result.trials}
    wrong = outputs - {expected} if expected is not None else outputs if len(outputs) > 1 else set()
    if wrong:
        right = "one and the same value" if expected is None else str(expected)
        raise QuietError(
            f"{result.workload.name} on CPU {result.cpu}: computed {min(wrong)} instead of {right}: "
            "broken build or broken hardware, nothing here is to be trusted"
        )


def measure(
    chosen: Sequence[Workload],
    params: Sequence[Params],
    cpus: Sequence[int],
    *,
    isolated: frozenset[int],
    options: MeasureOptions,
    show: Show,
    keep: Keep | None = None,
) -> list[Result]:
    """All results, workload by workload, CPU by CPU, process by process.

    `show` gets a text, trials done and trials wanted. `keep` makes the keeper of each process's trials.
    """
    layout.check(options.plan, chosen)
    for workload, settings in zip(chosen, params, strict=True) if options.in_kernel else ():
        session.check(workload, settings, options.counter)
    expected = [registry.expected_output(w, p) for w, p in zip(chosen, params, strict=True)]
    results: list[Result] = []
    tracing = options.trace and not options.in_kernel
    following = Follower(Host(), frozenset(cpus)) if tracing else nullcontext()
    away = nullcontext() if options.in_kernel else runner.away_from(set(cpus))
    with away, following as follower:
        for workload, settings, output in zip(chosen, params, expected, strict=True):
            for cpu in cpus:
                one = One(workload, settings, cpu, options, show, follower, keep)
                result = Result(workload, settings, cpu, cpu in isolated, one.sessions(), options.until_clean)
                check_outputs(result, output)
                results.append(result)
    return results


@dataclass(frozen=True, slots=True)
class One:
    """One workload on one CPU, about to be measured."""

    workload: Workload
    settings: Params
    cpu: int
    options: MeasureOptions
    show: Show
    follower: Follower | None
    keep: Keep | None

    def sessions(self) -> tuple[Session, ...]:
        """Those of all processes."""
        drawn = layout.draw(self.options.plan, self.workload, self.settings)
        return tuple(self._session(number, *one) for number, one in enumerate(drawn))

    def _session(self, number: int, place: Layout, params: Params) -> Session:
        job = protocol.Job(
            function=self.workload.function,
            library=self.workload.library,
            params=params,
            rewarm=params["n"] // self.workload.rewarm_share,
            cpu=self.cpu,
            trials=self.options.trials_of(self.workload),
            warmup=self.options.warmup_of(self.workload),
            counter=self.options.counter,
            events=self.options.events,
            enters_kernel=self.workload.enters_kernel,
            own_faults=self.workload.own_faults(params) if self.workload.own_faults else 0,
            layout=place,
        )
        title = f"{self.workload.name} on CPU {self.cpu}"
        if self.options.plan.processes > 1:
            title += f", process {number + 1} of {self.options.plan.processes}"

        def progress(phase: str, done: int) -> None:
            self.show(f"{title}: {phase}", done, self.options.trials_of(self.workload))

        keeper = self.keep(self.workload, self.cpu, number, job) if self.keep else None
        enough = self._until_clean() if self.options.until_clean else None
        if self.options.in_kernel:
            return self._in_kernel(params, keeper, enough)
        return runner.run(
            self.workload, job, self.options.timeout, progress, self.follower, keeper=keeper, enough=enough
        )

    def _in_kernel(self, params: Params, keeper: runner.Keeper | None, enough: runner.Enough | None) -> Session:
        options = self.options
        trials, warmup = options.trials_of(self.workload), options.warmup_of(self.workload)
        kind = (options.counter, options.stop_machine)
        return session.session(
            session.InKernelRequest(self.workload, params, self.cpu, trials, warmup, *kind), keeper, enough
        )

    def _until_clean(self) -> runner.Enough:
        """Whether the trials so far have as many clean ones as are wanted; looked at again after every 2 % more."""
        virtual = describe.virtual(Reader())
        next_look = 0

        def enough(trials: Sequence[Trial], counter: Counter) -> bool:
            nonlocal next_look
            if len(trials) < next_look:
                return False
            next_look = len(trials) + len(trials) // 50
            rule = rule_for(counter.unit, virtual)
            return len(clean(trials, counter.quantum or 1, rule)) >= (self.options.until_clean or 0)

        return enough

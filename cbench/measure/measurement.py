"""Measure workloads on CPUs, in one process or several, and check what they computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from cbench.machine import describe
from cbench.measure import layout, protocol, runner
from cbench.measure.inkernel import session
from cbench.measure.options import MeasureOptions
from cbench.model import Counter, Enough, Keeper, Layout, Params, Result, Session, Trial, Workload
from cbench.stats.clean import clean, rule_for
from cbench.workloads import registry
from quiet import Follower, Host, QuietError, Reader

Show = Callable[[str, int, int], None]
Keep = Callable[[Workload, int, int, protocol.Job], Keeper]
"""Makes the keeper for a workload's trials: the CPU, the process's number from 0, and what it is told."""


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

    def _in_kernel(self, params: Params, keeper: Keeper | None, enough: Enough | None) -> Session:
        options = self.options
        trials, warmup = options.trials_of(self.workload), options.warmup_of(self.workload)
        kind = (options.counter, options.stop_machine)
        return session.session(
            session.InKernelRequest(self.workload, params, self.cpu, trials, warmup, *kind), keeper, enough
        )

    def _until_clean(self) -> Enough:
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

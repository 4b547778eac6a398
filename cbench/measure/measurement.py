"""Measure workloads on CPUs, in one process or several, and check their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from cbench.machine import describe
from cbench.measure import layout, protocol, runner
from cbench.measure.inkernel import session
from cbench.measure.options import MeasureOptions
from cbench.model import Counter, Enough, Keeper, Layout, Params, Result, Session, Trial, Workload
from cbench.stats.chains import kept, marked
from cbench.stats.clean import clean, rule_for
from cbench.workloads import registry
from quiet import Follower, Host, QuietError, Reader

Show = Callable[[str, int, int], None]
MOST_OF_WANTED = 3
"""For calibrated cycles without a requested number of trials: the maximum ratio of measured to wanted trials."""
Keep = Callable[[Workload, int, int, protocol.Job], Keeper]
"""Makes the keeper for the trials of one process. Receives the workload, the CPU, the number of the process (the first
is 0), and its job.
"""


def check_outputs(result: Result, expected: int | None) -> None:
    """Raises QuietError if a built-in workload computed different values, or a value other than `expected` (None if the
    correct value is unknown).
    """
    if not result.workload.builtin:
        return
    outputs = {trial.output for trial in result.trials}
    wrong = outputs - {expected} if expected is not None else outputs if len(outputs) > 1 else set()
    if wrong:
        right = "one and the same value" if expected is None else str(expected)
        raise QuietError(
            f"{result.workload.name} on CPU {result.cpu}: computed {min(wrong)} instead of {right}: "
            "broken build or broken hardware; reinstall cbench, and do not trust any result from this host"
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
    """Measure and return all results, workload by workload, CPU by CPU, process by process. Raises QuietError if a
    workload cannot be measured, or computes a wrong value.

    `show` receives a text, the number of completed trials and the number of requested ones. `keep` makes the keeper of
    each process's trials.
    """
    layout.check(options.plan, chosen)
    for workload in chosen if options.in_kernel else ():
        session.check(workload, options.counter)
    expected = [registry.expected_output(w, p) for w, p in zip(chosen, params, strict=True)]
    results: list[Result] = []
    tracing = options.trace and not options.in_kernel
    following = Follower(Host(), frozenset(cpus)) if tracing else nullcontext()
    away = nullcontext() if options.in_kernel else runner.away_from(set(cpus))
    with away, following as follower:
        for workload, settings, output in zip(chosen, params, expected, strict=True):
            drawn = layout.draw(options.plan, workload, settings)
            for cpu in cpus:
                sessions = tuple(
                    _session(workload, cpu, options, number, *process, show, follower, keep)
                    for number, process in enumerate(drawn)
                )
                result = Result(workload, settings, cpu, cpu in isolated, sessions, options.until_clean)
                check_outputs(result, output)
                results.append(result)
    return results


def _session(
    workload: Workload,
    cpu: int,
    options: MeasureOptions,
    number: int,
    place: Layout,
    params: Params,
    show: Show,
    follower: Follower | None,
    keep: Keep | None,
) -> Session:
    """Measure the trials of one process."""
    job = protocol.Job(
        function=workload.function,
        library=workload.library,
        params=params,
        rewarm=params["n"] // workload.rewarm_share,
        cpu=cpu,
        trials=options.trials_of(workload),
        warmup=options.warmup_of(workload),
        counter=options.counter,
        events=options.events,
        enters_kernel=workload.enters_kernel,
        own_faults=workload.own_faults(params) if workload.own_faults else 0,
        layout=place,
        most=options.trials_of(workload) * (1 if options.number_given or workload.trials else MOST_OF_WANTED),
    )
    title = f"{workload.name} on CPU {cpu}"
    if options.plan.processes > 1:
        title += f", process {number + 1} of {options.plan.processes}"

    def progress(phase: str, done: int) -> None:
        show(f"{title}: {phase}", done, job.trials)

    keeper = keep(workload, cpu, number, job) if keep else None
    enough = _until_clean(options.until_clean) if options.until_clean else None
    if not options.number_given:
        enough = _until_kept(job.trials)
    if options.in_kernel:
        return session.session(workload.name, job, options.stop_machine, keeper, enough)
    return runner.run(workload.name, job, options.timeout, progress, follower, keeper, enough)


def _until_kept(wanted: int) -> Enough:
    """A function that returns whether `wanted` trials are usable. With calibrated cycles, not all trials are usable;
    each chunk is first judged separately, which is fast.
    """
    seen = usable = 0

    def enough(trials: Sequence[Trial], counter: Counter) -> bool:
        nonlocal seen, usable
        usable += sum(map(kept, marked(trials[seen:], counter.calibration)))
        seen = len(trials)
        return usable >= wanted and sum(map(kept, marked(trials, counter.calibration))) >= wanted

    return enough


def _until_clean(wanted: int) -> Enough:
    """A function that returns whether `wanted` trials are clean; it checks again whenever there are 10 % more
    trials.
    """
    virtual = describe.virtual(Reader())
    kept_enough = _until_kept(wanted)
    next_look = 0

    def enough(trials: Sequence[Trial], counter: Counter) -> bool:
        nonlocal next_look
        if counter.calibration:
            return kept_enough(trials, counter)
        if len(trials) < next_look:
            return False
        next_look = len(trials) + len(trials) // 10
        return len(clean(trials, counter.quantum or 1, rule_for(counter.unit, virtual))) >= wanted

    return enough

"""Run one workload in the kernel as an ordinary session, for `cbench run --in-kernel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cbench.machine import chains, counters
from cbench.measure.inkernel import client
from cbench.measure.protocol import Job
from cbench.model import CausesSource, Enough, Keeper, Ready, Session, Settling, Trial, Workload
from cbench.results import extended
from cbench.stats import settling
from cbench.stats.quantum import quantum
from quiet import QuietError, UsageError

CHUNK = 1000
"""The most trials that one request adds, and so the most that are lost if the measurement is interrupted."""
AGAIN = 10
"""The number of trials discarded at the beginning of each request after the warm-up, because other programs may have
used the caches since the previous request.
"""
HELD = "interrupts off", "interrupts off, every other CPU held by stop_machine()"


def check(workload: Workload, counter: str) -> None:
    """Check a request before anything is measured. Raises UsageError for a workload or counter that is unavailable in
    the kernel.
    """
    if workload.library or workload.function not in client.WORKLOADS:
        raise UsageError(f"{workload.name} does not run in the kernel; {', '.join(client.WORKLOADS)} do")
    if counter not in client.COUNTERS:
        raise UsageError(f"--counter {counter} with --in-kernel: use {', '.join(client.COUNTERS)}")


def session(name: str, job: Job, stop_machine: bool, keeper: Keeper | None, enough: Enough | None) -> Session:
    """Measure a job with interrupts off, in requests of CHUNK trials; the keeper receives each request's trials when
    the request ends.

    `enough` may end the measurement early. Raises QuietError if the module cuts a request short, and the errors of
    client.measure().
    """
    params, count, warmup = job.params, job.trials, job.warmup
    request = partial(
        client.measure,
        *(job.function, params, job.cpu),
        warmup=0,
        stop_machine=stop_machine,
        rewarm=job.rewarm,
        counter=job.counter,
    )
    measured = request(trials=settling.LIMIT if warmup is None else max(warmup, 1))
    clock = measured.counter.name == counters.ticks_name()
    step = quantum(chains.ticks_deltas()) if clock else 1
    counter = replace(measured.counter, quantum=step, overhead_median=measured.counter.overhead)
    discarded = measured.values[: first_settled(measured.values, step) if warmup is None else warmup]
    settled = Settling(discarded, (), settling.settled(discarded, step))
    pages = "none" if "size" not in params else f"{'large' if params.get('pages', 1) else 'small'}, of the kernel"
    ready = Ready(counter, "all", "fixed", pages, "/proc/interrupts")
    if keeper:
        keeper.begin(ready, settled)
    trials: list[Trial] = []
    while not measured.cut_short and len(trials) < count and not (trials and enough and enough(trials, counter)):
        measured = request(trials=min(CHUNK, count - len(trials)) + AGAIN)
        pairs = list(zip(measured.values, measured.outputs, strict=True))[AGAIN:]
        chunk = [Trial(value, output, kernel=0) for value, output in pairs]
        trials += chunk
        if keeper:
            keeper.add(chunk)
    if measured.cut_short:
        done = f"{len(trials):,} of {count:,} trials"
        raise QuietError(f"{name} on CPU {job.cpu}: {measured.cut_short} after {done}")
    finished = extended(
        Session,
        ready,
        trials=tuple(trials),
        settling=settled,
        stolen_ms=None,
        causes=CausesSource("the kernel module", HELD[stop_machine]),
        params=dict(params),
    )
    if keeper:
        keeper.finish(finished)
    return finished


def first_settled(values: Sequence[int], step: int) -> int:
    """The number of trials to discard: whole windows until the series has settled, LIMIT if it does not settle."""
    for count in range(2 * settling.WINDOW, settling.LIMIT + 1, settling.WINDOW):
        if settling.settled(values[:count], step):
            return count
    return settling.LIMIT

"""One workload in the kernel as a session like any other: `cbench run --in-kernel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cbench.machine import counters
from cbench.measure.inkernel import client
from cbench.model import CausesSource, Enough, Keeper, Params, Ready, Session, Settling, Trial, Workload
from cbench.stats import settling
from cbench.stats.quantum import quantum
from quiet import QuietError, UsageError

NAMES = {"auto": "auto", "cycles": "cycles", counters.ticks_name(): "ticks"}
CHUNK = 1000
"""Trials of one request: what is lost when the next is interrupted."""
AGAIN = 10
"""Trials that are discarded at the beginning of each: the caches were somebody else's in between."""
HELD = "interrupts off", "interrupts off, every other CPU held by stop_machine()"
MAPPED = {"pages": 1, "offset": 0}
"""What a buffer in the kernel is like: in large pages, at the beginning of one."""


def check(workload: Workload, params: Params, counter: str) -> None:
    """UsageError for what does not run in the kernel, before anything has been measured."""
    if workload.function not in client.WORKLOADS:
        raise UsageError(f"{workload.name} does not run in the kernel; {', '.join(client.WORKLOADS)} do")
    if counter not in NAMES:
        raise UsageError(f"--counter {counter} with --in-kernel: use {', '.join(NAMES)}")
    for name, value in MAPPED.items():
        if params.get(name, value) != value:
            raise UsageError(f"--param {name}={params[name]} with --in-kernel: there it is always {value}")


@dataclass(frozen=True, slots=True)
class InKernelRequest:
    """What is to be measured in the kernel; `warmup` None: until settled."""

    workload: Workload
    params: Params
    cpu: int
    trials: int
    warmup: int | None
    counter: str
    stop_machine: bool

    def request(self, trials: int) -> client.KernelTrials:
        """So many trials by one request to the module."""
        return client.measure(
            self.workload.function,
            {name: value for name, value in self.params.items() if name not in MAPPED},
            self.cpu,
            trials,
            0,
            self.stop_machine,
            rewarm=self.params["n"] // self.workload.rewarm_share,
            counter=NAMES[self.counter],
        )


def session(asked: InKernelRequest, keeper: Keeper | None, enough: Enough | None) -> Session:
    """Measure with interrupts off, in requests of CHUNK trials, each of which the keeper gets at once.

    Raises QuietError when the module cut them short, Refused when it is not there or not allowed.
    """
    first = asked.request(settling.LIMIT if asked.warmup is None else max(asked.warmup, 1))
    clock = first.counter.name == counters.ticks_name()
    step = quantum(counters.ticks_deltas()) if clock else 1
    counter = replace(first.counter, quantum=step, overhead_median=first.counter.overhead)
    discarded = first_settled(first.values, step) if asked.warmup is None else asked.warmup
    settled = Settling(first.values[:discarded], (), settling.settled(first.values[:discarded], step))
    pages = "none" if "size" not in asked.params else "large, of the kernel"
    ready = Ready(counter, "all", "fixed", pages, "/proc/interrupts")
    if keeper:
        keeper.begin(ready, settled)
    trials: list[Trial] = []
    while first.cut_short == "" and len(trials) < asked.trials and not (trials and enough and enough(trials, counter)):
        wanted = min(CHUNK, asked.trials - len(trials))
        measured = asked.request(wanted + AGAIN)
        pairs = list(zip(measured.values, measured.outputs, strict=True))[AGAIN:]
        chunk = [Trial(value, output, kernel=0) for value, output in pairs]
        trials += chunk
        if keeper:
            keeper.add(chunk)
        if measured.cut_short:
            raise _cut_short(asked, measured.cut_short, len(trials))
    if first.cut_short:
        raise _cut_short(asked, first.cut_short, 0)
    made = Session(
        counter=counter,
        trials=tuple(trials),
        settling=settled,
        locked=ready.locked,
        addresses=ready.addresses,
        pages=ready.pages,
        interrupts_from=ready.interrupts_from,
        stolen_ms=None,
        causes=CausesSource("the kernel module", HELD[asked.stop_machine]),
        params=dict(asked.params),
    )
    if keeper:
        keeper.finish(made)
    return made


def _cut_short(asked: InKernelRequest, why: str, done: int) -> QuietError:
    return QuietError(f"{asked.workload.name} on CPU {asked.cpu}: {why} after {done:,} of {asked.trials:,} trials")


def first_settled(values: Sequence[int], step: int) -> int:
    """How many to discard: whole windows until the series has settled, LIMIT where it does not."""
    for count in range(2 * settling.WINDOW, settling.LIMIT + 1, settling.WINDOW):
        if settling.settled(values[:count], step):
            return count
    return settling.LIMIT

"""One workload in the kernel as a session like any other: `cbench run --in-kernel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cbench import counters, inkernel
from cbench.model import Params, Session, Settling, Trial, Workload
from cbench.stats import settling
from cbench.stats.quantum import quantum
from quiet.errors import QuietError, UsageError

NAMES = {"auto": "auto", "cycles": "cycles", counters.ticks_name(): "ticks"}
HELD = "interrupts off", "interrupts off, every other CPU held by stop_machine()"
MAPPED = {"pages": 1, "offset": 0}
"""What a buffer in the kernel is like: in large pages, at the beginning of one."""


def check(workload: Workload, params: Params, counter: str) -> None:
    """UsageError for what does not run in the kernel, before anything has been measured."""
    if workload.function not in inkernel.WORKLOADS:
        raise UsageError(f"{workload.name} does not run in the kernel; {', '.join(inkernel.WORKLOADS)} do")
    if counter not in NAMES:
        raise UsageError(f"--counter {counter} with --in-kernel: use {', '.join(NAMES)}")
    for name, value in MAPPED.items():
        if params.get(name, value) != value:
            raise UsageError(f"--param {name}={params[name]} with --in-kernel: there it is always {value}")


def session(
    workload: Workload, params: Params, cpu: int, trials: int, warmup: int | None, counter: str, stop_machine: bool
) -> Session:
    """Measure with interrupts off. `warmup` None: until settled; `trials` that many follow.

    Raises QuietError when the module cut the trials short, Refused when it is not there or not allowed.
    """
    discarded = settling.LIMIT if warmup is None else warmup
    measured = inkernel.measure(
        workload.function,
        {name: value for name, value in params.items() if name not in MAPPED},
        cpu,
        trials + discarded,
        0,
        stop_machine,
        rewarm=params["n"] // workload.rewarm_share,
        counter=NAMES[counter],
    )
    if measured.cut_short:
        done = len(measured.values)
        raise QuietError(f"{workload.name} on CPU {cpu}: {measured.cut_short} after {done:,} of {trials:,} trials")
    clock = measured.counter.name == counters.ticks_name()
    step = quantum(counters.ticks_deltas()) if clock else 1
    first = first_settled(measured.values, step) if warmup is None else warmup
    pairs = list(zip(measured.values, measured.outputs, strict=True))[first : first + trials]
    values = measured.values[:first]
    overhead = measured.counter.overhead
    return Session(
        counter=replace(measured.counter, quantum=step, overhead_median=overhead),
        trials=tuple(Trial(value, output, kernel=0) for value, output in pairs),
        settling=Settling(values, (), settling.settled(values, step)),
        locked="all",
        addresses="fixed",
        pages="none" if "size" not in params else "large, of the kernel",
        interrupts_from="/proc/interrupts",
        stolen_ms=None,
        causes={"source": "the kernel module", "note": HELD[stop_machine], "from_counters": 0},
        params=dict(params),
    )


def first_settled(values: Sequence[int], step: int) -> int:
    """How many to discard: whole windows until the series has settled, LIMIT where it does not."""
    for count in range(2 * settling.WINDOW, settling.LIMIT + 1, settling.WINDOW):
        if settling.settled(values[:count], step):
            return count
    return settling.LIMIT

"""Run the measuring process for one workload on one CPU, as `python -m cbench.measure.worker IN OUT PARENT`."""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from statistics import median_low
from typing import Any

from cbench._cbench import ffi, lib
from cbench.machine import chains, counters, events
from cbench.machine.process import addresses_fixed, lock_memory
from cbench.measure.protocol import WARMING, Channel, Done, Job, serve
from cbench.measure.series import TrialSeries
from cbench.model import Counter, Ready, Settling, Trial
from cbench.stats import settling
from cbench.stats.quantum import quantum
from cbench.workloads.loader import Loaded, builtin, user_code
from quiet import STEAL, Clock, QuietError, Reader, Refused, cpu_ticks, moment, parse_cpus, place

REGIONS = 2000
"""The number of empty timed regions that are measured."""
SPIN, SPINS = 100_000, 60
"""Rounds of the workload `hash` per wait for an interrupt, and the number of waits; together about 20 ms."""
EMPTY = 50
"""The number of trials of the empty workload."""
STEADY = 0.9
"""The share of empty regions that must have the minimum number of kernel instructions."""
GLANCE = 3
"""The number of trials that are run to estimate the duration of one."""
MISPREDICTED = ("branch-misses", "branch-misses:u")


def page_size(address: int) -> str:
    """The size of the pages behind the mapping at `address`, from /proc/self/smaps: "huge", "partly huge", "small" or
    "unknown".
    """
    inside, size = False, 0
    for line in (Reader().text("/proc/self/smaps") or "").splitlines():
        bounds = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if bounds:
            inside = int(bounds[1], 16) <= address < int(bounds[2], 16)
        elif inside and line.startswith("Size:"):
            size = int(line.split()[1])
        elif inside and line.startswith("AnonHugePages:"):
            huge = int(line.split()[1])
            return "small" if not huge else "huge" if huge >= size else "partly huge"
    return "unknown"


def stolen_ms(cpu: int) -> int | None:
    """The time in ms that the hypervisor has taken from `cpu`, according to the kernel; None if unknown."""
    ticks = cpu_ticks(Reader().text("/proc/stat") or "").get(f"cpu{cpu}", [])
    return ticks[STEAL] * 1000 // os.sysconf("SC_CLK_TCK") if len(ticks) > STEAL else None


def calibrate(counter: Counter, handle: Any, cpu: int) -> tuple[Counter, int | None]:
    """The counter with its step, its overhead in an empty region, and the counts of an empty call; and the result of
    kernel_baseline(). Raises QuietError if the counter cannot be read.
    """
    regions = ffi.new("uint64_t[]", REGIONS)
    if lib.cb_empty_regions(handle, regions, REGIONS):
        raise QuietError("the counter could not be read; try another --counter")
    empty = TrialSeries(handle, cpu, ffi.addressof(lib, "cb_empty_run"), ffi.NULL, 0, 0, others=counter.others)
    trials: list[Trial] = []
    while counter.others and len(trials) < EMPTY:  # on a busy CPU, a chunk may end after a few trials
        trials += empty.run(EMPTY - len(trials))
    empty.close()
    values = list(regions)[REGIONS // 10 :]
    rate, step = 1.0, 1
    if counter.calibration:
        rate = counter.calibration.ticks_per_cycle
        step = ceil(counter.calibration.step / rate)
    elif counter.name == counters.ticks_name():
        step = quantum(chains.ticks_deltas())
    calibrated = replace(
        counter,
        quantum=step,
        overhead=round(min(values) / rate),
        overhead_median=round(median_low(values) / rate),
        baseline=tuple(min(trial.counts[name] for trial in trials[EMPTY // 10 :]) for name in counter.others),
    )
    return calibrated, kernel_baseline([trial.counts for trial in trials[EMPTY // 10 :]])


def kernel_baseline(empty: Sequence[Mapping[str, int]]) -> int | None:
    """The number of kernel instructions in an empty timed region; None if they are not counted or not constant. 0 if
    the counters are read in user space; otherwise, the instructions of read(2) itself.
    """
    counts = [each[events.IN_KERNEL] for each in empty if events.IN_KERNEL in each]
    lowest = min(counts, default=None)
    return lowest if lowest is not None and counts.count(lowest) >= STEADY * len(counts) else None


def opened(job: Job) -> tuple[Counter, Any]:
    """The counter with its additional events, and its C handle. The event `interrupts` is omitted if it opens but
    counts nothing.

    Raises UsageError if the counter, or an event that was requested by name, is unavailable or counts nothing.
    """
    counter, handle = counters.choose(job.counter, job.cpu)
    counter = counters.add_events(counter, handle, job.events, job.cpu)
    if events.INTERRUPTS in counter.others and not counts_interrupts(counter, handle, job.cpu):
        why = "opens, but counted none of the interrupts that occurred"
        if job.events is not None:
            raise counters.unavailable(events.INTERRUPTS, counter, why)
        others = counter.others[:-1]  # the last of the automatically counted events
        counter = replace(counter, others=others, left_out={**counter.left_out, events.INTERRUPTS: why})
    return counter, handle


def counts_interrupts(counter: Counter, handle: Any, cpu: int) -> bool:
    """Whether the event `interrupts` counts interrupts: False if at least two occurred within timed regions and it
    counted none. Waits briefly for interrupts.
    """
    spin = TrialSeries(handle, cpu, ffi.addressof(lib, "cb_hash_run"), ffi.NULL, SPIN, 0, others=counter.others)
    came = counted = 0
    for _ in range(SPINS):
        for trial in spin.run(1):
            counted += trial.counts[events.INTERRUPTS]
            if trial.counts.get(events.IN_KERNEL, 0):
                came += sum(trial.interrupts.values())
        if counted or came > 1:
            break
    spin.close()
    return bool(counted) or came < 2


def with_chains(counter: Counter, handle: Any, loaded: Loaded, job: Job) -> Counter:
    """The counter with a chain length for the duration of the job's trials, or for an unknown duration if no trial may
    be discarded.
    """
    assert counter.calibration
    length = chains.length_for(chains.SINGLE / chains.SHARE)
    if job.warmup != 0:
        call = loaded.run, loaded.state, job.params["n"], job.rewarm
        first = TrialSeries(handle, job.cpu, *call, others=counter.others)
        trials = first.run(GLANCE)
        first.close()
        check_place(first, job.cpu, 0)
        ticks = min(trial.value for trial in trials)
        length = chains.length_for(ticks / counter.calibration.ticks_per_cycle)
    return replace(counter, calibration=replace(counter.calibration, length=length))


def check_place(series: TrialSeries, cpu: int, done: int) -> None:
    """Raises Refused if the kernel has moved this process off its CPU, as it does when the CPU goes offline."""
    if not series.strayed:
        return
    online = parse_cpus(Reader().text("/sys/devices/system/cpu/online") or "")
    why = "a change of cpuset or affinity moved this process to another CPU" if cpu in online else "it went offline"
    raise Refused(f"CPU {cpu} was lost after {done:,} trials: {why}")


def warm(series: TrialSeries, job: Job, step: int, channel: Channel) -> Settling:
    """Run the warm-up trials that the job requires, and return them."""
    trials: list[Trial] = []
    most = settling.LIMIT if job.warmup is None else job.warmup
    begun_s = time.monotonic()
    while True:
        values = tuple(trial.value for trial in trials)
        counted = [name for name in MISPREDICTED if trials and name in trials[0].counts][:1]
        missed = tuple(trial.counts[name] for name in counted for trial in trials)
        done = settling.settled(values, step, missed)
        took_s = time.monotonic() - begun_s
        late = bool(trials) and took_s >= settling.LIMIT_S
        if len(trials) >= most or (job.warmup is None and (done or late)):
            return Settling(values, missed, done)
        fit = int((settling.LIMIT_S - took_s) * len(trials) / took_s) if trials and took_s > 0 else 1
        trials += series.run(min(max(fit, 1), settling.WINDOW, most - len(trials)))
        check_place(series, job.cpu, 0)
        channel.ask(WARMING)


def measure(channel: Channel) -> None:
    job: Job = channel.receive()
    place(job.cpu)  # bind first, so that memory comes from this CPU's own node
    loaded = user_code(job.library, job.function) if job.library else builtin(job.function, job.params)
    counter, handle = opened(job)
    counter, baseline = calibrate(counter, handle, job.cpu)
    if counter.calibration:
        counter = with_chains(counter, handle, loaded, job)
    series = TrialSeries(
        handle,
        job.cpu,
        loaded.run,
        loaded.state,
        job.params["n"],
        job.rewarm,
        others=counter.others,
        kernel_baseline=baseline,
        enters_kernel=job.enters_kernel,
        own_faults=job.own_faults,
        stack=job.layout.stack,
        calibration=counter.calibration,
    )
    locked = lock_memory([series.buffer, *([loaded.region] if loaded.region else [])])
    gc.disable()
    addresses = "fixed" if addresses_fixed() else "random"
    pages = page_size(loaded.region[0]) if loaded.region else "none"
    channel.ask(Ready(counter, locked, addresses, pages, series.interrupts_from))
    channel.ask(warm(series, job, counter.quantum or 1, channel))
    before = stolen_ms(job.cpu)
    clock, most = moment(), job.most if counter.calibration else job.trials
    done, more = 0, True
    while more and done < most:
        chunk = series.run(min(most - done, job.trials))
        done += len(chunk)
        more = channel.ask(chunk)
        check_place(series, job.cpu, done)
    after = stolen_ms(job.cpu)
    stolen = None if before is None or after is None else after - before
    channel.send(Done(stolen, Clock(clock, moment()).per_second))


if __name__ == "__main__":
    serve(measure)

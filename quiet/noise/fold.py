"""Without tracing: what the gaps' own times, the thread's own counters and the kernel's counts prove.

- The scheduler's tick keeps to CLOCK_MONOTONIC: its gaps have one phase in the tick's period.
- The detector looks at its own context switches and page faults after each longer gap: these are that gap's.
- Whatever else of the kernel comes to a CPU is an interrupt, and the kernel counts each. When more gaps are left than
  interrupts were counted, the kernel was not what took the CPU in the others: the hypervisor or the firmware was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quiet.noise.attribute import (
    FIRMWARE,
    HOST,
    HYPERVISOR,
    STALL,
    STALL_NS,
    UNKNOWN,
    Account,
    Cause,
    Explained,
    Gap,
    Total,
)
from quiet.noise.clock import Clock
from quiet.noise.frames import COUNTED, FAULT, THREAD, VECTOR

RATES = (1000, 300, 250, 100)  # the values that CONFIG_HZ can have
BINS = 200
SWITCHED, FAULTED, LOOKED = 1, 2, 4  # qn_gap.flags in watch.h
TICK = Cause(VECTOR, "local_timer")
OTHER = Cause(COUNTED, "other interrupt")
TASK = Cause(THREAD, "another task")
OWN = Cause(FAULT, "page fault")


@dataclass(frozen=True, slots=True)
class Counts:
    """What the kernel counted on the CPU meanwhile: timer interrupts, and all others."""

    timer: int
    others: int


def phases(gaps: Sequence[Gap], clock: Clock, rate: int) -> list[float]:
    """Where in the tick's period each gap begins, from 0 to 1."""
    period = 1e9 / rate
    return [clock.monotonic(gap.begin) % period / period for gap in gaps]


def in_phase(gaps: Sequence[Gap], clock: Clock, rate: int) -> list[int]:
    """The numbers of the gaps in the fullest place of the period, the longest one of each period."""
    where = phases(gaps, clock, rate)
    bins = [0] * BINS
    for phase in where:
        bins[int(phase * BINS) % BINS] += 1
    pairs = [bins[i] + bins[(i + 1) % BINS] + bins[(i + 2) % BINS] for i in range(BINS)]
    first = pairs.index(max(pairs))
    wanted = {(first + i) % BINS for i in range(3)}
    best: dict[int, int] = {}
    for number, (gap, phase) in enumerate(zip(gaps, where, strict=True)):
        if int(phase * BINS) % BINS in wanted:
            turn = int((clock.monotonic(gap.begin) * rate / 1e9) - first / BINS)
            if turn not in best or gap.length > gaps[best[turn]].length:
                best[turn] = number
    return sorted(best.values())


def ticks_among(gaps: Sequence[Gap], clock: Clock, timer: int, seconds: float) -> list[int]:
    """The gaps that are the tick, by the rate that fits most of them; none when there is no tick to be seen."""
    best: list[int] = []
    if not timer:
        return best
    for rate in RATES:
        found = in_phase(gaps, clock, rate)
        expected = min(timer, rate * seconds)
        if len(found) > len(best) and len(found) >= expected / 2 and len(found) > 3 * len(gaps) / BINS:
            best = found
    return best if len(best) <= timer * 1.05 + 2 else []


def account(
    gaps: Sequence[Gap], clock: Clock, counts: Counts, seconds: float, looked_from: int, virtual: bool
) -> Account:
    """A cause for each gap, as far as the evidence goes. `looked_from`: the length from which flags are known."""
    long = [gap for gap in gaps if gap.length >= clock.ticks(STALL_NS)]
    causes: dict[Gap, Cause] = {}
    outside = Cause(HOST, HYPERVISOR if virtual else FIRMWARE)
    for gap in long:
        if gap.flags & SWITCHED:
            causes[gap] = TASK
        elif gap.flags & FAULTED:
            causes[gap] = OWN
    left = [gap for gap in long if gap not in causes]
    ticks = [left[number] for number in ticks_among(left, clock, counts.timer, seconds)]
    causes.update(dict.fromkeys(ticks, TICK))
    left = sorted((gap for gap in left if gap not in causes), key=lambda gap: gap.length)
    interrupts = counts.others + max(counts.timer - len(ticks), 0)
    # Which of them it was cannot be told; a handler is short, and what takes a CPU away is not.
    for number, gap in enumerate(left):
        if number < interrupts:
            causes[gap] = OTHER
        else:
            causes[gap] = outside if gap.length >= looked_from else Cause(UNKNOWN, "short")
    done = Account()
    for gap in gaps:
        cause = causes.get(gap, Cause(STALL, "processor stall"))
        total = done.totals.setdefault(cause, Total())
        total.count += 1
        total.gaps += 1
        total.total += gap.length
        total.longest = max(total.longest, gap.length)
        done.explained.append(Explained(gap, [(cause, gap.length)]))
    return done

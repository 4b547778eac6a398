"""Attribute gaps without tracing, from their times, the thread's own counters and the kernel's counts.

- The scheduler's tick follows CLOCK_MONOTONIC, so the gaps that it causes all begin at the same phase of its period, to
  within two microseconds; other gaps do not. The period is the resolution of CLOCK_MONOTONIC_COARSE, which the tick
  drives.
- The detector reads its own context switches and page faults after each gap of at least CountedEvidence.looked_from;
  new ones are attributed to that gap.
- Any other kernel activity on a CPU is an interrupt, and the kernel counts interrupts. If the remaining gaps outnumber
  the counted interrupts, the hypervisor, the firmware or an exception caused the surplus.
- An interrupt takes at least 1/CHEAPEST of the time of an interrupt that the detector itself caused; a shorter gap has
  another cause.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from quiet.noise.attribute import (
    STALL,
    STALL_NS,
    UNKNOWN,
    Account,
    Cause,
    Gap,
    Total,
    not_accounted,
)
from quiet.noise.call_nesting import COUNTED, FAULT, THREAD, VECTOR
from quiet.noise.clock import Clock

BIN_NS = 4_000  # assumed spread of the tick's phase; observed: under 2 us
MORE = 4  # the tick's phase has at least MORE * (number of gaps expected by chance) + LEAST gaps
LEAST = 5
CHEAPEST = 8  # an interrupt takes at least 1/CHEAPEST of the time of an interrupt that the detector caused
SWITCHED, FAULTED, LOOKED = 1, 2, 4  # qn_gap.flags in detector.h
TICK = Cause(VECTOR, "tick")
OTHER = Cause(COUNTED, "other interrupt")
TASK = Cause(THREAD, "another task")
OWN = Cause(FAULT, "page fault")
SHORT = Cause(UNKNOWN, "short")
PERHAPS = Cause(UNKNOWN, "perhaps a tick outside its schedule")


@dataclass(frozen=True, slots=True)
class CountedEvidence:
    """The evidence in addition to the gaps.

    `timer`, `others`: the timer interrupts and the other interrupts that the kernel counted on the CPU; `faults`: page
    faults of the detector; `period_ns`: the period of the scheduler tick; `looked_from`: the minimum length of gaps
    whose flags are known, in ticks; `interruption`: how long a timer interrupt stops the loop, in ticks (0: unknown);
    `virtual`: whether this is a virtual machine.
    """

    timer: int
    others: int
    faults: int
    period_ns: float
    looked_from: int
    interruption: float
    virtual: bool


def in_phase(gaps: Sequence[Gap], clock: Clock, period_ns: float) -> list[int]:
    """The indices of the gaps that begin at the most frequent phase of the period; only the longest gap of each period.

    Empty if that phase does not have clearly more gaps than expected by chance (MORE, LEAST).
    """
    begins = [clock.monotonic(gap.begin) for gap in gaps]
    bins = Counter(int(begin % period_ns // BIN_NS) for begin in begins)
    places = math.ceil(period_ns / BIN_NS)
    if not bins:
        return []
    fullest = max(bins, key=lambda place: bins[place] + bins[(place + 1) % places])
    wanted = {fullest, (fullest + 1) % places}
    start = fullest * BIN_NS
    best: dict[int, int] = {}
    for number, begin in enumerate(begins):
        if int(begin % period_ns // BIN_NS) in wanted:
            turn = int((begin - start) // period_ns)
            if turn not in best or gaps[number].length > gaps[best[turn]].length:
                best[turn] = number
    chance = len(gaps) * len(wanted) / places
    return sorted(best.values()) if len(best) >= MORE * chance + LEAST else []


def _missing(
    gaps: Sequence[Gap], ticks: Sequence[Gap], tasks: Sequence[Gap], clock: Clock, period_ns: float
) -> tuple[int, int]:
    """The number of ticks that occurred within gaps of other tasks, and the number of ticks without any gap."""
    if not ticks:
        return 0, 0
    phase = clock.monotonic(ticks[0].begin)

    def turns(begin: int, end: int) -> int:
        first, last = (clock.monotonic(at) - phase for at in (begin, end))
        return int(last // period_ns) - int(first // period_ns)

    hidden = sum(turns(gap.begin, gap.begin + gap.length) for gap in tasks)
    return hidden, max(turns(gaps[0].begin - 1, gaps[-1].begin) - len(ticks) - hidden, 0)


def _unlike(gap: Gap, interruption: float) -> float:
    """The dissimilarity of a gap and an interrupt: |log(length / interruption)|, or the length if `interruption` is 0.

    If the duration of an interrupt is unknown (0), the shortest gaps are the most likely interrupts.
    """
    return abs(math.log(gap.length / interruption)) if interruption else gap.length


def account(gaps: Sequence[Gap], clock: Clock, known: CountedEvidence) -> Account:
    """Attribute each gap to one cause; its kind is UNKNOWN if the evidence shows no cause."""
    outside = not_accounted(known.virtual)
    causes: dict[Gap, Cause] = {}
    for gap in gaps:
        if gap.flags & SWITCHED:
            causes[gap] = TASK
        elif gap.flags & FAULTED:
            causes[gap] = OWN
    stall, stalled = clock.ticks(STALL_NS), Cause(STALL, "processor stall")
    least = int(known.interruption / CHEAPEST) or stall
    left = [gap for gap in gaps if gap.length >= least and gap not in causes]
    numbers = in_phase(left, clock, known.period_ns)
    if len(numbers) > known.timer * 1.05 + 2 or not known.timer:
        numbers = []  # if there are more than the kernel counted, something else has that period
    ticks = [left[number] for number in numbers]
    causes.update(dict.fromkeys(ticks, TICK))
    left = sorted((gap for gap in left if gap not in causes), key=lambda gap: _unlike(gap, known.interruption))
    tasks = [gap for gap, cause in causes.items() if cause == TASK]
    hidden, unseen = _missing(gaps, ticks, tasks, clock, known.period_ns)
    interrupts = known.others + max(known.timer - len(ticks) - hidden - unseen, 0)
    # Gaps of other tasks are always long enough for a check of the counters, but a gap of a page fault may be shorter.
    short = SHORT if known.faults > sum(cause == OWN for cause in causes.values()) else outside
    for number, gap in enumerate(left):
        rest = outside if gap.length >= known.looked_from else short
        rest = PERHAPS if number < interrupts + unseen else rest
        causes[gap] = OTHER if number < interrupts else rest if gap.length >= stall else stalled
    done = Account()
    for gap in gaps:
        none = stalled if gap.length < stall else short
        cause = none if gap.length < least and not gap.flags else causes.get(gap, none)
        done.add(gap, {cause: Total(1, gap.length)})
    return done

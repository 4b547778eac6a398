"""Attribute the time of each gap to the handlers and tasks that ran in it; label unexplained time as such.

The rules, for a gap and the outermost frames in it:

1. A frame accounts for its own time. The rest of the gap is the time for entering and leaving the kernel and for
tracing; it is divided among the frames. If the rest per frame exceeds both FAR_NS and FAR times its median on this CPU,
the excess over the median was spent outside this kernel.
2. If the trace is complete and a gap of STALL_NS or more contains no frame, no traced code ran. In a virtual machine,
the hypervisor ran; on bare metal, the cause is firmware only if the processor counted an SMI (name_smis). A shorter gap
is a stall of the processor itself.
3. If a handler (of an interrupt, a softirq or a timer) in a virtual machine took far longer than usual (Pauses), the
hypervisor preempted the CPU during the handler. The usual time is attributed to the handler, and the rest to a cause of
kind HOST whose `by` names the handler.
4. If the trace is incomplete, a gap that has no frame and ends after the trace's end stays unattributed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from quiet.noise.call_nesting import CALL, HRTIMER, IRQ, NMI, PULLED, SOFTIRQ, TIMER, VECTOR, Frame, Share, shares

FAR, FAR_NS = 8, 2_000
STALL_NS = 1_000
HOST, STALL, UNKNOWN = "host", "stall", "unattributed"
# The names of causes of kind HOST. On bare metal, a gap without an explaining event is OUTSIDE until the number of SMIs
# is known (name_smis).
HYPERVISOR, FIRMWARE, NOT_SMI, OUTSIDE = "hypervisor", "firmware", "no SMI", "outside"
# Further kinds for a wake-up (wake/anatomy.py), besides code that ran on the CPU: the exit from an idle state, a timer
# interrupt that had to wait, a timer interrupt on another CPU, the scheduler's own work, and the return to user space.
IDLE, IRQS_OFF, OTHER_CPU, SCHEDULER, USER_RETURN = "idle", "interrupts off", "other CPU", "scheduler", "return"

HANDLERS = frozenset({VECTOR, IRQ, SOFTIRQ, NMI, HRTIMER, TIMER, PULLED, CALL})
OTHERS = 20  # the usual duration of a handler is known if more than this number of durations were measured
QUANTILE = 0.9  # over all durations of a name: robust against a few pauses and occasional long runs of the handler
PAUSE_FAR = 100  # a handler with unusually much work rarely takes this many times its usual time
FLOOR_NS = 100_000  # cold caches and SMT siblings can stretch a handler of a microsecond to this length
# A softirq processes everything that has accumulated: NET_RX until netdev_budget_usecs (net/core/dev.c: 2 ms, or two
# ticks, which are 20 ms at 100 Hz), RCU for 3 ms (rcu_resched_ns in kernel/rcu/tree.c).
BATCH_NS = 20_000_000
# In a healthy kernel, a handler almost never occupies a CPU for this long (25 ticks at 250 Hz, five times the longest
# batch), so a smaller factor is enough (handlers in an emulator take milliseconds). An interrupt that occurred too
# rarely to be compared with others of its name is compared with all handlers on its CPU.
LONG_NS, LONG_FAR = 100_000_000, 10

Name = tuple[str, str]  # the kind and name of a cause, without its originator


class Gap(NamedTuple):
    """An interval in which the detector did not run: start and length in ticks, and qn_gap.flags (detector.h)."""

    begin: int
    length: int
    flags: int = 0


class Cause(NamedTuple):
    """A kind (from call_nesting.py or above), a name, and in `by` the originator ("" if unknown).

    For HOST, `by` is the kind and name of the code that ran at that time, separated by a space; "" if no code ran.
    """

    kind: str
    name: str
    by: str = ""


@dataclass(slots=True)
class Total:
    """The number of occurrences of a cause (`count`), and its time in ticks.

    `longest`: its largest share of one gap; `gaps`: the number of gaps to which it contributed.
    """

    count: int = 0
    total: int = 0
    longest: int = 0
    gaps: int = 0


@dataclass(slots=True)
class Explained:
    """A gap, and the share of each cause in ticks, largest first."""

    gap: Gap
    parts: list[tuple[Cause, int]]


@dataclass(slots=True)
class Account:
    """The gaps of one CPU, and the totals of their causes."""

    explained: list[Explained] = field(default_factory=list)
    totals: dict[Cause, Total] = field(default_factory=dict)

    def add(self, gap: Gap, parts: Mapping[Cause, Total]) -> None:
        """Add a gap with the shares of its causes."""
        for cause, part in parts.items():
            total = self.totals.setdefault(cause, Total())
            total.count += part.count
            total.total += part.total
            total.longest = max(total.longest, part.total)
            total.gaps += 1
        shares = [(cause, part.total) for cause, part in parts.items()]
        self.explained.append(Explained(gap, sorted(shares, key=lambda share: -share[1])))


class Usual(NamedTuple):
    """The usual duration of a handler, in ticks.

    A duration above `limit` contains a pause; `share` is then attributed to the handler.
    """

    limit: int
    share: int


class Pauses:
    """The durations of the handlers on one CPU, which reveal pauses of the whole virtual machine inside handlers.

    The trace has the beginning and end of an interrupt, so a pause between them looks like a slow handler. The usual
    durations of handlers on this CPU in this run distinguish the two. This applies only to handlers, which the kernel
    runs to completion; tasks and work items may take any time.
    """

    def __init__(self, took: Iterable[tuple[Name, int]], ticks: Callable[[float], int]) -> None:
        """`took`: the durations of all frames, in ticks, of every kind; `ticks` converts nanoseconds to ticks."""
        self._ticks = ticks
        by_name: dict[Name, list[int]] = {}
        for name, length in took:
            if name[0] in HANDLERS:
                by_name.setdefault(name, []).append(length)
        every = sorted(length for lengths in by_name.values() for length in lengths)
        self._of_any = Usual(self._long(every), _rank(every, 0.5)) if len(every) > OTHERS else None
        many = {name: sorted(lengths) for name, lengths in by_name.items() if len(lengths) > OTHERS}
        self._of_name = {name: self._usual(name, lengths) for name, lengths in many.items()}

    def usual(self, name: Name) -> Usual | None:
        """The usual duration of a handler; None if unknown."""
        return self._of_name.get(name, self._of_any) if name[0] in HANDLERS else None

    def _usual(self, name: Name, lengths: list[int]) -> Usual:
        floor = self._ticks(BATCH_NS if name[0] == SOFTIRQ else FLOOR_NS)
        limit = min(max(PAUSE_FAR * _rank(lengths, QUANTILE), floor), self._long(lengths))
        return Usual(limit, _rank(lengths, 0.5))

    def _long(self, lengths: list[int]) -> int:
        return max(LONG_FAR * _rank(lengths, QUANTILE), self._ticks(LONG_NS))


def _rank(ordered: list[int], quantile: float) -> int:
    return ordered[int(quantile * (len(ordered) - 1))]


Namer = Callable[[Share], Cause]


def account(
    gaps: Sequence[Gap],
    frames: Sequence[Frame],
    window: tuple[int, int],
    namer: Namer,
    ticks: Callable[[float], int],
    whole_until: int,
    virtual: bool,
) -> Account:
    """Attribute the gaps of one CPU to the causes in its frames; gaps and frames are sorted by time.

    `window`: start and end of the observation, in ticks; `namer` returns the cause of a share; `ticks` converts
    nanoseconds to ticks; `whole_until`: the time in ticks until which the trace is complete; `virtual`: whether this is
    a virtual machine.
    """
    inside = _assign(gaps, frames)
    usual = _usual(gaps, inside)
    far = max(FAR * usual, ticks(FAR_NS))
    parts: list[list[list[Share]]] = []
    outsides: list[int] = []
    for gap, group in zip(gaps, inside, strict=True):
        took = [_within(gap, frame) for frame in group]
        beside = max(gap.length - sum(_overlap(gap, frame) for frame in group), 0)
        own = beside if beside <= far * len(group) else usual * len(group)
        for frame in took:
            frame[0].net += own // len(took)
        parts.append(took)
        outsides.append(beside - own)
    rest = _in_no_gap(window, frames, inside)
    pauses = Pauses(_lengths(parts, rest, namer) if virtual else (), ticks)
    done = Account()
    for gap, took, outside in zip(gaps, parts, outsides, strict=True):
        parts_of_gap: dict[Cause, Total] = {}
        for share in (share for frame in took for share in frame):
            cause, net = namer(share), share.net
            known = pauses.usual((cause.kind, cause.name))
            if known and net > known.limit:
                _add(parts_of_gap, Cause(HOST, HYPERVISOR, f"{cause.kind} {cause.name}"), net - known.share, 1)
                net = known.share
            _add(parts_of_gap, cause, net, share.count)
        if outside:
            _add(parts_of_gap, _outside(gap, bool(took), ticks, whole_until, virtual), outside, 1)
        done.add(gap, parts_of_gap)
    for share in rest:
        done.totals.setdefault(namer(share), Total()).count += share.count
    return done


def _add(parts: dict[Cause, Total], cause: Cause, took: int, count: int) -> None:
    total = parts.setdefault(cause, Total())
    total.total += took
    total.count += count


def _outside(gap: Gap, explained: bool, ticks: Callable[[float], int], whole_until: int, virtual: bool) -> Cause:
    if gap.begin + gap.length > whole_until and not explained:
        return Cause(UNKNOWN, "after the trace's end")
    if not explained and gap.length < ticks(STALL_NS):
        return Cause(STALL, "processor stall")
    return not_accounted(virtual)


def not_accounted(virtual: bool) -> Cause:
    """The cause of time that this kernel does not account for; never firmware, which only a count of SMIs can show."""
    return Cause(HOST, HYPERVISOR if virtual else OUTSIDE)


def name_smis(done: Account, counted: int | None) -> None:
    """Rename the cause OUTSIDE, given the number of SMIs that the processor counted during the measurement.

    The longest times with this cause, one per counted SMI, become FIRMWARE, and all others NOT_SMI. If `counted` is
    None (no count), nothing is renamed.
    """
    untraced = Cause(HOST, OUTSIDE)
    if counted is None or untraced not in done.totals:
        return
    found = [(took, at) for at, each in enumerate(done.explained) for cause, took in each.parts if cause == untraced]
    smis = {at for _, at in sorted(found, reverse=True)[:counted]}
    named = {True: Cause(HOST, FIRMWARE), False: Cause(HOST, NOT_SMI)}
    for took, at in found:
        cause = named[at in smis]
        done.explained[at].parts = [(cause, took) if part[0] == untraced else part for part in done.explained[at].parts]
        total = done.totals.setdefault(cause, Total())
        total.count += 1
        total.gaps += 1
        total.total += took
        total.longest = max(total.longest, took)
    del done.totals[untraced]


def _overlap(gap: Gap, frame: Frame) -> int:
    return max(min(frame.end, gap.begin + gap.length) - max(frame.begin, gap.begin), 0)


def _within(gap: Gap, frame: Frame) -> list[Share]:
    """The shares of a frame in a gap; the frame's time outside the gap is subtracted from the largest shares."""
    parts = shares(frame)
    outside = frame.length - _overlap(gap, frame)
    for part in sorted(parts, key=lambda part: -part.net):
        off = min(part.net, outside)
        part.net -= off
        outside -= off
    return parts


def _assign(gaps: Sequence[Gap], frames: Sequence[Frame]) -> list[list[Frame]]:
    """The outermost frames of each gap; a frame that overlaps several gaps belongs to the one it overlaps most."""
    inside: list[list[Frame]] = [[] for _ in gaps]
    at = 0
    for frame in frames:
        while at < len(gaps) and gaps[at].begin + gaps[at].length <= frame.begin:
            at += 1
        best, most = -1, 0
        for number in range(at, len(gaps)):
            if gaps[number].begin > frame.begin and gaps[number].begin >= frame.end:
                break
            if frame.length == 0 and frame.begin <= gaps[number].begin + gaps[number].length:
                best = number  # a frame of length 0
                break
            if (shared := _overlap(gaps[number], frame)) > most:
                best, most = number, shared
        if best >= 0:
            inside[best].append(frame)
    return inside


def _usual(gaps: Sequence[Gap], inside: Sequence[Sequence[Frame]]) -> int:
    """The median, over the gaps with frames, of the time outside frames per frame, in ticks; 0 without such gaps."""
    from statistics import median  # slow to load, and every run loads this module

    beside = [
        (gap.length - sum(_overlap(gap, frame) for frame in group)) // len(group)
        for gap, group in zip(gaps, inside, strict=True)
        if group
    ]
    return max(int(median(beside)), 0) if beside else 0


def _lengths(
    parts: Sequence[Sequence[Sequence[Share]]], rest: Sequence[Share], namer: Namer
) -> Iterator[tuple[tuple[str, str], int]]:
    inside = (share for group in parts for frame in group for share in frame)
    for share in chain(inside, rest):
        kind, name, _ = namer(share)
        yield (kind, name), share.net


def _in_no_gap(window: tuple[int, int], frames: Sequence[Frame], inside: Sequence[Sequence[Frame]]) -> list[Share]:
    """The shares of frames in the window that caused no gap, because they were shorter than the threshold."""
    seen = {id(frame) for group in inside for frame in group}
    unseen = (frame for frame in frames if id(frame) not in seen and window[0] <= frame.begin < window[1])
    return [share for frame in unseen for share in shares(frame)]

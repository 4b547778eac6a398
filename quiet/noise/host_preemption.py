"""Which interrupts took so long that it was not they: the host took the CPU while they ran.

The trace has an interrupt's begin and its end, and a pause of the whole virtual machine between them looks like a slow
handler. What tells them apart is how long the handlers take otherwise, on this CPU in this run. Only for what the
kernel runs to its end at once: how long a task or a work takes is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from quiet.noise.call_nesting import CALL, HRTIMER, IRQ, NMI, SOFTIRQ, TIMER, VECTOR

HANDLERS = frozenset({VECTOR, IRQ, SOFTIRQ, NMI, HRTIMER, TIMER, CALL})
OTHERS = 20  # fewer do not tell what is usual
QUANTILE = 0.9  # of all of a name: what is longer now and then is the handler's own, and so few pauses do not move it
FAR = 100  # a handler that has more to do than usual seldom has so many times as much
FLOOR_NS = 100_000  # below this, misses of cold caches and SMT siblings can make as much of a handler of a microsecond
# A softirq does what has piled up: NET_RX until netdev_budget_usecs (net/core/dev.c: 2 ms, or two ticks, which are
# 20 ms at 100 Hz), RCU for 3 ms (rcu_resched_ns in kernel/rcu/tree.c).
BATCH_NS = 20_000_000
# A healthy kernel's handlers hardly ever keep a CPU for so long (25 ticks at 250 Hz, five times the longest batch), so
# less is enough to tell (an emulator's handlers take milliseconds), also where an interrupt came too seldom to be
# compared with its own: then with all the handlers on its CPU.
LONG_NS, LONG_FAR = 100_000_000, 10

Name = tuple[str, str]  # of a cause: its kind and name, whoever sent it


class Usual(NamedTuple):
    """Of a name, in ticks: what takes more than `limit` was paused, and `share` is the handler's own then."""

    limit: int
    share: int


class Pauses:
    """How long each handler took on one CPU, to be asked whether one that took some time was paused."""

    def __init__(self, took: Iterable[tuple[Name, int]], ticks: Callable[[float], int]) -> None:
        """`took`: of everything that ran, in ticks, whatever its kind; `ticks` converts nanoseconds."""
        self._ticks = ticks
        self._by_name: dict[Name, list[int]] = {}
        for name, length in took:
            if name[0] in HANDLERS:
                self._by_name.setdefault(name, []).append(length)
        for lengths in self._by_name.values():
            lengths.sort()
        every = sorted(length for lengths in self._by_name.values() for length in lengths)
        self._of_any = Usual(self._long(every), _rank(every, 0.5)) if len(every) > OTHERS else None
        self._known: dict[Name, Usual | None] = {}

    def usual(self, name: Name) -> Usual | None:
        """What is usual for a name; None where that cannot be told."""
        if name not in self._known:
            self._known[name] = self._usual(name) if name[0] in HANDLERS else None
        return self._known[name]

    def _usual(self, name: Name) -> Usual | None:
        own = self._by_name.get(name, [])
        floor = self._ticks(BATCH_NS if name[0] == SOFTIRQ else FLOOR_NS)
        if len(own) > OTHERS:
            return Usual(min(max(FAR * _rank(own, QUANTILE), floor), self._long(own)), _rank(own, 0.5))
        return self._of_any

    def _long(self, lengths: list[int]) -> int:
        return max(LONG_FAR * _rank(lengths, QUANTILE), self._ticks(LONG_NS))


def _rank(ordered: list[int], quantile: float) -> int:
    return ordered[int(quantile * (len(ordered) - 1))]

"""Measure the current frequency of a core without a PMU, by timing chains of additions that run on it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pipe

from quiet.errors import QuietError
from quiet.machine import affinity
from quiet.noise import chains, clock
from quiet.noise._noise import ffi, lib
from quiet.noise.calibration import calibrate, periods
from quiet.noise.chains import Chain
from quiet.noise.clock import Clock

CHUNK = 100
EDGE, EDGES = 160, 4000
"""The number of additions in the shortest chains, which take hardly longer than two clock reads; and the number of such
chains.
"""
PROBE, PROBES = 3200, 300
MOST_EDGE_NS = 600
"""The limit for two clock reads, which take 10 to 100 ns, but thousands of ns if a hypervisor emulates them."""
LENGTH = 32_000
"""The number of additions in a chain. A chain takes about 10 us, so one step of a 10 ns clock is 0.1 % of its time."""
FEWEST = 200
CHAIN_BODY: int = lib.QN_CHAIN_BODY
_TAIL = 0.05
_CHANGED = 0.01
NO_CHAINS = "chains of additions exist only for x86-64 and 64-bit Arm"


@dataclass(frozen=True, slots=True)
class ChainFacts:
    """The properties of chains on this CPU.

    `edge`: the cost of timing a chain, and `step`: the clock's step, both in ticks; `ticks_per_cycle`: approximate;
    `obstacle`: the reason why chains cannot measure cycles on this CPU, "" if they can.
    """

    machine: str
    edge: float
    step: int
    ticks_per_cycle: float
    obstacle: str


@dataclass(frozen=True, slots=True)
class CoreFrequency:
    """The frequency of a CPU's core while its chains were timed; None if chains cannot measure it.

    `hz`: the median. `low_hz` and `high_hz` enclose 90 % of the uninterrupted chains. `below`: the share of these
    chains that ran more than 1 % below `high_hz`. `shared`: the share of chains during which another thread ran on the
    same core; if it is 1.0, the frequency may be too low by 1 %. `why`: the reason why the frequency is missing or
    imprecise.
    """

    cpu: int
    ticks_per_second: float
    ticks_per_cycle: float | None
    hz: float | None
    low_hz: float | None
    high_hz: float | None
    below: float | None
    shared: float | None
    chains: int
    why: str = ""


def time_chains(length: int, count: int) -> list[Chain]:
    """Time successive chains of `length` additions; `count` is rounded up to a multiple of CHUNK.

    Raises OSError on architectures other than x86-64 and 64-bit Arm.
    """
    timed: list[Chain] = []
    buffer = ffi.new("qn_chain[]", CHUNK)
    while len(timed) < count:
        if error := lib.qn_chains_run(length, CHUNK, buffer):
            raise OSError(-error, NO_CHAINS)
        timed += [Chain(each.narrow, each.wide) for each in buffer]
    return timed


def chain_facts() -> ChainFacts:
    """Determine how to time chains on the current CPU. Raises OSError on an architecture without chains."""
    first = clock.moment()
    timed = time_chains(PROBE, PROBES)
    edge = _edge()
    edge_ns = Clock(first, clock.moment()).ns(edge)
    narrow, wide = min(each.narrow for each in timed), min(each.wide for each in timed)
    machine, obstacle = platform.machine(), ""
    if wide >= chains.SCALAR * narrow or _carry_time() > chains.TRANSLATED[machine] * narrow:
        obstacle = chains.EMULATOR
    elif edge_ns > MOST_EDGE_NS:
        obstacle = f"two reads of the clock take {edge_ns:,.0f} ns: the hypervisor emulates them"
    return ChainFacts(machine, edge, calibrate(periods())[1], (narrow - edge) / PROBE, obstacle)


def _edge() -> float:
    short, double = list[Chain](), list[Chain]()
    for _ in range(EDGES // CHUNK):
        short += time_chains(EDGE, CHUNK)
        double += time_chains(2 * EDGE, CHUNK)
    return chains.chain_edge([each.narrow for each in short], [each.narrow for each in double])


def _carry_time() -> int:
    """The shortest time of chains of PROBE additions with carry, in ticks."""
    ticks = ffi.new("uint64_t[]", PROBES)
    lib.qn_carries_run(PROBE, PROBES, ticks)
    return min(int(each) for each in ticks)


def core_frequency(cpu: int, seconds: float) -> CoreFrequency:
    """Keep `cpu` busy with chains of additions for `seconds`, in a child process that is pinned to it, and return its
    core's frequency.

    Raises UsageError for an offline CPU, Refused if this process may not use it, and QuietError if the child is killed.
    """
    receiver, sender = Pipe(duplex=False)
    child = os.fork()
    if not child:
        try:
            answer: CoreFrequency | QuietError
            try:
                affinity.place(cpu)
                answer = _here(cpu, seconds)
            except QuietError as error:
                answer = error
            sender.send(answer)
        finally:
            lib.qn_exit(0)
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        raise QuietError(
            f"CPU {cpu}: the process that measures its frequency ended (killed?) without a result; "
            "run the command again"
        ) from None
    finally:
        receiver.close()
        os.waitpid(child, 0)
    if isinstance(answer, QuietError):
        raise answer
    return answer


def _here(cpu: int, seconds: float) -> CoreFrequency:
    timed: list[Chain] = []
    first = clock.moment()
    try:
        facts = chain_facts()
        until = time.monotonic() + seconds
        while len(timed) < FEWEST or time.monotonic() < until:
            timed += time_chains(LENGTH, CHUNK)
    except OSError as error:
        return CoreFrequency(cpu, 0.0, None, None, None, None, None, None, 0, error.strerror or str(error))
    return judged(cpu, timed, facts, Clock(first, clock.moment()).per_second)


def judged(cpu: int, timed: Sequence[Chain], facts: ChainFacts, ticks_per_second: float) -> CoreFrequency:
    """The frequency of a core from timed chains of LENGTH additions."""
    shown = chains.speed(timed, LENGTH, facts.step, facts.edge, facts.machine)
    if facts.obstacle or not shown.rates:
        why = facts.obstacle or shown.why
        return CoreFrequency(cpu, ticks_per_second, None, None, None, None, None, shown.shared, len(timed), why)
    rates, last = shown.rates, len(shown.rates) - 1
    lowest, highest = rates[round(_TAIL * last)], rates[round((1 - _TAIL) * last)]
    below = sum(rate > (1 + _CHANGED) * lowest for rate in rates) / len(rates)
    middle = rates[len(rates) // 2]
    return CoreFrequency(
        cpu=cpu,
        ticks_per_second=ticks_per_second,
        ticks_per_cycle=middle,
        hz=ticks_per_second / middle,
        low_hz=ticks_per_second / highest,
        high_hz=ticks_per_second / lowest,
        below=below,
        shared=shown.shared,
        chains=len(timed),
        why=shown.why,
    )

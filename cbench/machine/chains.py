"""Calibrate chains of additions around trials (quiet/noise/c/chain.h), and decide whether they measure cycles."""

from __future__ import annotations

from math import ceil

from cbench._cbench import ffi, lib
from cbench.model import Calibration
from cbench.stats.quantum import quantum
from quiet import CHAIN_BODY, chain_facts

DELTAS = 20_000
SHORTEST, LONGEST, SINGLE = 16_000, 256_000, 96_000
"""The minimum and maximum length of the chains around a trial, in additions; and the length if the trial's duration is
unknown.
"""
SHARE = 0.6
"""A chain's length as a share of the trial's cycles. The two narrow and two wide chains of a trial take 2.5 lengths. An
untimed call of the workload and some 400,000 cycles for reading the kernel's counts are added to that."""


def ticks_deltas() -> list[int]:
    """Differences between two reads of the clock around 0 to 63 multiplications."""
    deltas = ffi.new("uint64_t[]", DELTAS)
    lib.cb_ticks_deltas(deltas, DELTAS)
    return list(deltas)


def calibration(length: int = 0) -> Calibration:
    """The calibration of chains of this length on the current CPU; its `obstacle` is set if chains do not measure
    cycles.
    """
    facts = chain_facts()
    step = quantum(ticks_deltas())
    return Calibration(step, facts.edge, length, facts.machine, facts.ticks_per_cycle, facts.obstacle)


def length_for(cycles: float) -> int:
    """The length, in additions, of the chains around a trial of roughly this many cycles."""
    length = min(max(SHARE * cycles, SHORTEST), LONGEST)
    return ceil(length / CHAIN_BODY) * CHAIN_BODY

"""Define the parts of a screening experiment's result (result.py) that compare hosts. Unknown numbers are None."""

from __future__ import annotations

from dataclasses import dataclass

from cbench.machine.passport import UnlikeFact

Ends = tuple[float, float]
"""The ends of an interval."""


@dataclass(frozen=True, slots=True)
class HostEffect:
    """An effect on one host. `n`: the number of iterations, or of batches for a hard factor; `percent`: in % of the
    mean of all treatments; `interval`: from this host alone; `p_effect`: the uncorrected p-value of the difference
    from the mean of the other hosts' effects.
    """

    host: str
    n: int
    effect: float | None
    percent: float | None
    interval: Ends | None
    p_effect: float | None


@dataclass(frozen=True, slots=True)
class FactorByHost:
    """A factor's effect, second level minus first, on each host. `p_interaction`: the p-value of the difference between
    hosts; `p_holm`: this p-value, corrected for all responses and factors.
    """

    factor: str
    levels: tuple[str, str]
    p_interaction: float | None
    hosts: tuple[HostEffect, ...]
    p_holm: float | None = None
    significant: bool = False


@dataclass(frozen=True, slots=True)
class HostLevel:
    """A host's median in the response's unit. `level_pct`: the difference of this median from the geometric mean
    of the other hosts' medians, in %; `p_level`: the p-value of this difference.
    """

    host: str
    median: float | None
    level_pct: float | None
    p_level: float | None


@dataclass(frozen=True, slots=True)
class ResponseHosts:
    """The results of one response by host, for a screen on several hosts."""

    levels: tuple[HostLevel, ...]
    effects: tuple[FactorByHost, ...]


@dataclass(frozen=True, slots=True)
class UnlikeScreenHost:
    """The test of one host against the others. `what`: "level", or the effect; `away_pct`: the difference of the level
    in %, None for an effect; `p_holm`: `p` corrected for all hosts, responses and effects.
    """

    host: str
    response: str
    what: str
    away_pct: float | None
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class ScreenHosts:
    """The hosts of a screen. `unlike`: every test of a host against the others, smallest p first, significant or not;
    `passports`: the facts that differ between hosts.
    """

    names: tuple[str, ...]
    unlike: tuple[UnlikeScreenHost, ...]
    passports: tuple[UnlikeFact, ...] = ()

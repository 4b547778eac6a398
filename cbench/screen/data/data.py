"""Define the input of a screening analysis, which is read from a screen's store or a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from cbench.machine.passport import UnlikeFact
from cbench.screen.design.factorial import Factor, named

Codes = NDArray[np.int32]
Values = NDArray[np.float64]
COMPLETE = "complete"
UNQUESTIONED = "without questionable treatments"


@dataclass(frozen=True, slots=True)
class Filter:
    """A named choice of treatments, made for the analysis. `keep`: one flag for each treatment."""

    name: str
    words: str
    keep: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ResponseSeries:
    """All values of one response of one workload. Each row is a trial; rows are in chronological order.

    `treatment`, `iteration`, `batch`, `sequence`: numbers from 0, `sequence` over the whole screen; `value`: NaN if the
    trial failed. `unobtainable`: treatments that are declared to have no values of this response.
    """

    name: str
    workload: str
    response: str
    unit: str
    better: str
    treatment: Codes
    iteration: Codes
    batch: Codes
    sequence: Codes
    value: Values
    unobtainable: frozenset[int] = frozenset()
    levels: tuple[float, ...] = ()
    """With several hosts, each host's original median, NaN if it has no value; `value` is then scaled or shifted to a
    common level.
    """

    def of(self, treatment: int) -> Values:
        """The values of a treatment in chronological order; failed trials are omitted. Shape (n,)."""
        values = self.value[self.treatment == treatment]
        return np.asarray(values[~np.isnan(values)])

    def timed(self, treatment: int) -> tuple[Codes, Values]:
        """The values of a treatment with the numbers of their trials in the whole screen. Two arrays of shape (n,)."""
        rows = (self.treatment == treatment) & ~np.isnan(self.value)
        return self.sequence[rows], self.value[rows]

    def kept(self, keep: NDArray[np.bool_]) -> ResponseSeries:
        """The series with only the trials of some treatments. `keep`: one flag for each treatment."""
        rows = keep[self.treatment]
        return replace(
            self,
            treatment=self.treatment[rows],
            iteration=self.iteration[rows],
            batch=self.batch[rows],
            sequence=self.sequence[rows],
            value=self.value[rows],
        )


@dataclass(frozen=True, slots=True)
class Data:
    """A screen's data. `treatments`: the level of each factor, per treatment; `questionable`: the questionable
    treatments, with reasons ("" if unknown); `filters`: the abridgments; `batches`: batch names in chronological order.
    """

    name: str
    factors: tuple[Factor, ...]
    treatments: tuple[tuple[int, ...], ...]
    series: tuple[ResponseSeries, ...]
    batches: tuple[str, ...] = ("",)
    questionable: Mapping[int, str] = field(default_factory=dict)
    filters: tuple[Filter, ...] = ()
    alpha: float = 0.05
    confidence: float = 0.95
    seed: int = 1
    about: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    excluded: int = 0
    """The number of treatments of the full factorial design that were never planned."""
    randomised: bool = False
    """Whether the values of different treatments are unpaired: rows are in any order, and iterations are unknown."""
    plot_blocks: tuple[int, ...] = ()
    """The block (replicate) of whole plots to which each batch belongs; () if unknown."""
    columns: tuple[tuple[str, str], ...] = ()
    """The columns of a table, each with its role."""
    hosts: tuple[str, ...] = ()
    """The names of the hosts, if there are several."""
    host_of_batch: tuple[int, ...] = ()
    """The number of each batch's host; () for one host."""
    passports: tuple[UnlikeFact, ...] = ()
    """Facts in which the hosts differ."""
    iterations_left: int = 0
    """The number of iterations that an unfinished experiment, on any host, has not finished."""

    def label(self, treatment: int) -> str:
        """A treatment's levels as text, such as `os=1 fp=0 prf=2`."""
        return named(self.factors, self.treatments[treatment])

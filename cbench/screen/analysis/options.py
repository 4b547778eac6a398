"""Define and check the options of `cbench screen analyze` and `cbench screen report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quiet import UsageError


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """The validated options of an analysis. `alpha`, `confidence`, `seed`: None uses the experiment's own value.
    `confidence`: values below 1 are shares, others percentages. `abridgment`: the name of a filter;
    `only` and `minus`: filters given on the command line; `exclude`: omit questionable treatments. `subsamples`:
    subsamples of each size in the study of intervals, 0 for no study. `factors`, `values`, `hard`, `block`, `batch`:
    column names in a table; `by_order`: the n-th rows of all treatments form iteration n. Raises UsageError, with the
    name of the option, for invalid values.
    """

    alpha: float | None = None
    confidence: float | None = None
    seed: int | None = None
    abridgment: str | None = None
    only: Sequence[str] = ()
    minus: Sequence[str] = ()
    exclude: bool = False
    subsamples: int = 1000
    factors: Sequence[str] = ()
    values: Sequence[str] = ()
    hard: Sequence[str] = ()
    block: str = ""
    batch: str = ""
    by_order: bool = False

    def __post_init__(self) -> None:
        if self.alpha is not None and not 1e-9 <= self.alpha < 1:
            raise UsageError(f"--alpha {self.alpha:g}: must be at least 1e-9 and below 1, such as 0.05")
        if (level := self.confidence) is not None:
            object.__setattr__(self, "confidence", level / 100 if level >= 1 else level)
            if not 0.5 <= (self.confidence or 0) <= 0.9999:
                raise UsageError(f"--ci-level {level:g}: must be a level such as 95, from 50 to 99.99")
        if not 0 <= self.subsamples <= 1_000_000:
            raise UsageError(f"--subsamples {self.subsamples}: must be from 0 (no study) to 1,000,000")
        if self.seed is not None and not 0 <= self.seed < 2**63:
            raise UsageError(f"--seed {self.seed}: must be from 0 to 2^63 - 1")

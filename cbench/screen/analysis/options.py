"""The options of `cbench screen analyze` and `report`, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quiet import UsageError

SIZES = (5, 10, 20, 40, 80, 160, 320, 640)


@dataclass(frozen=True, slots=True)
class Studying:
    """How the subsampling study is made. `subsamples`: of each size, 0 for no study."""

    subsamples: int = 1000
    replicates: int = 1000
    sizes: tuple[int, ...] = SIZES
    replace: bool = False
    treatments: int | None = None
    """Of a response: that of the middle spread, or several from the least to the largest. None: MOST_STUDIED in all."""


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """`alpha`, `confidence`, `seed`: None for the experiment's own. `confidence`: a share, or in percent from 1 on.
    `abridgment`: the name of a filter; `only` and `minus`: filters of the command line; `exclude`: leave questionable
    treatments out. `factors`, `values`, `hard`: columns of a table. Raises UsageError, which names the option."""

    alpha: float | None = None
    confidence: float | None = None
    seed: int | None = None
    abridgment: str | None = None
    only: Sequence[str] = ()
    minus: Sequence[str] = ()
    exclude: bool = False
    digits: int | None = None
    studying: Studying = field(default_factory=Studying)
    factors: Sequence[str] = ()
    values: Sequence[str] = ()
    hard: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.alpha is not None and not 0 < self.alpha < 1:
            raise UsageError(f"--alpha {self.alpha:g}: between 0 and 1, such as 0.05")
        if (level := self.confidence) is not None:
            object.__setattr__(self, "confidence", level / 100 if level >= 1 else level)
            if not 0.5 <= (self.confidence or 0) <= 0.9999:
                raise UsageError(f"--ci-level {level:g}: a level such as 95, from 50 to 99.99")
        if self.digits is not None and self.digits not in (1, 2):
            raise UsageError(f"--digits {self.digits}: 1 or 2 significant digits of the standard uncertainty")
        if not 0 <= self.studying.subsamples <= 1_000_000:
            raise UsageError(f"--subsamples {self.studying.subsamples}: from 0 (no study) to 1,000,000")
        if self.seed is not None and not 0 <= self.seed < 2**63:
            raise UsageError(f"--seed {self.seed}: from 0 to 2^63 - 1")

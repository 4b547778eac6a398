"""What is said of one effect."""

from __future__ import annotations

from dataclasses import dataclass

from cbench.screen.design.model_matrix import Effect

OK, ONE_LEVEL, ALIASED, EMPTY, NO_PLOTS = "ok", "one level", "aliased", "empty cells", "no whole plots"


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether an effect (numbers of its factors: one or two) can be tested.

    `why`: OK; ONE_LEVEL: only one level of a factor is there; ALIASED: not to be told from `aliases` (names of
    effects); EMPTY: cells without treatments leave no two levels of each factor to compare; NO_PLOTS: a hard factor is
    in it, and no combination of the hard factors' levels has a second batch. `df`: of it that can be told; below `full`
    where cells are empty or it is partly aliased. `words`: one sentence, "" where all is well. An effect that is OK may
    have `aliases` too: interactions that would be seen as it.
    """

    factors: Effect
    name: str
    why: str
    df: int
    full: int
    aliases: tuple[str, ...]
    words: str

    @property
    def ok(self) -> bool:
        """Whether it can be tested."""
        return self.why == OK

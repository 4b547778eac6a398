"""Does a value depend on the boot? Within each level of the factor that the boots change: or its effect would seem one.

D. Flater, NIST Technical Note 1855 (2014), section 4.5.1, decides by eye. Here: Kruskal and Wallis's test over the
boots, and one-way random effects with n0 = (N - sum n_i^2/N)/(k - 1) for unequal numbers: S. R. Searle, G. Casella, C.
E. McCulloch, Variance Components (1992), section 3.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cbench.screen.stats.effects import Values
from cbench.stats.distributions import f_sf
from cbench.stats.interval import exponent, scaled
from cbench.stats.kruskal import kruskal
from cbench.stats.multiple_testing import HOLM, adjusted


@dataclass(frozen=True, slots=True)
class BootCheck:
    """Within one level.

    `boots`: their numbers; `n`, `means`: of each; `h`, `p`: Kruskal and Wallis; `f`, `p_f`: one-way analysis of
    variance (None where nothing varies within boots); `ms_between`, `ms_within` in the values' unit squared;
    `var_boot`: variance between boots, at least 0; `icc`: its share in all variance, from 0 to 1, None where nothing
    varies; `p_holm`: p over all levels of the call; `depends`: it is below alpha.
    """

    level: int
    boots: tuple[int, ...]
    n: tuple[int, ...]
    means: Values
    h: float
    p: float
    f: float | None
    p_f: float | None
    ms_between: float
    ms_within: float
    var_boot: float
    icc: float | None
    p_holm: float
    depends: bool


def boot_check(samples: Sequence[Values], levels: Sequence[int], alpha: float = 0.05) -> tuple[BootCheck, ...]:
    """`samples`: the values of each boot, in the order of boots (NaN left out); `levels`: the hard level of each.

    One result for each level with two boots or more that have values, and more values than boots; the others are left
    out. ValueError for lengths that differ.
    """
    known = [np.asarray(each, dtype=np.float64) for each in samples]
    known = [each[~np.isnan(each)] for each in known]
    numbers: dict[int, list[int]] = {}
    for boot, (sample, level) in enumerate(zip(known, levels, strict=True)):
        if sample.size:
            numbers.setdefault(int(level), []).append(boot)
    able = [
        (level, boots)
        for level, boots in sorted(numbers.items())
        if 1 < len(boots) < sum(known[each].size for each in boots)
    ]
    tests = [kruskal([known[each] for each in boots]) for _, boots in able]
    holm = adjusted([test.p if test else np.nan for test in tests], HOLM)
    found = []
    for (level, boots), test, p_holm in zip(able, tests, holm.tolist(), strict=True):
        assert test is not None
        found.append(_check(level, boots, [known[each] for each in boots], (test.h, test.p), (p_holm, alpha)))
    return tuple(found)


def _check(
    level: int, boots: Sequence[int], samples: Sequence[Values], test: tuple[float, float], holm: tuple[float, float]
) -> BootCheck:
    sizes = np.array([each.size for each in samples])
    power = max(exponent(each) for each in samples)
    samples = [np.ldexp(each, -power) for each in samples]
    means = np.array([each.mean() for each in samples])
    n, k = int(sizes.sum()), len(samples)
    between = float(sizes @ (means - sizes @ means / n) ** 2) / (k - 1)
    within = float(sum(((each - mean) ** 2).sum() for each, mean in zip(samples, means, strict=True))) / (n - k)
    # What is left of equal values by rounding is no variance.
    least = (1e-14 * float(np.abs(means).max())) ** 2
    between, within = (0.0 if each <= least else each for each in (between, within))
    var = max(0.0, (between - within) * (k - 1) / (n - float(sizes @ sizes) / n))
    f = between / within if within else None
    return BootCheck(
        level=level,
        boots=tuple(boots),
        n=tuple(int(size) for size in sizes),
        means=np.ldexp(means, power),
        h=test[0],
        p=test[1],
        f=f,
        p_f=None if f is None else f_sf(f, k - 1, n - k),
        ms_between=scaled(between, 2 * power),
        ms_within=scaled(within, 2 * power),
        var_boot=scaled(var, 2 * power),
        icc=var / (var + within) if var + within else None,
        p_holm=holm[0],
        depends=holm[0] < holm[1],
    )

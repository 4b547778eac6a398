"""Test whether values depend on the boot (batch), within each combination of the hard factors' levels.

D. Flater, NIST Technical Note 1855 (2014), section 4.5.1, decides by eye. This module uses the Kruskal-Wallis test
over the boots, and one-way random effects with n0 = (N - sum n_i^2/N)/(k - 1) for unequal numbers: S. R. Searle, G.
Casella, C. E. McCulloch, Variance Components (1992), section 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cbench.results import KEY
from cbench.screen.stats.effects import Values
from cbench.stats.distributions import f_sf
from cbench.stats.interval import exponent, scaled
from cbench.stats.kruskal import kruskal
from cbench.stats.multiple_testing import HOLM, adjusted


@dataclass(frozen=True, slots=True)
class BootCheck:
    """The differences between boots within one level.

    `level`: the levels of the hard factors as text, "" without hard factors; `batches`: names of the boots; `n`,
    `means`: count and mean of each; `h`, `p`: Kruskal-Wallis test; `f`, `p_f`: one-way analysis of variance (None if
    nothing varies within boots); `ms_between`, `ms_within`: mean squares in the values' unit squared; `var_boot`:
    variance between boots, at least 0; `icc`: its share of the total variance, from 0 to 1, None if nothing varies;
    `p_holm`: `p` corrected for all tested levels; `depends`: whether `p_holm` is below alpha.
    """

    level: str
    batches: tuple[str, ...]
    n: tuple[int, ...]
    means: tuple[float, ...]
    h: float = field(metadata={KEY: "H"})
    p: float
    f: float | None
    p_f: float | None
    ms_between: float
    ms_within: float
    var_boot: float
    icc: float | None
    p_holm: float
    depends: bool


def boot_check(samples: Mapping[str, Mapping[str, Values]], alpha: float = 0.05) -> tuple[BootCheck, ...]:
    """Test the boots of each level. `samples`: the values of each boot (NaN omitted), by level and name of the boot.

    Returns one result for each level that has at least two boots with values, and more values than boots; other levels
    are omitted.
    """
    checks = []
    for level, boots in samples.items():
        known = {batch: values[~np.isnan(values)] for batch, values in boots.items()}
        known = {batch: values for batch, values in known.items() if values.size}
        if 1 < len(known) < sum(values.size for values in known.values()):
            checks.append(_check(level, known))
    holm = adjusted([each.p for each in checks], HOLM).tolist()
    return tuple(replace(each, p_holm=p, depends=p < alpha) for each, p in zip(checks, holm, strict=True))


def _check(level: str, boots: Mapping[str, Values]) -> BootCheck:
    test = kruskal(list(boots.values()))
    assert test is not None
    power = max(exponent(each) for each in boots.values())
    samples = [np.ldexp(each, -power) for each in boots.values()]
    sizes = np.array([each.size for each in samples])
    means = np.array([each.mean() for each in samples])
    n, k = int(sizes.sum()), len(samples)
    between = float(sizes @ (means - sizes @ means / n) ** 2) / (k - 1)
    within = float(sum(((each - mean) ** 2).sum() for each, mean in zip(samples, means, strict=True))) / (n - k)
    # Rounding errors of equal values do not count as variance.
    least = (1e-14 * float(np.abs(means).max())) ** 2
    between, within = (0.0 if each <= least else each for each in (between, within))
    var = max(0.0, (between - within) * (k - 1) / (n - float(sizes @ sizes) / n))
    f = between / within if within else None
    return BootCheck(
        level=level,
        batches=tuple(boots),
        n=tuple(sizes.tolist()),
        means=tuple(np.ldexp(means, power).tolist()),
        h=test.h,
        p=test.p,
        f=f,
        p_f=None if f is None else f_sf(f, k - 1, n - k),
        ms_between=scaled(between, 2 * power),
        ms_within=scaled(within, 2 * power),
        var_boot=scaled(var, 2 * power),
        icc=var / (var + within) if var + within else None,
        p_holm=test.p,
        depends=False,
    )

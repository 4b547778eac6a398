"""Format the verdict on a screen as text, derived only from the typed result."""

from __future__ import annotations

from collections.abc import Sequence

from cbench.report.text import MOST, counted, some
from cbench.screen.analysis.host_results import UnlikeScreenHost
from cbench.screen.analysis.plots import PLOTS
from cbench.screen.analysis.result import EffectResult, FirstRunResult, ResponseResult, ScreenResult
from cbench.screen.stats.anova import ANOVA
from cbench.screen.stats.block_tests import RANKS
from cbench.screen.stats.lenth import LENTH
from cbench.screen.stats.practical_significance import Materiality
from cbench.screen.stats.resolution import coarse_words

USUAL = 40
"""The usual number of values in a sample, which NIST Technical Note 1855 (2014) considers insufficient."""
NOTHING = "nothing could be tested"


def verdict(result: ScreenResult) -> list[str]:
    """The verdict's lines, the most important first."""
    lines = [_matters(result), *_seen_with(result), *_alone(result), *_without_replicates(result)]
    lines += [*_practice(result), *_same_everywhere(result), *_whole_plots(result), *_boots(result), *_hosts(result)]
    return [*lines, *_first_runs(result), *(f"beware: {each}" for each in _beware(result))]


def nothing_told(result: ScreenResult) -> bool:
    """Whether nothing could be tested."""
    return not result.tests


def tested_by(result: ScreenResult) -> str:
    """The methods that tested the effects, as text."""
    words = {
        RANKS: "signed ranks of the differences within iterations",
        PLOTS: "split-plot analysis of variance, against the batches",
        ANOVA: "analysis of variance of the single values",
        LENTH: "Lenth's pseudo standard error, by simulation",
    }
    used = {each.test.by for *_, each in result.every_effect if each.test}
    return "; ".join(said for by, said in words.items() if by in used) or "none"


def corrected_by(result: ScreenResult) -> str:
    """The corrections for several tests that the effects use, as text."""
    families = {each.test.p_family is not None for *_, each in result.every_effect if each.test}
    words = {False: "Holm's correction", True: "the step-down Lenth correction"}
    return " or, without replicates, ".join(said for of_lenth, said in words.items() if of_lenth in families)


def amount(value: float, unit: str, signed: bool = False) -> str:
    """The value with three digits and its unit."""
    shown = f"{value:+.3g}" if signed else f"{value:.3g}"
    if "e" in shown and 1e-6 <= abs(value) < 1e9:
        shown = f"{float(shown):+,.10g}" if signed else f"{float(shown):,.10g}"
    return f"{shown} {unit}".strip()


def _matters(result: ScreenResult) -> str:
    tests = result.tests
    if not tests:
        return f"{NOTHING}: {_why_nothing(result)}"
    by_effect: dict[str, list[tuple[float, str]]] = {}
    for name, row, effect, each in result.every_effect:
        if each.significant:
            by_effect.setdefault(effect, []).append((-abs(each.percent or 0.0), _by(name, row, each, result)))
    many = f"{counted(tests, 'effect')} tested in {counted(len(result.responses), 'response')}"
    if not by_effect:
        left = result.design.iterations_left
        so_far = f" so far, with {counted(left, 'iteration')} left" if left else ""
        return f"effects that matter: none found{so_far} ({many}, family-wise error {result.alpha:g})"
    said = [
        f"{effect} ({some([words for _, words in sorted(each)])})"
        for effect, each in sorted(by_effect.items(), key=lambda item: (min(item[1])[0], item[0]))
    ]
    shared = set(_shared(result))
    what = (
        "effects that matter, or interactions aliased with them" if shared & set(by_effect) else "effects that matter"
    )
    return f"{what}: {some(said)}; {many}, family-wise error {result.alpha:g}"


def _shared(result: ScreenResult) -> dict[str, tuple[str, ...]]:
    """The names of main effects, each with the interactions of other factors that are aliased with it."""
    used = next(each for each in result.design.sets if each.name == result.filter.name)
    return {each.effect: each.aliases for each in used.seen_with or ()}


def _alone(result: ScreenResult) -> list[str]:
    """A sentence on effects that are significant individually but not after correction, and on the number of such
    effects expected by chance; [] if there are none.
    """
    alone = [
        f"{f'{name}: ' if len(result.responses) > 1 else ''}{effect} ({_size(each, row.unit)}p {each.p:.2g})"
        for name, row, effect, each in result.every_effect
        if each.p is not None and each.p < result.alpha and not each.significant
    ]
    if not alone:
        return []
    expected = result.tests * result.alpha
    return [
        f"significant individually but not after correction: {some(alone)}; of "
        f"{counted(result.tests, 'inert effect')}, {expected:.2g} would be significant on average: repeat the "
        "experiment"
    ]


def _size(each: EffectResult, unit: str) -> str:
    return "" if each.effect is None else f"{'' if each.signed else 'up to '}{amount(each.fair, unit, each.signed)}, "


def _by(name: str, row: ResponseResult, each: EffectResult, result: ScreenResult) -> str:
    """An effect as text, such as `wall +0.19 s, +2.6 %, 0.15 to 0.23`; without the response's name if there is only one
    response.
    """
    prefix = f"{name} " if len(result.responses) > 1 else ""
    if each.effect is None:
        return prefix.strip() or "its size is unknown"
    size = amount(each.fair, row.unit, signed=each.signed)
    said = f"{prefix}{'' if each.signed else 'up to '}{size}{' adjusted' if each.is_adjusted else ''}"
    if each.percent is not None and abs(each.percent) < 1e4:
        said += f", {amount(each.percent, '%', each.signed)}"
    if each.interval is not None:
        said += f", {each.interval[0]:.3g} to {each.interval[1]:.3g}"
    return said


def _seen_with(result: ScreenResult) -> list[str]:
    """Sentences on detected main effects that may be interactions of other factors."""
    shared = _shared(result)
    found = dict.fromkeys(effect for *_, effect, each in result.every_effect if each.significant and effect in shared)
    if not found:
        return []
    if len(found) == 1:
        (effect,) = found
        return [f"{effect} cannot be separated from {some(shared[effect])}, which the test assumes to be inert"]
    example = next(iter(found))
    return [
        f"{some(list(found))} cannot be separated from interactions of other factors, which the test assumes to be "
        f"inert ({example} from {some(shared[example])}): the real effect may be one of these; more runs would "
        "separate them"
    ]


def _without_replicates(result: ScreenResult) -> list[str]:
    """A sentence for each response that is tested by Lenth's method."""
    lines = []
    for name, row in result.responses.items():
        if row.lenth is None:
            continue
        prefix = f"{name}: " if len(result.responses) > 1 else ""
        error = amount(row.lenth.pse, row.unit)
        lines.append(
            f"{prefix}no treatment has a second value: {len(row.lenth.contrasts)} contrasts are compared with each "
            f"other (Lenth's pseudo standard error {error}), which assumes that most of them are inert"
        )
    return lines


def _why_nothing(result: ScreenResult) -> str:
    why = [each.why for *_, each in result.every_effect if each.why]
    why += [row.why for row in result.responses.values() if row.why]
    return some(list(dict.fromkeys(why))) or "there are no effects"


def _practice(result: ScreenResult) -> list[str]:
    """Sentences that state whether samples of the usual size would show the effects."""
    lines = []
    for name, row in result.responses.items():
        material = row.material
        if not isinstance(material, Materiality) or material.median_effect is None or material.largest_effect is None:
            continue
        if material.largest_effect == 0:
            lines.append(f"{name}: there is no effect")
            continue
        median, unit = material.median_effect, row.unit
        largest = amount(material.largest_effect, unit)
        said = f"{name}: the median main effect is {amount(median, unit)}, the largest {largest}"
        if material.range:
            said += f", where values of one treatment range over {amount(material.range, unit)}"
        lines.append(said + _enough(material, median, unit))
    if not lines:
        return []
    more = [f"{MOST} responses are shown; the other {len(lines) - MOST:,} are in --json"] if len(lines) > MOST else []
    return [f"practical significance: {lines[0]}", *lines[1:MOST], *more]


def _enough(material: Materiality, median: float, unit: str) -> str:
    """A sentence on the effects that a usual number of values can show, and on the number of values with intervals
    narrower than the effects.
    """
    widths = {(each.method, each.n): each.median_width for each in material.widths}
    method = "BCa" if any(each == "BCa" for each, _ in widths) else "t"
    sizes = sorted(n for each, n in widths if each == method)
    if not sizes:
        own = material.own
        width = own.bca if own.bca is not None else own.t
        return "" if width is None or own.n < 2 else _shown(material, median, own.n, width, unit)
    usual = next((n for n in reversed(sizes) if n <= USUAL), sizes[0])
    said = _shown(material, median, usual, widths[method, usual], unit)
    enough = material.enough.get(method)
    if enough is None:
        return (
            f"{said}; intervals of {sizes[-1]:,} values, the most that were studied, are wider than the median effect"
        )
    return f"{said}; intervals of {enough:,} values or more are narrower than the median effect"


def _shown(material: Materiality, median: float, n: int, width: float, unit: str) -> str:
    if width < median:
        what = "less than most effects"
    elif width < (material.largest_effect or 0.0):
        what = "less than the largest effect and more than most others"
    else:
        what = "more than any effect: two treatments alone would not show it"
    return f"; an interval of one treatment's {n:,} values is {amount(width, unit)} wide, {what}"


def _same_everywhere(result: ScreenResult) -> list[str]:
    """Sentences on block plots in which all boxes agree, for factors that are significant by their tests; the plots are
    not further tests.
    """
    by_factor: dict[str, list[str]] = {}
    for name, row in result.responses.items():
        for factor, plot in row.blocks.items():
            if plot and plot.consistent and plot.able and row.effects[factor].significant:
                said = f"{name} in {plot.n} boxes, chance {plot.chance:.2g}"
                by_factor.setdefault(factor, []).append(said)
    if not by_factor:
        return []
    named = [f"{factor} ({some(each)})" for factor, each in by_factor.items()]
    return [f"the same order of levels whatever the other factors are: {some(named)}"]


def _whole_plots(result: ScreenResult) -> list[str]:
    """Sentences on effects that the batches cannot test, and on effects that are significant within batches but not
    between them.
    """
    refused: dict[str, list[str]] = {}
    for name, row in result.responses.items():
        for each in row.split_plot.refused if row.split_plot else ():
            refused.setdefault(each, []).append(name)
    lines = [
        said if len(names) == len(result.responses) else f"{some(names)}: {said}" for said, names in refused.items()
    ]
    for name, _, effect, tested in result.every_effect:
        within = tested.test.p_within if tested.test else None
        if within is not None and within * result.tests < result.alpha and not tested.significant:
            prefix = f"{name}: " if len(result.responses) > 1 else ""
            lines.append(
                f"{prefix}{effect} differs within these batches (p {within:.2g}), but not equally in all of them "
                f"(against the batches p {tested.p:.2g}): this shows nothing about other batches; take more batches"
            )
    return lines


def _boots(result: ScreenResult) -> list[str]:
    dependent = [
        f"{name}{' at ' + each.level if each.level else ''} ({100 * (each.icc or 0):.0f} % of the variance)"
        for name, row in result.responses.items()
        for each in row.boots
        if each.depends
    ]
    own = f"tested by itself, error rate {result.alpha:g} for each response"
    return [f"values depend on the batch: {some(dependent)}; {own}"] if dependent else []


def _hosts(result: ScreenResult) -> list[str]:
    """Sentences on effects that differ between hosts, and on hosts that differ from the others; these are two separate
    families.
    """
    hosts = result.hosts
    if hosts is None:
        return []
    lines = [
        f"{counted(len(hosts.names), 'host')}: values are compared after each host's values are scaled to one level"
    ]
    own = f"tested by themselves, error rate {result.alpha:g}"
    differ = [
        f"{name} {each.factor}: {each.levels[1]} against {each.levels[0]} (p {each.p_holm:.2g})"
        for name, row in result.responses.items()
        for each in (row.hosts.effects if row.hosts else ())
        if each.significant
    ]
    unlike = [
        f"{each.host} ({each.response}, {_unlike(each)}, p {each.p_holm:.2g})"
        for each in hosts.unlike
        if each.p_holm < result.alpha
    ]
    lines += [f"the effect differs between hosts: {some(differ)}; {own}"] if differ else []
    return lines + ([f"unlike the other hosts: {some(unlike)}; {own}"] if unlike else [])


def _unlike(each: UnlikeScreenHost) -> str:
    if each.away_pct is None:
        return f"another effect of {each.what}"
    return f"{abs(each.away_pct):.3g} % {'above' if each.away_pct > 0 else 'below'} them"


def _first_runs(result: ScreenResult) -> list[str]:
    most = max((each.p or 0.0 for row in result.responses.values() for each in _flagged(row)), default=0.0)
    flagged = [
        f"{name} {each.name}"
        for name, row in result.responses.items()
        for each in row.treatments
        if each.first_run and each.first_run.flagged
    ]
    own = f"p {most:.2g} at most, each tested individually"
    return [f"the first value stands out from all others of its treatment: {some(flagged)} ({own})"] if flagged else []


def _flagged(row: ResponseResult) -> list[FirstRunResult]:
    return [each.first_run for each in row.treatments if each.first_run and each.first_run.flagged]


def _beware(result: ScreenResult) -> list[str]:
    design, chosen = result.design, result.filter
    lines = list(design.warnings)
    doubtful = [each.name for each in design.treatments if each.questionable is not None and each.kept]
    if doubtful:
        are = "is" if len(doubtful) == 1 else "are"
        lines.append(
            f"{some(doubtful)} {are} questionable and counted; --exclude-questionable omits questionable treatments"
        )
    used = next(each for each in design.sets if each.name == chosen.name)
    if used.balanced is False:
        lines.append(
            f"{chosen.name}: not balanced in {some(used.unbalanced or ())}: only adjusted effects are comparable"
        )
    mains = [each for each in used.aliased if each.effect in {factor.name for factor in design.factors}]
    for each in mains:
        lines.append(f"{chosen.name}: {each.effect} cannot be separated from {some(each.aliases)}")
    if pairs := [each.effect for each in used.aliased if each not in mains]:
        are = "is an interaction" if len(pairs) == 1 else "are interactions"
        lines.append(f"{chosen.name}: {some(pairs)} {are} that cannot be separated from other effects")
    for name, row in result.responses.items():
        if row.missing:
            lines.append(f"{name} has no values of {some(row.missing)}")
        lines += _untestable(name, row, [each.effect for each in used.untestable or ()])
        if row.blocks_partial:
            of = f"{row.blocks_partial:,} of {row.blocks_used:,} iterations"
            lines.append(f"{name}: {of} lack a value; their other values count, and effects are adjusted for this")
        if row.coarse is not None:
            lines.append(coarse_words(name, row.coarse, row.unit))
        if row.blocks_dropped:
            whole = row.blocks_dropped + row.blocks_used
            lines.append(
                f"{name}: {row.blocks_dropped:,} of {whole:,} iterations lack a value and are left out of the tests"
            )
        if any(each.n > 1 and not each.t for each in row.treatments):
            lines.append(f"{name}: there are no intervals by Student's t: the values are too large to be squared")
        if any(each.n > 1 for each in row.treatments) and all(each.alike or not each.n for each in row.treatments):
            lines.append(f"{name}: all values of each treatment are equal")
    return lines


def _untestable(name: str, row: ResponseResult, known: Sequence[str]) -> list[str]:
    """Warnings about effects that cannot be tested for a response because treatments are missing. `known`: effects that
    cannot be tested for any response; they are omitted.
    """
    if not row.missing and not row.unobtainable:
        return []
    lost = [each.why for effect, each in row.every_effect if effect not in known and not each.testable]
    more = [
        f"{name}: {MOST} of the effects that cannot be tested are shown; the other {len(lost) - MOST:,} are in --json"
    ]
    return [f"{name}: {why}" for why in lost[:MOST]] + (more if len(lost) > MOST else [])

"""Format the verdict of an order analysis as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cbench.order.claims import OF_ORDER, Family
from cbench.order.result import ORDERS, AfterMedians, OrderResult, OrderTest, PredecessorEffect, UnlikeHost
from cbench.order.series_summary import MetricMeaning
from cbench.order.stats import power
from cbench.order.stats.pair_changes import PairChanges
from cbench.report.text import counted, some

NOTHING = "nothing was compared: no host, or no pair of neighboring runs, has results of a test in both orders"
LEVEL = 0.95
"""The level of each interval of a difference, not corrected for the number of intervals."""
BETWEEN: tuple[Family, ...] = ("orders", "spread")
BY_TIME = "blocked in time"
MOST_RATE = "at most {level:g} % of studies have a false alarm in any of these lines"


def verdict(result: OrderResult) -> list[str]:
    """The verdict's lines, the most important first."""
    sentences = {each.family: _sentence(result, each.family, each.named) for each in result.claims if each.named}
    head, inside = _headline(result, sentences)
    lines = [head, *_hosts(result)]
    if result.design.blocked:
        lines += [f"by the order or by time: {sentences[family]}" for family in BETWEEN if family in sentences]
        sentences = {family: line for family, line in sentences.items() if family not in BETWEEN}
    lines += [line for family, line in sentences.items() if line and family not in inside]
    if sentences and not result.published:
        lines.append(MOST_RATE.format(level=100 * result.alpha))
        lines += _hidden(result)
    if alone := [_sentence(result, each.family, each.alone) for each in result.claims if each.alone]:
        lines.append(f"significant only when tested alone, each at {100 * result.alpha:g} %: {'; '.join(alone)}")
    lines += _described(result)
    lines += _across(result)
    return lines + [
        f"beware: {warning}"
        for warning in result.design.warnings
        if warning != NOTHING and not (result.design.blocked and warning.startswith(BY_TIME))
    ]


def _headline(result: OrderResult, sentences: Mapping[Family, str]) -> tuple[str, set[Family]]:
    """The first line, and the families that it covers completely."""
    tests = result.tests
    tested = sum(test.p is not None for test in tests.values())
    if by_itself(tests):
        return _by_itself(result)
    if not tested:
        return NOTHING, set()
    if result.design.blocked:
        design = result.design
        return (
            f"order and time cannot be distinguished: {design.runs_fixed:,} fixed and "
            f"{counted(design.runs_random or 0, 'random run')} lie apart in time, in {design.stretches:,} stretches, "
            "and a change over time looks like an effect of the order; mix the runs, as `cbench order run` does",
            set(),
        )
    if "orders" in sentences:
        if result.arms == ORDERS:
            return f"order matters: {sentences['orders']}", {"orders"}
        first: Family = "earlier" if "earlier" in sentences else "orders"  # the cause and the whole effect, if known
        return f"carry-over: {sentences[first]}", {first}
    arms = "fixed and random order" if result.arms == ORDERS else "isolated and in-process runs"
    none = f"no difference between the medians of {arms} was found in {counted(tested, 'test')}"
    families = OF_ORDER if result.arms == ORDERS else ("earlier", *OF_ORDER)  # the cause first
    other = next((family for family in families if family in sentences), None)
    if other is not None:
        return f"order matters: {none}, but {sentences[other]}", {other}
    none = none.replace("between the medians of", "between")
    return f"{none}; {_blind(result, tests)}", set()


def _sentence(result: OrderResult, family: Family, names: Sequence[str]) -> str:
    """A sentence with the claim about these members of a family."""
    tests, isolated = result.tests, result.suite.isolated if result.suite else ""
    if family == "orders":
        tested = sum(test.p is not None for test in tests.values())
        differ = "differs" if len(names) == 1 else "differ"
        between = "an isolated process and one process for all" if isolated == "both" else "fixed and random order"
        changed = some([_changed(name, tests[name], _where(result)) for name in names])
        return f"{len(names):,} of {counted(tested, 'test')} {differ} between {between}: {changed}"
    if family == "spread":
        what = "one process for all" if isolated == "both" else "the order"
        varied = some([_varies(name, tests[name], result.arms == ORDERS) for name in names])
        return f"{what} changes how much results vary: {varied}"
    if family == "earlier":
        return (
            f"earlier tests in the same {'run' if isolated == 'yes' else 'process'} have an effect: {some(list(names))}"
        )
    if family == "predecessor":
        return f"the predecessor affects: {some(list(names))}"
    if family == "interaction":
        return f"the effect of the order differs between hosts: {some(list(names))}"
    if family == "unlike":
        return f"unlike the other hosts: {some(list(names))}"
    if family == "drift":
        return f"drift over the study: {some(list(names))}"
    if family == "within":
        places = [name for name in names if (tests[name].position_p or 1.0) <= (tests[name].predecessor_p or 1.0)]
        after = result.claim("predecessor")
        others = [] if after and after.named else [name for name in names if name not in places]
        said = [f"the position in the run affects: {some(places)}"] if places else []
        return "; ".join([*said, *([f"the predecessor affects: {some(others)}"] if others else [])])
    return f"the position in the run affects: {some(list(names))}"


def unlike(effect: UnlikeHost) -> str:
    """A host that differs from the others, such as "node7 (t1: 12 % above them, p = 0.001)"."""
    away = effect.away_pct
    how = "a different effect of the order" if effect.what == "effect" else "a different level"
    if away is not None:
        how = f"{abs(away):.3g} % {'above' if away > 0 else 'below'} them"
    return f"{effect.host} ({effect.test}: {how}, p = {effect.p_holm:.2g})"


def _hosts(result: OrderResult) -> list[str]:
    """Sentences about the comparison of several hosts and about their differences."""
    hosts = result.hosts
    if hosts is None:
        return []
    tested = sum(test.p is not None for test in result.tests.values())
    how = "van Elteren's test of signed ranks" if result.design.pairs else "van Elteren's test"
    lines = [
        f"{counted(len(hosts.names), 'host')}: each host's values are aligned to one level before they are compared"
    ]
    if tested:
        lines[0] = (
            f"{counted(len(hosts.names), 'host')}, each a separate stratum: {how} decides; pooled ranks, which "
            f"mix hosts and orders, would call {hosts.pooled_significant:,} of {counted(tested, 'test')} different"
        )
    return lines + [f"beware: the hosts differ: {each}" for each in hosts.passports]


def disturbed(effect: PredecessorEffect) -> str:
    """A test, its predecessor and the difference, as text."""
    where = "at the beginning of a run" if effect.after is None else f"after {effect.after}"
    if effect.delta_pct is None:
        return f"{effect.test} {where}"
    return f"{effect.test} {where} ({'-' if effect.delta_pct < 0 else '+'}{percent(abs(effect.delta_pct))} %)"


def percent(value: float) -> str:
    """A percentage as text: with two decimals, or with three significant digits if it is 100 or more."""
    return f"{value:.2f}" if value < 99.995 else f"{float(f'{value:.3g}'):,.0f}"


def digits(value: float) -> str:
    """A number with six significant digits, or all digits before the decimal point."""
    return f"{value:,.0f}" if 999_999.5 <= abs(value) < 1e15 else f"{value:,.6g}"


def influenced(effect: AfterMedians, is_time: bool, right: str) -> str:
    """A sentence about an influenced test, such as "b is 1.8 times slower right after a"."""
    where = "at the beginning of a run" if effect.after is None else f"{right}after {effect.after}"
    if not (effect.median > 0 and effect.median_others > 0):
        return f"{effect.test} {where}"
    more, less = ("slower", "faster") if is_time else ("higher", "lower")
    times = effect.median / effect.median_others
    factor = max(times, 1 / times)
    if factor == 1:
        return f"{effect.test} differs {where} (the same median)"
    if factor < 1.1:
        return f"{effect.test} is {100 * abs(times - 1):.2g} % {more if times > 1 else less} {where}"
    size = f"{float(f'{factor:.3g}'):,g}"
    if is_time:
        return f"{effect.test} is {size} times {more if times > 1 else less} {where}"
    return f"{effect.test} is {f'{size} times' if times > 1 else f'1/{size}'} as high {where}"


def _described(result: OrderResult) -> list[str]:
    """A sentence about earlier tests, which the verdict of a study without a suite describes but does not test; [] if
    there are none to describe.
    """
    said = []
    for each in result.described:
        test = result.tests[each.test]
        is_time = test.unit is not None and test.better is not None and MetricMeaning(test.unit, test.better).is_time
        said.append(influenced(each, is_time, "anywhere "))
    if not said:
        return []
    return [f"a description, not a test (only direct predecessors are tested): {some(said)}"]


def _across(result: OrderResult) -> list[str]:
    """Sentences about comparisons between tests that change with the order. The comparisons are named if more of them
    change than expected by chance.
    """
    across = result.across
    if not across.changed or result.design.blocked:
        return []
    many = f"{across.changed:,} of {counted(across.pairs, 'comparison')} between tests change with the order"
    expected = "" if across.expected is None else f"about {across.expected:.3g} are expected by chance"
    if across.p is not None and across.p >= result.alpha:
        return [f"{many}, not shown to be more than by chance: {expected} (p = {across.p:.2g})"]
    by_chance = [expected] if expected else []
    by_chance += [] if across.p is None else [f"p = {across.p:.2g} by itself"]
    named = [f"{pair.a} against {pair.b} ({pair.fixed} / {pair.random})" for pair in across.named]
    note = f", {', '.join(by_chance)}" if by_chance else ""
    return [f"{many} (fixed / random{note}): {some(named, across.changed, across.left_off)}"]


def by_itself(tests: Mapping[str, OrderTest]) -> bool:
    """Whether the design has no fixed order but has results on positions or predecessors."""
    fixed = any(test.n_fixed or test.failed_fixed for test in tests.values())
    return not fixed and any(_looked_at(test) for test in tests.values())


def nothing_compared(tests: Mapping[str, OrderTest]) -> bool:
    """Whether nothing could be tested."""
    return not by_itself(tests) and all(test.p is None for test in tests.values())


def not_compared(tests: Mapping[str, OrderTest], hosts: bool) -> list[str]:
    """Warnings about tests that were not compared, each with the reason. `hosts`: whether hosts are strata."""
    if by_itself(tests):
        return []
    if nothing_compared(tests):
        return [NOTHING]
    why: dict[str, list[str]] = {}
    for name, test in tests.items():
        if test.p is None:
            orders = [order for order, n in zip(ORDERS, (test.n_fixed, test.n_random), strict=True) if not n]
            missing = "host, or no pair of its neighboring runs," if hosts else "pair of neighboring runs"
            where = f"no {missing} has results in both orders"
            where = f"no results in {' or '.join(orders)} order" if orders else where
            why.setdefault(where, []).append(name)
    return [
        f"{some(names)} {'was' if len(names) == 1 else 'were'} not compared: {where}" for where, names in why.items()
    ]


def _looked_at(test: OrderTest) -> bool:
    return test.position_p is not None or test.predecessor_p is not None


def _by_itself(result: OrderResult) -> tuple[str, set[Family]]:
    """The verdict for designs without a fixed order, in which each run has a different order."""
    of = sum(_looked_at(test) for test in result.tests.values())
    within = result.claim("within")
    yes = within.named if within else ()
    before = result.claim("earlier")
    if before and before.named:
        return f"order matters: {_sentence(result, 'earlier', before.named)}", {"earlier"}
    earlier = ", of the direct predecessor or of earlier tests" if before else " or of the direct predecessor"
    none = f"no effect of the position in the run{earlier} was found in {counted(of, 'test')}"
    if not yes:
        after = result.claim("predecessor")
        if after and after.named:
            said = _sentence(result, "predecessor", after.named)
            return f"order matters: {said}", {"predecessor"}
        return f"{none}{_too_few(result)}", set()
    depend = "depends on its" if len(yes) == 1 else "depend on their"
    line = f"order matters: {len(yes):,} of {counted(of, 'test')} {depend} position or predecessor: {some(yes)}"
    return line, set()


def _where(result: OrderResult) -> str:
    return "in random order" if result.arms == ORDERS else "in one process"


def _changed(name: str, test: OrderTest, where: str) -> str:
    """A test with the difference between its second and its first arm, and the interval, as text. `where`: the second
    arm, such as "in random order".
    """
    delta, fixed, random = test.delta_pct_hl, test.median_fixed, test.median_random
    if delta is None:
        delta = test.delta_pct_median
    if delta is None or fixed is None or random is None:
        return name
    up = (delta < 0) == (fixed > 0) if delta else random > fixed
    if not delta:
        return f"{name} (the same median {where})"
    if test.pair_changes is not None:
        return f"{name} ({_in_pairs(test.pair_changes, where)})"
    interval = ""
    if test.delta_pct_interval and test.delta_pct_interval[0] * test.delta_pct_interval[1] > 0:
        low, high = sorted(abs(end) for end in test.delta_pct_interval)
        interval = f", {percent(low)} to {percent(high)} at {100 * LEVEL:g} %"
    return f"{name} ({percent(abs(delta))} % {'higher' if up else 'lower'} {where}{interval})"


def _in_pairs(changes: PairChanges, where: str) -> str:
    """The changes of pairs as text, such as "lower in random order in 17 of 30 pairs, by 90 %; equal in 13"."""
    kinds = [("higher", changes.higher, changes.higher_pct), ("lower", changes.lower, changes.lower_pct)]
    kinds.sort(key=lambda kind: -kind[1])
    parts = []
    for how, pairs, ends in kinds:
        if ends is not None:
            low, high = percent(ends[0]), percent(ends[1])
            size = f"by {high} %" if low == high else f"by {low} to {high} %"
            parts.append(f"{how} in {pairs:,}, {size}")
    if changes.equal:
        parts.append(f"equal in {changes.equal:,}")
    count = changes.higher + changes.lower + changes.equal
    first = f"{kinds[0][0]} in {kinds[0][1]:,}"
    parts[0] = parts[0].replace(first, f"{kinds[0][0]} {where} in {kinds[0][1]:,} of {count:,} pairs", 1)
    return "; ".join(parts)


def _varies(name: str, test: OrderTest, orders: bool) -> str:
    """A test with the factor between the spreads, and the arm with the larger spread. `orders`: whether the arms are
    orders, not processes.
    """
    ratio = test.spread_ratio
    if not ratio:
        return name
    times = float(f"{ratio if ratio > 1 else 1 / ratio:.2g}")
    where = ("in fixed order", "in random order") if orders else ("in isolated processes", "in one process")
    return f"{name} (spread {times:,g} times as large {where[ratio > 1]})"


def _too_few(result: OrderResult) -> str:
    """For a design with one arm: a clause with the number of runs that the test of a single pair requires; "" if there
    are enough runs. The number of tests is that of the direct predecessors that occurred, so it is not overestimated.
    """
    of = [test for test in result.tests.values() if test.predecessor]
    if not of:
        return ""
    tests, runs = max(test.predecessor.labels for test in of if test.predecessor), max(test.n_random for test in of)
    claim, comparisons, share, parts = result.claim("earlier"), len(of) * (tests - 1), 0.5, {runs // 2}
    if claim is None:
        claim, comparisons, share = result.claim("predecessor"), result.pairs, 1 / tests
        parts = {each.n for each in result.predecessors}
    if claim is None or any(comparisons * power.smallest_p(runs, part) < claim.level for part in parts):
        return ""
    needed = max(runs + 1, power.runs_for_any_split(comparisons, claim.level, share))
    return f"; too few runs for any pair of tests to be significant: about {needed:,} are needed"


def _hidden(result: OrderResult) -> list[str]:
    """A sentence about the differences that the study may have missed in the tests that the verdict does not name; []
    if there are no such tests.
    """
    claim = result.claim("orders")
    if claim is None or result.design.blocked:
        return []
    others = {name: test for name, test in result.tests.items() if test.p is not None and name not in claim.named}
    if not others:
        return []
    which = counted(len(others), "test")
    if claim.named:
        which = "the other test" if len(others) == 1 else f"the other {which}"
    return [f"medians of {which}: {_blind(result, others)}"]


def _enough(result: OrderResult, tests: int) -> str:
    """A clause with the number of runs that suffices to compute the detectable difference; "" if there are enough."""
    claim = result.claim("orders")
    paired = bool(result.design.pairs or result.design.interleaved)
    needed = power.runs_for_any_shift((claim.level if claim else result.alpha) / tests, result.power.power, paired)
    runs = min(min(test.n_fixed, test.n_random) for test in result.tests.values() if test.p is not None)
    return f"; {needed:,} {result.counted_runs} are enough to compute it" if runs < needed else ""


def _blind(result: OrderResult, tests: Mapping[str, OrderTest]) -> str:
    compared = [test for test in tests.values() if test.p is not None]
    shifts = [test.detectable_pct for test in compared if not test.alike or test.n_fixed + test.n_random < 4]
    if not shifts:
        return "all values of a test are equal"
    share = f"{100 * result.power.power:.0f} %"
    known = [shift for shift in shifts if shift is not None]
    if len(known) < len(shifts):
        return (
            f"there are too few runs to compute the difference that would be detected with a probability of {share}"
            f"{_enough(result, sum(test.p is not None for test in result.tests.values()))}"
        )
    least = max(known)
    if not least:
        return "most values of a test are equal"
    shown = f"{least:,.0f}" if least >= 10 else f"{least:.2g}"
    return f"differences of {shown} % or more would have been detected with a probability of {share}"

"""The verdict of an order analysis in words."""

from __future__ import annotations

from collections.abc import Mapping

from cbench.order.result import ORDERS, OrderResult, OrderTest, Within
from cbench.report.text import counted, some

NOTHING = "nothing was compared: no test has results in both orders"
WORDS: tuple[tuple[Within, str], ...] = (
    ("position", "the position in the run changes"),
    ("drift", "over the study drift"),
)


def verdict(result: OrderResult) -> list[str]:
    """Some lines, the most important first."""
    tests = result.tests
    differ = [name for name, test in tests.items() if test.significant]
    tested = sum(test.p is not None for test in tests.values())
    if by_itself(tests):
        line = _by_itself(tests)
    elif not tested:
        line = NOTHING
    elif differ:
        differs = "differs" if tested == 1 else "differ"
        line = (
            f"order matters: {len(differ):,} of {counted(tested, 'test')} {differs} between fixed and random order: "
            f"{some([_changed(name, tests[name]) for name in differ])}"
        )
    else:
        line = f"no difference between fixed and random order was found in {counted(tested, 'test')}{_blind(result)}"
    lines = [line, *_within(result)]
    across = result.across
    if across.changed:
        named = [f"{pair.a} against {pair.b} ({pair.fixed} / {pair.random})" for pair in across.named]
        lines.append(
            f"{across.changed:,} of {counted(across.pairs, 'comparison')} between tests change with the order "
            f"(fixed / random): {some(named, across.changed, across.left_off)}"
        )
    return lines + [f"beware: {warning}" for warning in result.design.warnings if warning != NOTHING]


def by_itself(tests: Mapping[str, OrderTest]) -> bool:
    """Whether the design has no fixed order, and something is known of positions or predecessors."""
    fixed = any(test.n_fixed or test.failed_fixed for test in tests.values())
    return not fixed and any(_looked_at(test) for test in tests.values())


def nothing_compared(tests: Mapping[str, OrderTest]) -> bool:
    """Whether there is no answer at all."""
    return not by_itself(tests) and all(test.p is None for test in tests.values())


def not_compared(tests: Mapping[str, OrderTest]) -> list[str]:
    """Warnings: which tests have no results in an order."""
    if by_itself(tests):
        return []
    if nothing_compared(tests):
        return [NOTHING]
    why: dict[str, list[str]] = {}
    for name, test in tests.items():
        if test.p is None:
            orders = [order for order, n in zip(ORDERS, (test.n_fixed, test.n_random), strict=True) if not n]
            why.setdefault(" or ".join(orders), []).append(name)
    return [
        f"{some(names)} {'was' if len(names) == 1 else 'were'} not compared: no results in {orders} order"
        for orders, names in why.items()
    ]


def _looked_at(test: OrderTest) -> bool:
    return test.position_p is not None or test.predecessor_p is not None


def _by_itself(tests: Mapping[str, OrderTest]) -> str:
    """For designs without a fixed order, in which each run has an order of its own."""
    of = sum(_looked_at(test) for test in tests.values())
    yes = [name for name, test in tests.items() if test.position_significant or test.predecessor_significant]
    if not yes:
        return f"no effect of the position in the run or of what ran before was found in {counted(of, 'test')}"
    depend = "depends on its" if of == 1 else "depend on their"
    return f"order matters: {len(yes):,} of {counted(of, 'test')} {depend} position or on what ran before: {some(yes)}"


def _changed(name: str, test: OrderTest) -> str:
    """With the random order, by how much the median is away from the fixed one's."""
    delta, fixed, random = test.delta_pct_median, test.median_fixed, test.median_random
    if delta is None or fixed is None or random is None:
        return name
    if not delta:
        return f"{name} (the same median in random order)"
    return f"{name} ({abs(delta):.2f} % {'higher' if random > fixed else 'lower'} in random order)"


def _blind(result: OrderResult) -> str:
    compared = [test for test in result.tests.values() if test.p is not None]
    shifts = [test.detectable_pct for test in compared if not test.alike or test.n_fixed + test.n_random < 4]
    if not shifts:
        return "; all values of a test are alike"
    share = f"{100 * result.power.power:.0f} %"
    known = [shift for shift in shifts if shift is not None]
    if len(known) < len(shifts):
        return f"; so few runs would show hardly any difference with a chance of {share}"
    least = max(known)
    if not least:
        return "; most values of a test are alike"
    shown = f"{least:,.0f}" if least >= 10 else f"{least:.2g}"
    return f"; differences of {shown} % or more would have been seen with a chance of {share}"


def _within(result: OrderResult) -> list[str]:
    lines = []
    after = sorted((each for each in result.predecessors if each.significant), key=lambda each: each.p_holm)
    if after:
        said = [
            f"{each.test} {'at the beginning of a run' if each.after is None else 'after ' + each.after}"
            + ("" if each.delta_pct is None else f" ({each.delta_pct:+.2f} %)")
            for each in after
        ]
        lines.append(f"what ran before changes: {some(said)}")
    for effect, words in WORDS:
        names = [name for name, test in result.tests.items() if test.within(effect)[1]]
        if names:
            lines.append(f"{words}: {some(names)}")
    return lines

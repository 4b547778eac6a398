"""The verdict on a study in words; everything said comes from shape.py's plain objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST = 5
NOTHING = "nothing was compared: no test has results in both orders"


def verdict(made: Mapping[str, Any]) -> list[str]:
    """Some lines, the most important first."""
    tests = made["tests"]
    differ = [name for name, each in tests.items() if each["significant"]]
    tested = sum(each["p"] is not None for each in tests.values())
    lines = []
    if by_itself(tests):
        lines.append(_by_itself(tests))
    elif not tested:
        lines.append(NOTHING)
    elif differ:
        differs = "differs" if tested == 1 else "differ"
        lines.append(
            f"order matters: {len(differ):,} of {counted(tested, 'test')} {differs} between fixed and random order: "
            f"{some([_changed(name, tests[name]) for name in differ])}"
        )
    else:
        lines.append(
            f"no difference between fixed and random order was found in {counted(tested, 'test')}{_blind(made)}"
        )
    lines += _within(made)
    across = made["across"]
    if across["changed"]:
        named = [f"{pair['a']} against {pair['b']} ({pair['fixed']} / {pair['random']})" for pair in across["named"]]
        lines.append(
            f"{across['changed']:,} of {counted(across['pairs'], 'comparison')} between tests change with the order "
            f"(fixed / random): {some(named, across['changed'], across['left_off'])}"
        )
    lines += [f"beware: {warning}" for warning in made["design"]["warnings"] if warning != NOTHING]
    return lines


def by_itself(tests: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the design has no fixed order, and something is known of positions or predecessors."""
    fixed = any(each["n_fixed"] or each["failed_fixed"] for each in tests.values())
    return not fixed and any(_looked_at(each) for each in tests.values())


def nothing_compared(tests: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether there is no answer at all."""
    return not by_itself(tests) and all(each["p"] is None for each in tests.values())


def not_compared(tests: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Warnings: which tests have no results in an order."""
    if by_itself(tests):
        return []
    if nothing_compared(tests):
        return [NOTHING]
    why: dict[str, list[str]] = {}
    for name, each in tests.items():
        if each["p"] is None:
            orders = [order for order in ("fixed", "random") if not each[f"n_{order}"]]
            why.setdefault(" or ".join(orders), []).append(name)
    return [
        f"{some(names)} {'was' if len(names) == 1 else 'were'} not compared: no results in {orders} order"
        for orders, names in why.items()
    ]


def _looked_at(test: Mapping[str, Any]) -> bool:
    return test["position_p"] is not None or test["predecessor_p"] is not None


def _by_itself(tests: Mapping[str, Mapping[str, Any]]) -> str:
    """For designs without a fixed order, in which each run has an order of its own."""
    of = sum(_looked_at(each) for each in tests.values())
    found = [name for name, each in tests.items() if each["position_significant"] or each["predecessor_significant"]]
    if not found:
        return f"no effect of the position in the run or of what ran before was found in {counted(of, 'test')}"
    depend = "depends on its" if of == 1 else "depend on their"
    return (
        f"order matters: {len(found):,} of {counted(of, 'test')} {depend} position or on what ran before: {some(found)}"
    )


def _changed(name: str, test: Mapping[str, Any]) -> str:
    """With the random order, by how much the median is away from the fixed one's."""
    delta = test["delta_pct_median"]
    if delta is None:
        return name
    if not delta:
        return f"{name} (the same median in random order)"
    way = "higher" if test["median_random"] > test["median_fixed"] else "lower"
    return f"{name} ({abs(delta):.2f} % {way} in random order)"


def _blind(made: Mapping[str, Any]) -> str:
    compared = [each for each in made["tests"].values() if each["p"] is not None]
    found = [each["detectable_pct"] for each in compared if not each["alike"] or each["n_fixed"] + each["n_random"] < 4]
    if not found:
        return "; all values of a test are alike"
    share = f"{100 * made['power']['power']:.0f} %"
    if None in found:
        return f"; so few runs would show hardly any difference with a chance of {share}"
    least = max(found)
    if not least:
        return "; most values of a test are alike"
    shown = f"{least:,.0f}" if least >= 10 else f"{least:.2g}"
    return f"; differences of {shown} % or more would have been seen with a chance of {share}"


def _within(made: Mapping[str, Any]) -> list[str]:
    lines = []
    after = sorted((each for each in made["predecessors"] if each["significant"]), key=lambda each: each["p_holm"])
    if after:
        said = [
            f"{each['test']} {'at the beginning of a run' if each['after'] is None else 'after ' + each['after']}"
            + ("" if each["delta_pct"] is None else f" ({each['delta_pct']:+.2f} %)")
            for each in after
        ]
        lines.append(f"what ran before changes: {some(said)}")
    for key, words in (("position", "the position in the run changes"), ("drift", "over the study drift")):
        names = [name for name, each in made["tests"].items() if each[f"{key}_significant"]]
        if names:
            lines.append(f"{words}: {some(names)}")
    return lines


def counted(number: int, noun: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def some(items: Sequence[str], total: int | None = None, left_off: int = 0) -> str:
    """The first MOST of them, and how many more there are; `left_off`: how many of these are not in --json either."""
    total = len(items) if total is None else total
    shown = ", ".join(items[:MOST])
    where = f"{total - left_off:,} in --json" if left_off else "all in --json"
    return f"{shown} and {total - MOST:,} more ({where})" if total > MOST else shown

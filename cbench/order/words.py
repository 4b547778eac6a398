"""The verdict on a study in words; everything said comes from shape.py's plain objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 5


def verdict(made: Mapping[str, Any]) -> list[str]:
    """Some lines, the most important first."""
    tests = made["tests"]
    differ = [name for name, each in tests.items() if each["significant"]]
    tested = sum(each["p"] is not None for each in tests.values())
    lines = []
    if not any(each["n_fixed"] for each in tests.values()) and any(_looked_at(each) for each in tests.values()):
        lines.append(_by_itself(tests))
    elif not tested:
        lines.append("nothing was compared: no test has results in both orders")
    elif differ:
        lines.append(
            f"order matters: {len(differ):,} of {tested:,} tests differ between fixed and random order: "
            f"{_some([_changed(name, tests[name]) for name in differ])}"
        )
    else:
        lines.append(f"no difference between fixed and random order was found in {tested:,} tests{_blind(made)}")
    lines += _within(made)
    across = made["across"]
    if across["changed"]:
        named = [f"{pair['a']} against {pair['b']} ({pair['fixed']} / {pair['random']})" for pair in across["named"]]
        lines.append(
            f"{across['changed']:,} of {across['pairs']:,} comparisons between tests change with the order "
            f"(fixed / random): {_some(named, across['changed'])}"
        )
    lines += [f"beware: {warning}" for warning in made["design"]["warnings"]]
    return lines


def _looked_at(test: Mapping[str, Any]) -> bool:
    return test["position_p"] is not None or test["predecessor_p"] is not None


def _by_itself(tests: Mapping[str, Mapping[str, Any]]) -> str:
    """For designs without a fixed order, in which each run has an order of its own."""
    of = sum(_looked_at(each) for each in tests.values())
    found = [name for name, each in tests.items() if each["position_significant"] or each["predecessor_significant"]]
    if not found:
        return f"no effect of the position in the run or of what ran before was found in {of:,} tests"
    return (
        f"order matters: {len(found):,} of {of:,} tests depend on their position or on what ran before: {_some(found)}"
    )


def _changed(name: str, test: Mapping[str, Any]) -> str:
    """With the random order, by how much the median is away from the fixed one's."""
    delta = test["delta_pct_median"]
    return name if delta is None else f"{name} ({-delta:+.2f} % in random order)"


def _blind(made: Mapping[str, Any]) -> str:
    found = [each["detectable_pct"] for each in made["tests"].values() if each["p"] is not None]
    if not found:
        return ""
    share = f"{100 * made['power']['power']:.0f} %"
    if None in found:
        return f"; so few runs would show hardly any difference with a chance of {share}"
    least = max(found)
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
        lines.append(f"what ran before changes: {_some(said)}")
    for key, words in (("position", "the position in the run changes"), ("drift", "over the study drift")):
        names = [name for name, each in made["tests"].items() if each[f"{key}_significant"]]
        if names:
            lines.append(f"{words}: {_some(names)}")
    return lines


def _some(items: list[str], total: int | None = None) -> str:
    more = (len(items) if total is None else total) - MOST
    shown = ", ".join(items[:MOST])
    return f"{shown} and {more:,} more" if more > 0 else shown

"""The tables of a report: the tests, what ran before, the first trial, tests against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cbench.order.table import chance, corrected_by, deciding, number
from cbench.report.page_parts import facts, paragraph, small, table

Row = Mapping[str, Any]
MOST_ROWS = 300
"""Tests with all their numbers; the others are in a list that is folded away."""
MOST_NAMED = 25


def tests(made: Row) -> str:
    """Every test, the smallest p first."""
    items = by_p(made)
    head = [
        *(
            "test",
            "n",
            f"p{small('chi-squared') if _both(made) else ''}",
            f"ε²{small('η²')}",
            f"Δ median{small('Δ mean')}",
            "median fixed",
            "median random",
            "case",
        ),
        *("p position", "p predecessor", "p drift", f"runs for {made['power']['delta_pct']:g} %"),
    ]
    full, rest = items[:MOST_ROWS], items[MOST_ROWS:]
    rows = [_test(made, name, each) for name, each in full]
    text = table(head, rows, ["yes" if each["significant"] else "" for _, each in full])
    if rest:
        short = [
            [
                escape(name),
                f"{chance(deciding(made, each))} {mark(each['significant'])}",
                number(each["delta_pct_median"], "{:+.2f} %"),
                number(each["case"], "{}"),
                *(_marked(each, key) for key in ("position", "predecessor", "drift")),
            ]
            for name, each in rest
        ]
        head = ["test", "p", "Δ median", "case", "p position", "p predecessor", "p drift"]
        said = f"The other {len(rest):,} tests, which have larger p; all numbers of them are in the output of --json."
        text += f"<details>\n<summary>{said}</summary>\n{table(head, short)}</details>\n"
    return text + "<h3>How to read it</h3>\n" + facts(_legend(made))


def by_p(made: Row, key: str = "") -> list[tuple[str, Row]]:
    """The tests, the smallest p first, without one last. `key`: of which p; of the decision when it is left out."""

    def place(item: tuple[str, Row]) -> float:
        p = item[1][key] if key else deciding(made, item[1])
        return 2.0 if p is None else float(p)

    return sorted(made["tests"].items(), key=place)


def _both(made: Row) -> bool:
    """Whether the p-value of the decision is another one than the paper's."""
    return bool(made["null"] != "chi2")


def mark(significant: bool) -> str:
    return "●" if significant else "○"


def predecessors(made: Row) -> str:
    """What ran right before, the clearest effects first."""
    every = sorted(made["predecessors"], key=lambda each: (each["p_holm"], each["p"]))
    shown = [each for each in every if each["significant"]][:MOST_NAMED] or every[:5]
    if not shown:
        return ""
    said = f"Significant after Holm over all pairs: {pairs(made)}."
    said += " Those with the smallest p:" if len(shown) < len(every) else ""
    rows = [
        [
            escape(each["test"]),
            "(begin of a run)" if each["after"] is None else escape(each["after"]),
            f"{each['n']:,}",
            f"{each['median']:,.6g}",
            f"{each['median_others']:,.6g}",
            number(each["delta_pct"], "{:+.2f} %"),
            chance(each["p"]),
            f"{chance(each['p_holm'])} {mark(each['significant'])}",
        ]
        for each in shown
    ]
    head = ("test", "ran right after", "n", "median", "median of its others", "difference", "p", "p after Holm")
    return paragraph(said) + table(head, rows, ["yes" if each["significant"] else "" for each in shown], names=2)


def pairs(made: Row) -> str:
    """How many pairs of a test and its predecessor are significant, of how many."""
    named = made["predecessors"]
    yes = sum(each["significant"] for each in named)
    return f"{'at least ' if yes == len(named) < _pairs(made) else ''}{yes:,} of {_pairs(made):,}"


def all_pairs(made: Row) -> bool:
    """Whether all pairs are named, and not only those with the smallest p."""
    return len(made["predecessors"]) == _pairs(made)


def _pairs(made: Row) -> int:
    return sum(each["predecessor"]["labels"] for each in made["tests"].values() if each["predecessor"])


def first_trials(made: Row) -> str:
    """Being the first of a run against all other positions, smallest p first."""
    every = [(name, each["first_trial"]) for name, each in made["tests"].items() if each["first_trial"]]
    every.sort(key=lambda item: float(item[1]["p"]))
    rows = [
        [
            escape(name),
            f"{each['n']:,}",
            f"{each['median']:,.6g}",
            f"{each['median_others']:,.6g}",
            number(each["delta_pct"], "{:+.2f} %"),
            chance(each["p"]),
        ]
        for name, each in every[:5]
    ]
    head = ("test", "n as first", "median as first", "median of its others", "difference", "p, not corrected")
    said = "Trials that were the first of their random run against all others of the same test"
    said += f"; the five tests of {len(every):,} with the smallest p." if len(every) > len(rows) else "."
    return paragraph(said) + table(head, rows) if rows else ""


def across(made: Row) -> str:
    """Pairs of tests of which fixed and random order say different things."""
    found = made["across"]
    if not found["pairs"]:
        return ""
    said = f"{found['changed']:,} of {found['pairs']:,} comparisons of two tests change with the order"
    said += f", {found['reversed']:,} into their opposite. " if found["reversed"] else ". "
    said += "A test is above or below another where their intervals of the median do not overlap."
    head = ("A", "against B", "fixed order: A is", "random order: A is")
    rows = [[escape(pair["a"]), escape(pair["b"]), pair["fixed"], pair["random"]] for pair in found["named"]]
    text = paragraph(said) + (table(head, rows[:MOST_NAMED], names=2) if rows else "")
    if more := rows[MOST_NAMED:]:
        left = found["changed"] - len(rows)
        said = f"{len(more):,} more" + (f", and {left:,} that are not listed" if left else "")
        text += f"<details>\n<summary>{said}</summary>\n{table(head, more, names=2)}</details>\n"
    return text


def _test(made: Row, name: str, each: Row) -> Sequence[str]:
    p, unit = deciding(made, each), str(each.get("unit", ""))
    failed = each["failed_fixed"] + each["failed_random"]
    return [
        escape(name),
        f"{each['n_fixed']:,} + {each['n_random']:,}" + small(f"{failed:,} failed" if failed else ""),
        chance(p)
        + ("" if p is None else f" {mark(each['significant'])}")
        + small(chance(each["p"]) if _both(made) else ""),
        number(each["epsilon2"], "{:.3f}") + small(number(each["eta2"], "{:.3f}")),
        number(each["delta_pct_median"], "{:+.2f} %") + small(number(each["delta_pct_mean"], "{:+.2f} %")),
        _median(each, "fixed", unit),
        _median(each, "random", unit),
        number(each["case"], "{}"),
        *(_marked(each, key) for key in ("position", "predecessor", "drift")),
        number(each["runs_needed"], "{:,}"),
    ]


def _marked(each: Row, key: str) -> str:
    p = each[f"{key}_p"]
    doubtful = key != "drift" and each[key] is not None and each[key]["doubtful"]
    return chance(p) + ("" if p is None else f" {mark(each[f'{key}_significant'])}" + ("?" if doubtful else ""))


def _median(each: Row, order: str, unit: str) -> str:
    value, interval = each[f"median_{order}"], each[f"ci_{order}"]
    if value is None:
        return "-"
    second = f"[{interval[0]:,.6g}, {interval[1]:,.6g}]" if interval else f"no interval below n = {each['ci_needs']}"
    return f"{value:,.6g} {escape(unit)}".strip() + small(second)


def _legend(made: Row) -> list[tuple[str, str]]:
    rule, alpha = made["intervals"], f"{made['alpha']:g}"
    second = "; below it by the chi-squared distribution, as in the paper." if _both(made) else "."
    corrected = "not corrected for their number" if made["correction"] == "none" else f"after {corrected_by(made)}"
    inside = {
        "algorithm": "each median lies inside the other interval",
        "prose": "at least one median lies inside the other interval",
        "tool": "at least one median lies inside the other interval (by the code of OrderSage's tool)",
    }[rule["case"]]
    return [
        ("n", "trials that count in fixed and in random order."),
        ("p", "the chance of such a difference between the orders, or a larger one, where there is none" + second),
        ("● ○", f"● significant: p < {alpha} for all tests together, {corrected}; ○ not, which proves no equality."),
        ("ε², η²", "size of the effect: the share of the variance of ranks that the order explains, from 0 to 1."),
        ("Δ", "(fixed - random)/fixed: below 0 the random order has the larger values."),
        ("median [..]", f"with its interval at {100 * rule['level']:.4g} %, by {rule['rule']} ranks."),
        ("case", f"1: the intervals are apart; 2: they overlap and {inside}; 3: they overlap otherwise."),
        (
            "p position, predecessor",
            "whether results in random runs depend on the place in the run, or on what ran before; "
            "? where a group has fewer than five trials, and p is doubtful.",
        ),
        ("p drift", "whether results rise or fall over the study, in both orders."),
        ("runs for ..", f"runs of each order to see such a shift with a chance of {100 * made['power']['power']:g} %."),
    ]

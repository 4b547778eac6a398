"""The tables of an order report: the tests, what ran before, the first trial, tests against each other."""

from __future__ import annotations

from cbench.order.result import WITHIN, Order, OrderResult, OrderTest, Within
from cbench.report.page import Cell, Table
from cbench.report.text import chance, mark, marked, number

MOST_ROWS = 300
"""Tests with all their numbers; the others are in a list that is folded away."""
MOST_NAMED = 25
FIRST = 5
EFFECTS = ("p position", "p predecessor", "p drift")


def tests(made: OrderResult) -> Table:
    """The tests with the smallest p, with all their numbers."""
    shown = made.by_p()[:MOST_ROWS]
    head = (
        "test",
        "n",
        Cell("p", "" if made.published else "chi-squared"),
        Cell("ε²", "η²"),
        Cell("Δ median", "Δ mean"),
        "median fixed",
        "median random",
        "case",
        *EFFECTS,
        f"runs for {made.power.delta_pct:g} %",
    )
    rows = [
        (
            name,
            Cell(f"{test.n_fixed:,} + {test.n_random:,}", f"{test.failed:,} failed" if test.failed else ""),
            Cell(marked(made.deciding_p(test), test.significant), "" if made.published else chance(test.p)),
            Cell(number(test.epsilon2, "{:.3f}"), number(test.eta2, "{:.3f}")),
            Cell(number(test.delta_pct_median, "{:+.2f} %"), number(test.delta_pct_mean, "{:+.2f} %")),
            _median(test, "fixed"),
            _median(test, "random"),
            number(test.case, "{}"),
            *(_effect(test, effect) for effect in WITHIN),
            number(test.runs_needed, "{:,}"),
        )
        for name, test in shown
    ]
    return Table(head, rows, [test.significant for _, test in shown])


def rest(made: OrderResult) -> Table | None:
    """The other tests in short, if there are more than fit."""
    rows = [
        (
            name,
            f"{chance(made.deciding_p(test))} {mark(test.significant)}",
            number(test.delta_pct_median, "{:+.2f} %"),
            number(test.case, "{}"),
            *(_effect(test, effect) for effect in WITHIN),
        )
        for name, test in made.by_p()[MOST_ROWS:]
    ]
    return Table(("test", "p", "Δ median", "case", *EFFECTS), rows) if rows else None


def predecessors(made: OrderResult) -> Table:
    """What ran right before, the clearest effects first."""
    every = sorted(made.predecessors, key=lambda each: (each.p_holm, each.p))
    shown = [each for each in every if each.significant][:MOST_NAMED] or every[:FIRST]
    rows = [
        (
            each.test,
            "(begin of a run)" if each.after is None else each.after,
            f"{each.n:,}",
            f"{each.median:,.6g}",
            f"{each.median_others:,.6g}",
            number(each.delta_pct, "{:+.2f} %"),
            chance(each.p),
            marked(each.p_holm, each.significant),
        )
        for each in shown
    ]
    head = ("test", "ran right after", "n", "median", "median of its others", "difference", "p", "p after Holm")
    return Table(head, rows, [each.significant for each in shown], names=2)


def first_trials(made: OrderResult) -> Table:
    """Being the first of a run against all other positions, smallest p first."""
    every = [(name, test.first_trial) for name, test in made.tests.items() if test.first_trial]
    rows = [
        (
            name,
            f"{each.n:,}",
            f"{each.median:,.6g}",
            f"{each.median_others:,.6g}",
            number(each.delta_pct, "{:+.2f} %"),
            chance(each.p),
        )
        for name, each in sorted(every, key=lambda item: item[1].p)[:FIRST]
    ]
    return Table(
        ("test", "n as first", "median as first", "median of its others", "difference", "p, not corrected"), rows
    )


def across(made: OrderResult) -> tuple[Table, Table]:
    """Pairs of tests of which fixed and random order say different things; those that are folded away."""
    head = ("A", "against B", "fixed order: A is", "random order: A is")
    rows = [(pair.a, pair.b, pair.fixed, pair.random) for pair in made.across.named]
    return Table(head, rows[:MOST_NAMED], names=2), Table(head, rows[MOST_NAMED:], names=2)


def _effect(test: OrderTest, effect: Within) -> str:
    return marked(*test.within(effect)) + ("?" if test.doubtful(effect) else "")


def _median(test: OrderTest, order: Order) -> str | Cell:
    value, interval = test.median(order)
    if value is None:
        return "-"
    second = f"[{interval[0]:,.6g}, {interval[1]:,.6g}]" if interval else f"no interval below n = {test.ci_needs}"
    return Cell(f"{value:,.6g} {test.unit or ''}".strip(), second)

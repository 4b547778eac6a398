"""Render the report of a study as one self-contained HTML page, verdict first. The page's text is in
templates/order.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from cbench.order import figures, page_study
from cbench.order.page_study import StudyFacts
from cbench.order.result import WITHIN, Order, OrderResult, OrderTest, PredecessorEffect, Within
from cbench.order.verdict import digits
from cbench.report.page import Cell, Figure, Table, render
from cbench.report.svg import shortened
from cbench.report.text import chance, mark, marked, number
from cbench.stats.trials import Trials

MOST_ROWS = 300
"""The maximum number of tests in the table with all numbers; a folded table lists the others."""
MOST_NAMED = 25
FIRST = 5
EFFECTS = ("p position", "p predecessor", "p drift")
NAMED = 3


def page(about: StudyFacts, result: OrderResult, trials: Trials) -> str:
    """The whole page as HTML; equal data yield equal bytes."""
    changed, changed_rest = across(result)
    return render(
        "order/order.html",
        study=about,
        study_rows=page_study.rows(result, about),
        result=result,
        tests=tests(result),
        rest=rest(result),
        orders=_orders(result, trials),
        hosts=_hosts(result),
        host_rows=hosts(result),
        positions=_positions(result),
        first_trials=first_trials(result),
        carry_over=carry_over(result),
        earlier=earlier(result),
        predecessors=predecessors(result),
        matrix=_matrix(result),
        drift=_drift(result, trials),
        across=changed,
        across_rest=changed_rest,
    )


def _orders(result: OrderResult, trials: Trials) -> list[Figure]:
    tested = [(name, test) for name, test in result.by_p() if test.p is not None]
    if not tested:
        return []
    p = {name: test.p_decides or 0.0 for name, test in tested}
    many = len(tested)
    below = sum(each < result.alpha for each in p.values())
    family = sum(each < result.alpha_bonferroni for each in p.values())
    sizes = [(name, test.epsilon2) for name, test in tested if test.epsilon2 is not None]
    moved = [(name, test.delta_pct_hl) for name, test in tested if test.delta_pct_hl is not None]
    shown = [
        Figure(
            "p",
            figures.p_values(result),
            "p-values, sorted",
            "The probability of a difference at least this large by chance alone; filled points are significant.",
            f"{family:,} of {many:,} are below {result.alpha_bonferroni:.2g}, {below:,} below {result.alpha:g}. "
            + _some("Smallest", [f"{_short(name)} ({chance(each)})" for name, each in p.items()]),
        ),
        Figure(
            "effect",
            figures.effects(result),
            "Effect sizes, sorted",
            "The share of the variance of ranks that the order explains, from 0 to 1.",
            _some("Largest", [f"{_short(name)} ({size:.3f})" for name, size in _largest(sizes)]),
        ),
        Figure(
            "delta",
            figures.deltas(result),
            "Differences between the orders, sorted",
            f"({result.arms[0]} - {result.arms[1]})/{result.arms[0]}: Hodges-Lehmann estimates with 95 % "
            f"intervals. Below 0, {result.arm_labels[1]} has the larger values.",
            _some("Largest", [f"{_short(name)} ({delta:+.2f} %)" for name, delta in _largest(moved)]),
        ),
    ]
    shown.append(
        Figure(
            "ecdf",
            figures.distributions(result, trials, [name for name, _ in tested]),
            f"Values of {result.arm_labels[0]} and {result.arm_labels[1]}",
            "The share of values up to each value: parallel curves differ in location, crossing curves in spread."
            + _foremost(many),
            broad=True,
        )
    )
    if drawn := figures.with_intervals(result):
        named = min(len(drawn), figures.MOST_NAMED)
        shown.append(
            Figure(
                "intervals",
                figures.intervals(result),
                "Medians with their intervals",
                f"Intervals at {100 * result.intervals.level:.4g} %; the test with the smallest p is at the top.",
                f"Shown: the {named:,} of {many:,} tests with the smallest p." if named < many else "",
            )
        )
    return shown


def _largest(numbers: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(numbers, key=lambda item: -abs(item[1]))


def _positions(result: OrderResult) -> Figure | None:
    tests = {name: test.position for name, test in result.by_p("position") if test.position}
    if not tests:
        return None
    every = all(len(each.groups) == each.labels for each in tests.values())
    places = "each position" if every else "its most frequent positions"
    return Figure(
        "position",
        figures.positions(result, list(tests)),
        "Median by position",
        f"Each test's median at {places} in the {result.arms[1]} runs, relative to the median of these medians."
        + _foremost(len(tests)),
        _significant([result.tests[name] for name in tests], "position"),
        broad=True,
    )


def _matrix(result: OrderResult) -> Figure | None:
    if not result.predecessors:
        return None
    tests, most = len({each.test for each in result.predecessors}), figures.MOST_CELLS
    all_named = len(result.predecessors) == result.pairs
    return Figure(
        "matrix",
        figures.matrix(result),
        "Effects of direct predecessors",
        "Each row is a test, each column its direct predecessor. A cell shows the difference, in %, between the median "
        "of these trials and that of the test's other trials. ●: significant (Holm over all pairs). Hatched: "
        + ("the pair did not occur." if all_named else "not among the pairs with the smallest p.")
        + (f" Shown: the {most} of {tests:,} tests with the clearest effects." if tests > most else ""),
        f"Significant: {result.significant_pairs} pairs.",
        broad=True,
    )


def _drift(result: OrderResult, trials: Trials) -> Figure | None:
    tests = {name: test for name, test in result.by_p("drift") if test.n_fixed + test.n_random}
    if trials.run is None or not trials.timed or not tests:
        return None
    explained = f"Each point is a trial (filled: {result.arm_labels[0]}, hollow: {result.arm_labels[1]})"
    if trials.host is None:
        explained += "; p is that of the test for drift over all runs." + _foremost(len(tests))
    else:
        explained += (
            f". Each host has its own time axis, and all values are aligned to one level. At most "
            f"{figures.MOST_PANELS} panels show the tests with the smallest p for drift."
        )
    return Figure(
        "drift",
        figures.drift(result, trials, list(tests)),
        "Values by run, in chronological order",
        explained,
        _significant(list(tests.values()), "drift"),
        broad=True,
    )


def _significant(tests: Sequence[OrderTest], effect: Within) -> str:
    yes = sum(test.within(effect)[1] for test in tests)
    return f"Significant ({mark(True)}): {yes:,} of {len(tests):,} tests."


def _foremost(many: int) -> str:
    most = figures.MOST_PANELS
    return f" Shown: the {most} of {many:,} tests with the smallest p." if many > most else ""


def _some(word: str, items: Sequence[str]) -> str:
    return f"{word}: {', '.join(items[:NAMED])}." if items else ""


def _short(name: str) -> str:
    return shortened(name, 40)


def tests(result: OrderResult) -> Table:
    """A table of the tests with the smallest p, with all their numbers."""
    shown = result.by_p()[:MOST_ROWS]
    head: tuple[str | Cell, ...] = (
        "test",
        "n",
        Cell("p", "" if result.published else "chi-squared"),
        Cell("ε²", "η²"),
        Cell("Δ", "interval"),
        *((f"runs for {result.power.delta_pct:g} %",) if result.compares else ()),
        Cell("Δ median", "Δ mean"),
        "p spread",
        *(f"median {arm}" for arm in result.arms),
        "case",
        *EFFECTS,
    )
    rows = [
        (
            name,
            Cell(f"{test.n_fixed:,} + {test.n_random:,}", f"{test.failed:,} failed" if test.failed else ""),
            Cell(marked(test.p_decides, test.significant), "" if result.published else chance(test.p)),
            Cell(number(test.epsilon2, "{:.3f}"), number(test.eta2, "{:.3f}")),
            Cell(number(test.delta_pct_hl, "{:+.2f} %"), _delta_interval(test)),
            *((number(test.runs_needed, "{:,}"),) if result.compares else ()),
            Cell(number(test.delta_pct_median, "{:+.2f} %"), number(test.delta_pct_mean, "{:+.2f} %")),
            marked(test.p_spread, test.spread_significant),
            _median(test, "fixed"),
            _median(test, "random"),
            number(test.case, "{}"),
            *(_effect(test, effect) for effect in WITHIN),
        )
        for name, test in shown
    ]
    return Table(head, rows, [test.significant for _, test in shown])


def rest(result: OrderResult) -> Table | None:
    """A table of the remaining tests with fewer columns; None if tests() shows all of them."""
    rows = [
        (
            name,
            f"{chance(test.p_decides)} {mark(test.significant)}",
            number(test.delta_pct_median, "{:+.2f} %"),
            number(test.case, "{}"),
            *(_effect(test, effect) for effect in WITHIN),
        )
        for name, test in result.by_p()[MOST_ROWS:]
    ]
    return Table(("test", "p", "Δ median", "case", *EFFECTS), rows) if rows else None


def carry_over(result: OrderResult) -> Table:
    """A table that compares a suite's tests in separate processes and in one shared process, the largest difference
    first.
    """
    every = sorted(result.suite.carry_over if result.suite else (), key=lambda each: -abs(log(each.times or 1)))
    rows = [
        (
            *(each.test, "" if each.after is None else each.after),
            *(_value(result, each.test, median) for median in (each.isolated, each.in_process)),
            *(number(each.times, "{:.3g}"), marked(each.p_adjusted, each.significant)),
        )
        for each in every[:MOST_NAMED]
    ]
    head = ("test", "changed most by", "isolated", "in-process", "ratio", "p after Bonferroni")
    return Table(head, rows, [each.significant for each in every[:MOST_NAMED]], names=2)


def earlier(result: OrderResult) -> Table:
    """A table of the tests of a suite that change other tests by running before them."""
    return _effects(result, result.suite.earlier if result.suite else (), "ran after")


def predecessors(result: OrderResult) -> Table:
    """A table of direct predecessors, the smallest p first."""
    return _effects(result, result.predecessors, "ran right after")


def _effects(result: OrderResult, effects: Sequence[PredecessorEffect], after: str) -> Table:
    every = sorted(effects, key=lambda each: (each.p_holm, each.p))
    shown = [each for each in every if each.significant][:MOST_NAMED] or every[:FIRST]
    rows = [
        (
            each.test,
            "(start of a run)" if each.after is None else each.after,
            f"{each.n:,}",
            _value(result, each.test, each.median),
            _value(result, each.test, each.median_others),
            number(each.delta_pct, "{:+.2f} %"),
            chance(each.p),
            marked(each.p_holm, each.significant),
        )
        for each in shown
    ]
    head = ("test", after, "n", "median", "median of its other trials", "difference", "p", "p after Holm")
    return Table(head, rows, [each.significant for each in shown], names=2)


def first_trials(result: OrderResult) -> Table:
    """A table that compares the first position of a run with all others, for the FIRST tests with the smallest p."""
    every = [(name, test.first_trial) for name, test in result.tests.items() if test.first_trial]
    rows = [
        (
            name,
            f"{each.n:,}",
            _value(result, name, each.median),
            _value(result, name, each.median_others),
            number(each.delta_pct, "{:+.2f} %"),
            chance(each.p),
        )
        for name, each in sorted(every, key=lambda item: item[1].p)[:FIRST]
    ]
    return Table(
        ("test", "n as first", "median as first", "median of its other trials", "difference", "p, not corrected"), rows
    )


def _hosts(result: OrderResult) -> Figure | None:
    names = figures.with_hosts(result)
    if not names or result.hosts is None:
        return None
    many = len(result.hosts.names)
    unlike = [f"{each.host} ({each.test})" for each in result.hosts.unlike if each.p_holm < result.alpha]
    most = figures.MOST_NAMED
    some = f" Shown: the {most} of {many:,} hosts whose effects differ most from the others'." if many > most else ""
    return Figure(
        "hosts",
        figures.hosts(result),
        "Each host alone and all hosts combined",
        f"({result.arms[0]} - {result.arms[1]})/{result.arms[0]} on each host, with its 95 % interval; for "
        f"all hosts, runs are compared only within hosts.{_foremost(len(names))}{some}",
        f"{many:,} hosts. " + _some("Unlike the others (Holm)", unlike),
        broad=len(names) > 1,
    )


def hosts(result: OrderResult) -> Table:
    """A table with a row for each test and host, the tests with the smallest p first; at most MOST_ROWS rows."""
    shown = [(name, test.hosts) for name, test in result.by_p() if test.hosts is not None]
    rows = [
        (
            name,
            each.host,
            f"{each.n_fixed:,} + {each.n_random:,}",
            _value(result, name, each.median_fixed),
            _value(result, name, each.median_random),
            "-" if each.p is None else chance(each.p),
            number(each.delta_pct, "{:+.2f} %"),
            "-" if each.interval is None else f"{each.interval[0]:+.2f} to {each.interval[1]:+.2f}",
            "-" if each.p_effect is None else chance(each.p_effect),
            "-" if each.p_level is None else chance(each.p_level),
        )
        for name, found in shown
        for each in found.hosts
    ][:MOST_ROWS]
    head = ("test", "host", "n", *result.arms, "p alone", "Δ", "interval of Δ", "p effect", "p level")
    return Table(head, rows, names=2)


def across(result: OrderResult) -> tuple[Table, Table]:
    """Two tables of the pairs of tests on which fixed and random order disagree: the first MOST_NAMED pairs, and the
    rest.
    """
    head = ("test A", "test B", *(f"A against B, {arm}" for arm in result.arm_labels))
    rows = [(pair.a, pair.b, pair.fixed, pair.random) for pair in result.across.named]
    return Table(head, rows[:MOST_NAMED], names=2), Table(head, rows[MOST_NAMED:], names=2)


def _delta_interval(test: OrderTest) -> str:
    ends = test.delta_pct_interval
    return "" if ends is None else f"{ends[0]:+.2f} to {ends[1]:+.2f}"


def _effect(test: OrderTest, effect: Within) -> str:
    return marked(*test.within(effect)) + ("?" if test.doubtful(effect) else "")


def _value(result: OrderResult, name: str, value: float | None) -> str:
    """A value of a test with its unit."""
    return "-" if value is None else f"{digits(value)} {result.tests[name].unit or ''}".strip()


def _median(test: OrderTest, order: Order) -> str | Cell:
    value, interval = test.median(order)
    if value is None:
        return "-"
    second = f"[{digits(interval[0])}, {digits(interval[1])}]" if interval else f"no interval below n = {test.ci_needs}"
    return Cell(f"{digits(value)} {test.unit or ''}".strip(), second)

"""The report of a study: one HTML page that needs nothing else, verdict first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cbench.order import figures, figures_within, page_study, page_tables
from cbench.order.page_study import StudyFacts
from cbench.order.page_tables import by_p, mark
from cbench.order.stats.data import Trials
from cbench.order.table import chance, corrected_by, deciding
from cbench.report.page import style
from cbench.report.page_parts import figure, paragraph, section
from cbench.report.svg import shortened

Row = Mapping[str, Any]
NAMED = 3


def page(about: StudyFacts, made: Row, trials: Trials) -> str:
    """The whole page: the same bytes for the same data."""
    parts = {
        "tests": ("Tests", page_tables.tests(made)),
        "orders": ("Fixed against random order", _orders(made)),
        "within": ("Inside of the random runs", _within(made)),
        "drift": ("Over the study", _drift(made, trials)),
        "across": ("Tests against each other", page_tables.across(made)),
        "study": ("The study", page_study.section(made, about)),
        "method": ("How this was computed", _method(made)),
    }
    links = " · ".join(f'<a href="#{key}">{escape(title)}</a>' for key, (title, body) in parts.items() if body)
    name = escape(about.name)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}: does the order of trials matter?</title>\n<style>\n{style()}</style>\n</head>\n<body>\n"
        f"<h1>{name}: does the order of trials matter?</h1>\n{_verdict(made)}<nav>{links}</nav>\n"
        f"{''.join(section(key, title, body) for key, (title, body) in parts.items())}</body>\n</html>\n"
    )


def _verdict(made: Row) -> str:
    lines = "".join(paragraph(line, "beware" if line.startswith("beware:") else "") for line in made["verdict"])
    return f'<section class="verdict {"yes" if made["order_matters"] else "no"}">\n{lines}</section>\n'


def _orders(made: Row) -> str:
    tested = [(name, each) for name, each in by_p(made) if each["p"] is not None]
    p = {name: deciding(made, each) or 0.0 for name, each in tested}
    if not tested:
        return ""
    many = len(tested)
    below = sum(each < made["alpha"] for each in p.values())
    family = sum(each < made["alpha_bonferroni"] for each in p.values())
    moved = [item for item in tested if item[1]["delta_pct_median"] is not None]
    moved.sort(key=lambda item: -abs(item[1]["delta_pct_median"]))
    drawn = figures.with_intervals(made)
    counts = {case: sum(each["case"] == case for each in made["tests"].values()) for case in (1, 2, 3, None)}
    parts = [
        figure(
            "p",
            figures.p_values(made),
            "p-values, sorted",
            "How likely such a difference between the orders is by chance alone; filled: significant.",
            f"{family:,} of {many:,} are below {made['alpha_bonferroni']:.2g}, {below:,} below {made['alpha']:g}. "
            + _some("Smallest", [f"{_short(name)} ({chance(each)})" for name, each in p.items()]),
        ),
        figure(
            "effect",
            figures.effects(made),
            "Effect sizes, sorted",
            "The share of the variance of ranks that the order explains, from 0 to 1.",
            _some("Largest", [f"{_short(name)} ({each['epsilon2']:.3f})" for name, each in _largest(tested)]),
        ),
        figure(
            "delta",
            figures.deltas(made),
            "Differences of the medians, sorted",
            "(fixed - random)/fixed: below 0 the random order has the larger values.",
            _some("Largest", [f"{_short(name)} ({each['delta_pct_median']:+.2f} %)" for name, each in moved]),
        ),
    ]
    if drawn:
        shown = min(len(drawn), figures.MOST_NAMED)
        said = f"The {shown:,} of {many:,} tests with the smallest p." if shown < many else ""
        parts.append(
            figure(
                "intervals",
                figures.intervals(made),
                "Medians with their intervals",
                f"Intervals at {100 * made['intervals']['level']:.4g} %, the smallest p on top.",
                said,
            )
        )
    parts.append(
        figure(
            "cases",
            figures.cases(made),
            "Cases",
            "How the intervals of both orders lie to each other, as a number of tests; apart is the red flag.",
            "; ".join(f"{case or 'no intervals'}: {count:,}" for case, count in counts.items() if case or count) + ".",
        )
    )
    return f'<div class="figures">\n{"".join(parts)}</div>\n'


def _largest(tested: Sequence[tuple[str, Row]]) -> list[tuple[str, Row]]:
    return sorted((item for item in tested if item[1]["epsilon2"] is not None), key=lambda item: -item[1]["epsilon2"])


def _within(made: Row) -> str:
    parts = []
    names = [name for name, each in by_p(made, "position_p") if each["position"]]
    if names:
        yes = sum(made["tests"][name]["position_significant"] for name in names)
        every = all(
            len(made["tests"][name]["position"]["groups"]) == made["tests"][name]["position"]["labels"]
            for name in names
        )
        places = "each place" if every else "the places where it was most often"
        parts.append(
            figure(
                "position",
                figures_within.positions(made, names),
                "Median by position",
                f"Each test's median at {places} in the random runs, against the middle one of these medians."
                + _foremost(len(names)),
                f"Significant ({mark(True)}): {yes:,} of {len(names):,} tests.",
                broad=True,
            )
        )
    if first := page_tables.first_trials(made):
        parts.append(f"<h3>The first trial of a run</h3>\n{first}")
    if made["predecessors"]:
        tests = len({each["test"] for each in made["predecessors"]})
        most = figures_within.MOST_CELLS
        parts.append("<h3>What ran right before</h3>\n" + page_tables.predecessors(made))
        parts.append(
            figure(
                "matrix",
                figures_within.matrix(made),
                "Which test disturbs which",
                "A row is a test, a column what ran right before it; the median of these trials in % away from that of "
                "the test's other trials; ● significant (Holm over all pairs), hatched: "
                + ("never happened." if page_tables.all_pairs(made) else "not among those with the smallest p.")
                + (f" The {most} tests with the clearest effects of {tests:,}." if tests > most else ""),
                f"Significant: {page_tables.pairs(made)} pairs.",
                broad=True,
            )
        )
    return "".join(parts)


def _drift(made: Row, trials: Trials) -> str:
    if trials.run is None or not trials.timed:
        return ""
    names = [name for name, each in by_p(made, "drift_p") if each["n_fixed"] + each["n_random"]]
    if not names:
        return ""
    yes = sum(made["tests"][name]["drift_significant"] for name in names)
    return figure(
        "drift",
        figures_within.drift(made, trials, names),
        "Values by run, in time",
        "Each trial is a point, filled in fixed and hollow in random order; p of the drift over all runs."
        + _foremost(len(names)),
        f"Significant ({mark(True)}): {yes:,} of {len(names):,} tests.",
        broad=True,
    )


def _method(made: Row) -> str:
    rule = made["intervals"]
    correction = "no correction for" if made["correction"] == "none" else f"{corrected_by(made)} over"
    null = "chi-squared" if made["null"] == "chi2" else "permutation (exact below 40 values, else by moments)"
    return paragraph(
        f"Kruskal-Wallis, corrected for ties, p by {null}, {correction} the number of tests (level {made['alpha']:g}; "
        f"Bonferroni's is {made['alpha_bonferroni']:.3g}). Intervals of the median by {rule['rule']} ranks at "
        f"{100 * rule['level']:.4g} %, cases by the rule {rule['case']!r}. Position and predecessor: Kruskal-Wallis "
        "within the random runs; single predecessors against all other trials of the test, Holm over the whole matrix. "
        "Drift: Spearman's correlation with the run's number, each order less its median. Runs needed: Noether 1987, "
        f"at a power of {100 * made['power']['power']:g} %. The method is that of D. Duplyakin et al., Avoiding the "
        "Ordering Trap in Systems Performance Measurement, USENIX ATC 2023; position, predecessor and drift go beyond "
        "it.",
        "note",
    )


def _foremost(many: int) -> str:
    most = figures_within.MOST_PANELS
    return f" The {most} tests with the smallest p of {many:,}." if many > most else ""


def _some(word: str, items: Sequence[str]) -> str:
    return f"{word}: {', '.join(items[:NAMED])}." if items else ""


def _short(name: str) -> str:
    return shortened(name, 40)

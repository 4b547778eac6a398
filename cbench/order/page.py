"""The report of a study: one HTML page that needs nothing else, verdict first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from cbench import plots_order
from cbench.render_order import chance, number
from cbench.stats.order.data import Trials

Row = Mapping[str, Any]
MOST_ROWS = 500
MOST_PAIRS = 100


def page(name: str, made: Row, trials: Trials) -> str:
    """The whole page."""
    tests = made["tests"]
    foremost = sorted(tests, key=lambda each: 2.0 if tests[each]["p"] is None else tests[each]["p"])
    parts = [_verdict(made), _tests(made), _figures(made, trials, foremost), _across(made), _method(made)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(name)}: does the order matter?</title>\n<style>\n{style()}</style>\n</head>\n<body>\n"
        f"<h1>{escape(name)}: does the order of trials matter?</h1>\n{''.join(parts)}</body>\n</html>\n"
    )


def style() -> str:
    """The style sheet of the page."""
    return (files("cbench") / "templates" / "order.css").read_text(encoding="utf-8")


def _verdict(made: Row) -> str:
    lines = "".join(
        f"<p{' class=beware' if line.startswith('beware:') else ''}>{escape(line)}</p>\n" for line in made["verdict"]
    )
    return f'<section class="verdict {"yes" if made["order_matters"] else "no"}">\n{lines}</section>\n'


def _tests(made: Row) -> str:
    head = (
        *("test", "n fixed", "n random", "p", "", "ε²", "η²", "Δ median", "Δ mean", "median fixed", "median random"),
        *("case", "p position", "p predecessor", "p drift", f"runs to see {made['power']['delta_pct']:g} %"),
    )
    rows = []
    items = sorted(made["tests"].items(), key=lambda item: 2.0 if item[1]["p"] is None else item[1]["p"])
    for name, each in items[:MOST_ROWS]:
        cells = [
            escape(name),
            f"{each['n_fixed']:,}",
            f"{each['n_random']:,}",
            chance(each["p"]),
            "●" if each["significant"] else "○",
            number(each["epsilon2"], "{:.3f}"),
            number(each["eta2"], "{:.3f}"),
            number(each["delta_pct_median"], "{:+.2f} %"),
            number(each["delta_pct_mean"], "{:+.2f} %"),
            _median(each, "fixed"),
            _median(each, "random"),
            number(each["case"], "{}"),
            *(_marked(each, key) for key in ("position", "predecessor", "drift")),
            number(each["runs_needed"], "{:,}"),
        ]
        rows.append(_row(cells, "yes" if each["significant"] else ""))
    more = len(items) - len(rows)
    note = f"<p class=note>and {more:,} tests with larger p; all of them in --json</p>\n" if more > 0 else ""
    return f"<h2>Tests</h2>\n{table(head, rows)}{note}"


def _figures(made: Row, trials: Trials, foremost: Sequence[str]) -> str:
    parts = ["<h2>Fixed against random order</h2>\n"]
    if any(each["p"] is not None for each in made["tests"].values()):
        parts += [
            figure(
                plots_order.p_values(made),
                "p-values of all tests, sorted; dashed: the level of one test, and of all after Bonferroni.",
            ),
            figure(plots_order.effects(made), "Effect sizes, sorted: the share of the ranks' variance, from 0 to 1."),
            figure(plots_order.deltas(made), "(fixed - random)/fixed of the medians, sorted."),
            figure(plots_order.intervals(made), "Medians with their intervals in both orders."),
            figure(plots_order.cases(made), "Cases: how the two intervals of each test lie to each other."),
        ]
    inside = [name for name in foremost if made["tests"][name]["position"]]
    if inside:
        parts += ["<h2>Within the random runs</h2>\n"]
        parts += [figure(plots_order.positions(made, inside), "Median by position, in % of the test's own.")]
    if made["predecessors"]:
        caption = "What ran right before: medians against all other trials of the test; ● significant (Holm)."
        parts += [figure(plots_order.matrix(made), caption)]
    if trials.run is not None and trials.timed:
        parts += ["<h2>Over the study</h2>\n", figure(plots_order.drift(trials, foremost), "Values by run, in time.")]
    return "".join(parts)


def _across(made: Row) -> str:
    across = made["across"]
    if not across["pairs"]:
        return ""
    lead = f"{across['changed']:,} of {across['pairs']:,} comparisons change with the order"
    lead += f", {across['reversed']:,} into their opposite." if across["reversed"] else "."
    rows = [
        _row([escape(pair["a"]), escape(pair["b"]), pair["fixed"], pair["random"]], "")
        for pair in across["named"][:MOST_PAIRS]
    ]
    body = table(("A", "against B", "fixed order: A is", "random order: A is"), rows) if rows else ""
    return f"<h2>Tests against each other</h2>\n<p>{lead}</p>\n{body}"


def _method(made: Row) -> str:
    rule = made["intervals"]
    return (
        "<h2>How this was computed</h2>\n<p class=note>Kruskal-Wallis, corrected for ties; "
        f"● p &lt; {made['alpha']:g} after {escape(made['correction'])} over the tests "
        f"(Bonferroni: p &lt; {made['alpha_bonferroni']:.3g}). Intervals of the median by {escape(rule['rule'])} "
        f"ranks at {100 * rule['level']:.4g} %, cases by the rule {escape(rule['case'])}. Position and predecessor: "
        "Kruskal-Wallis within the random runs; single predecessors against all other trials, Holm over the whole "
        "matrix. Drift: Spearman's correlation with the run's number, each order less its median. Runs needed: "
        f"Noether 1987 at a power of {100 * made['power']['power']:g} %. Method: Duplyakin et al., USENIX ATC "
        "2023.</p>\n"
    )


def figure(svg: str, caption: str) -> str:
    return f"<figure>\n{svg}\n<figcaption>{escape(caption)}</figcaption>\n</figure>\n"


def table(head: Sequence[str], rows: Sequence[str]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f'<div class="wide"><table>\n<tr>{cells}</tr>\n{"".join(rows)}</table></div>\n'


def _row(cells: Sequence[str], kind: str) -> str:
    return f"<tr{f' class={kind}' if kind else ''}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def _marked(each: Row, key: str) -> str:
    return chance(each[f"{key}_p"]) + (" ●" if each[f"{key}_significant"] else "")


def _median(each: Row, order: str) -> str:
    value, interval = each[f"median_{order}"], each[f"ci_{order}"]
    if value is None:
        return "-"
    return f"{value:,.6g}" + ("" if interval is None else f" [{interval[0]:,.6g}, {interval[1]:,.6g}]")

"""The tables of a screening experiment's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cbench.report.page_parts import facts, paragraph, small, table
from cbench.report.text import chance, mark, number, some
from cbench.screen.analysis.verdict import amount, fair, is_adjusted

Row = Mapping[str, Any]
MOST_ROWS = 300


def effects(made: Row) -> str:
    """Every effect of every response, the smallest p first."""
    rows = []
    for name, row in made["responses"].items():
        every = [*row["effects"].items(), *((each["name"], each) for each in row["interactions"])]
        rows += [(name, row, effect, each) for effect, each in every]
    rows.sort(key=lambda item: 2.0 if item[3]["p_adjusted"] is None else float(item[3]["p_adjusted"]))
    head = ["effect", "response", "size", f"p{small('after Holm')}", "same order in boxes"]
    cells = [_effect(*each) for each in rows]
    kinds = ["yes" if each["significant"] else "" for _, _, _, each in rows]
    text = table(head, cells[:MOST_ROWS], kinds[:MOST_ROWS], names=2)
    if len(cells) > MOST_ROWS:
        text += (
            f"<details>\n<summary>The other {len(cells) - MOST_ROWS:,} effects, which have larger p</summary>\n"
            f"{table(head, cells[MOST_ROWS:], names=2)}</details>\n"
        )
    return text + _not_tested(rows) + "<h3>How to read it</h3>\n" + facts(_legend(made))


def _not_tested(rows: Sequence[tuple[str, Row, str, Row]]) -> str:
    """The reasons, each once with its effects."""
    why: dict[str, dict[str, None]] = {}
    for name, _, effect, each in rows:
        if each["p"] is None:
            reason = each["why"] or "not known"
            why.setdefault(reason, {})[effect if effect in reason else f"{effect} ({name})"] = None
    lines = [f"Not tested: {some(list(effects))}: {reason}." for reason, effects in why.items()]
    return "".join(paragraph(line, "note") for line in lines)


def _effect(name: str, row: Row, effect: str, each: Row) -> Sequence[str]:
    plot = row["blocks"].get(effect)
    size = "-" if each["effect"] is None else amount(each["effect"], row["unit"], each["signed"])
    adjusted = None if each["effect"] is None or not is_adjusted(each) else fair(each)
    p = each["p"]
    return [
        escape(effect),
        escape(name),
        escape(size) + small("" if adjusted is None else f"adjusted {amount(adjusted, row['unit'], each['signed'])}"),
        "not tested" if p is None else f"{chance(p)} {mark(each['significant'])}{small(chance(each['p_adjusted']))}",
        "-" if not plot else _boxes(plot),
    ]


def _boxes(plot: Row) -> str:
    if not plot["n"]:
        return "-"
    told = "" if plot["p"] is None else f"p {chance(plot['p'])}"
    told = f"chance {plot['chance']:.2g}" if plot["consistent"] else told
    if not plot["able"]:
        told += f"; needs {plot['needed']}"
    return f"{plot['agreeing']} of {plot['n']}" + small(told.removeprefix("; "))


def _legend(made: Row) -> list[tuple[str, str]]:
    return [
        (
            "size",
            "two levels: mean with the second less mean with the first; more levels: the range of their means. "
            "Interaction: half the difference of both differences, else the largest residual of the additive table. "
            "Adjusted: by least squares with all main effects, where treatments are not balanced.",
        ),
        (
            "p",
            "the chance of such an effect where there is none: signed ranks of the differences within iterations; hard "
            "factors, and with several batches all, by the split-plot analysis of variance; below it after Holm's "
            f"correction for all {made['tests']:,} effects of all responses.",
        ),
        ("● ○", f"● significant: p after Holm < {made['alpha']:g}; ○ not, which proves no equality."),
        (
            "same order in boxes",
            "in how many combinations of the other factors the levels have the most frequent order, of those in which "
            "no level is missing; chance: that all agree when nothing has an effect.",
        ),
    ]


def treatments(made: Row, row: Row) -> str:
    """Every treatment with its mean and its intervals."""
    level = f"{100 * made['confidence']:.4g} %"
    head = [
        "treatment",
        "n",
        f"mean{small('median')}",
        f"BCa {level}{small('strict ties')}",
        f"t {level}",
        f"sd{small('range')}",
        "replicates",
    ]
    cells = [_treatment(row, each) for each in row["treatments"]]
    kinds = ["yes" if each["questionable"] is not None else "" for each in row["treatments"]]
    text = table(head, cells[:MOST_ROWS], kinds[:MOST_ROWS])
    if row["unobtainable"]:
        text += paragraph(f"Not obtainable: {', '.join(row['unobtainable'])}.", "note")
    return text


def _treatment(row: Row, each: Row) -> Sequence[str]:
    unit = row["unit"]
    spread = None if each["min"] is None else each["max"] - each["min"]
    doubt = each["questionable"]
    said = "" if doubt is None else f"questionable{': ' + doubt if doubt else ''}"
    first = each["first_run"]
    warm = "its first value stands out" if first and first["flagged"] else ""
    return [
        escape(each["name"]) + small(said) + small(warm),
        f"{each['n']:,}" + small(f"{each['failed']:,} failed" if each["failed"] else ""),
        f"{number(each['mean'], '{:,.7g}')} {escape(unit)}" + small(number(each["median"], "{:,.7g}")),
        _interval(each["bca_mid"]) + small(_interval(each["bca_strict"])) + small(each["why"] or ""),
        _interval(each["t"]),
        number(each["sd"], "{:.3g}") + small("" if spread is None else f"{spread:.3g}"),
        f"{each['replicates']:,}",
    ]


def _interval(ends: Sequence[float] | None) -> str:
    return "-" if ends is None else f"[{ends[0]:,.7g}, {ends[1]:,.7g}]"


def material(row: Row) -> str:
    """Effects against the widths of intervals."""
    found, unit = row["material"], row["unit"]
    if not found or found.get("median_effect") is None:
        return paragraph((found or {}).get("why") or "Nothing to compare.", "note")
    if found["largest_effect"] == 0:
        return paragraph("There is no effect.", "note")
    widths: dict[int, dict[str, float]] = {}
    for each in found["widths"]:
        widths.setdefault(each["n"], {})[each["method"]] = each["median_width"]
    methods = sorted({method for each in widths.values() for method in each})
    rows = []
    for n, by_method in sorted(widths.items()):
        shown = [name for name, each in found["effects"].items() if any(_narrow(each, by_method, m) for m in methods)]
        cells = [amount(by_method[m], unit) if m in by_method else "-" for m in methods]
        rows.append([f"{n:,}", *map(escape, cells), escape(", ".join(shown) or "none")])
    enough = [f"{m} {n:,}" if n else f"{m} more than were studied" for m, n in found["enough"].items()]
    said = (
        f"Median main effect {amount(found['median_effect'], unit)}, largest {amount(found['largest_effect'], unit)}; "
        f"range of a treatment's values {amount(found['range'], unit)}. Smallest sample whose median interval is "
        f"narrower than the median effect: {', '.join(enough)}."
    )
    head = ["n", *(f"median width, {method}" for method in methods), "main effects that are larger"]
    return paragraph(said) + table(head, rows)


def _narrow(effect: Row, widths: Mapping[str, float], method: str) -> bool:
    return method in widths and effect["magnitude"] is not None and bool(widths[method] < effect["magnitude"])


def split_plot(row: Row) -> str:
    """The analysis of variance, and what it cannot say."""
    found = row["split_plot"]
    cells = [
        [
            escape(each["source"]),
            escape(each["stratum"] or ""),
            f"{each['ss']:.6g}",
            f"{each['df']:,}",
            number(each["ms"], "{:.6g}"),
            number(each["f"], "{:.4g}"),
            chance(each["p"]),
        ]
        for each in found["rows"]
    ]
    text = "".join(paragraph(each, "beware") for each in found["refused"])
    if found["dropped"]:
        text += paragraph(f"{len(found['dropped']):,} batches lack a treatment and are left out.", "note")
    return text + (table(["source", "stratum", "SS", "df", "MS", "F", "p"], cells, names=2) if cells else "")


def boots(row: Row) -> str:
    """Batches within each combination of the hard factors' levels."""
    cells = [
        [
            escape(each["level"] or "all"),
            f"{len(each['batches']):,}",
            f"{each['H']:.4g}",
            f"{chance(each['p_holm'])} {mark(each['depends'])}",
            number(each["f"], "{:.4g}"),
            number(each["icc"], "{:.3f}"),
            f"{each['var_boot']:.4g}",
        ]
        for each in row["boots"]
    ]
    said = "Each value less its treatment's mean; Kruskal-Wallis over batches, and one-way random effects."
    head = ["level", "batches", "H", "p after Holm", "F", "share of variance", "variance between"]
    return paragraph(said) + table(head, cells)


def sets(made: Row) -> str:
    """What each choice of treatments can tell, and the main effects that it would give."""
    design = made["design"]
    if len(design["sets"]) < 2 and not design["sets"][0]["says"]:
        return ""
    rows = [
        [
            escape(each["name"]) + small(each["words"]),
            f"{each['treatments']:,}",
            "; ".join(
                f"{escape(factor)} {'+'.join(str(count) for count in counts.values())}"
                for factor, counts in each["counts"].items()
            ),
            {True: "yes", False: "no", None: "-"}[each["balanced"]],
            "; ".join(escape(one) for one in each["says"]) or "-",
        ]
        for each in design["sets"]
    ]
    kinds = ["yes" if each["name"] == made["filter"]["name"] else "" for each in design["sets"]]
    text = table(["treatments", "number", "of each level", "balanced", "in words"], rows, kinds)
    text = text.replace("<td>", '<td class="name">')
    return text + _effects_by_set(made)


def _effects_by_set(made: Row) -> str:
    names = [each["name"] for each in made["design"]["sets"]]
    if len(names) < 2:
        return ""
    rows = []
    for response, row in made["responses"].items():
        for factor in row["effects"]:
            cells = [row["sets"].get(name, {}).get(factor) for name in names]
            rows.append([escape(factor), escape(response), *(_set_effect(each, row["unit"]) for each in cells)])
    head = ["main effect", "response", *map(escape, names)]
    return "<h3>Main effects by choice of treatments</h3>\n" + table(head, rows[:MOST_ROWS], names=2)


def _set_effect(each: Row | None, unit: str) -> str:
    if each is None or each["effect"] is None:
        return "-"
    if not each["testable"]:
        second = "not to be told from others"
    elif is_adjusted(each):
        second = f"adjusted {amount(fair(each), unit, each['signed'])}"
    else:
        second = ""
    return escape(amount(each["effect"], unit, each["signed"])) + small(second)


def method(made: Row) -> str:
    """One paragraph, with sources."""
    return paragraph(
        "Effects: differences and ranges of treatments' means (Box, Hunter, Hunter 2005), tested by signed ranks of "
        "the differences within randomised complete blocks (after Quade 1979), hard factors against their batches by "
        f"the split-plot analysis of variance; Holm 1979 over all effects, level {made['alpha']:g}. Intervals of the "
        f"mean at {100 * made['confidence']:.4g} %: BCa (Efron 1987) with replicates added until their ends are stable "
        "(JCGM 101:2008, 7.9.4), of up to 8 values with all resamples, replicates that equal the mean counted half "
        "(strict ties: not at all), and Student's t. "
        "Block plots: NIST/SEMATECH e-Handbook, 1.3.3.3. The method is that of D. Flater, Screening for factors "
        "affecting application performance in profiling measurements, NIST Technical Note 1855, 2014; tests of effects "
        f"and of batches go beyond it. Seed {made['seed']}.",
        "note",
    )

"""The verdict on a screen in words; everything said comes from analysis.py's plain objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cbench.report.text import MOST, counted, some
from cbench.screen.analysis import sample_size as enough

Row = Mapping[str, Any]
USUAL = 40
"""Values of a sample as people often take them, which TN 1855 finds not to be enough."""
NOTHING = "nothing could be tested"
UNTOLD = "nothing could be told: too few iterations"
RANKS = "signed ranks in blocks"


def verdict(made: Row) -> list[str]:
    """Some lines, the most important first."""
    lines = [_matters(made), *_practice(made), *_same_everywhere(made), *_whole_plots(made), *_boots(made)]
    return [*lines, *_first_runs(made), *(f"beware: {each}" for each in _beware(made))]


def nothing_told(made: Row) -> bool:
    """Whether there is no answer at all: no test, or none that could have come out significant."""
    every = [(row["blocks_used"], each["test"]) for row in made["responses"].values() for _, each in _effects(row)]
    return all(
        test["by"] == RANKS and made["tests"] * enough.least(blocks) >= made["alpha"] for blocks, test in every if test
    )


def amount(value: float, unit: str, signed: bool = False) -> str:
    """Three digits and the unit."""
    shown = f"{value:+.3g}" if signed else f"{value:.3g}"
    if "e" in shown and 1e-6 <= abs(value) < 1e9:
        shown = f"{float(shown):+,.10g}" if signed else f"{float(shown):,.10g}"
    return f"{shown} {unit}".strip()


def _matters(made: Row) -> str:
    tests = made["tests"]
    if not tests:
        return f"{NOTHING}: {_why_nothing(made)}"
    found: dict[str, list[tuple[float, str]]] = {}
    for name, row in made["responses"].items():
        for effect, each in _effects(row):
            if each["significant"]:
                found.setdefault(effect, []).append((each["p_adjusted"], _by(name, row, each, made)))
    if nothing_told(made):
        return UNTOLD
    many = f"{counted(tests, 'effect')} tested in {counted(len(made['responses']), 'response')}"
    if not found:
        return f"what matters: nothing was found ({many}, family-wise error {made['alpha']:g})"
    said = [
        f"{effect} ({some([words for _, words in sorted(each)])})"
        for effect, each in sorted(found.items(), key=lambda item: (min(item[1])[0], item[0]))
    ]
    return f"what matters: {some(said)}; {many}, family-wise error {made['alpha']:g}"


def _by(name: str, row: Row, each: Row, made: Row) -> str:
    """`wall by 0.19 s`; `wall` where the response is the only one: without its name."""
    prefix = f"{name} " if len(made["responses"]) > 1 else ""
    if each["effect"] is None:
        return prefix.strip() or "its size cannot be told"
    size = amount(fair(each), row["unit"], signed=each["signed"])
    return f"{prefix}{'' if each['signed'] else 'up to '}{size}{' adjusted' if is_adjusted(each) else ''}"


def fair(each: Row) -> float:
    """An effect that no lack of balance biases: the adjusted one where it is another than the plain."""
    plain, adjusted = float(each["effect"]), each.get("adjusted")
    return plain if adjusted is None or abs(adjusted - plain) <= 1e-9 * abs(plain) else float(adjusted)


def is_adjusted(each: Row) -> bool:
    """Whether the fair effect is another than the plain one."""
    return bool(fair(each) != each["effect"])


def _why_nothing(made: Row) -> str:
    why = [each["why"] for row in made["responses"].values() for _, each in _effects(row) if each["why"]]
    why += [row["why"] for row in made["responses"].values() if row["why"]]
    return some(list(dict.fromkeys(why))) or "there are no effects"


def _practice(made: Row) -> list[str]:
    """Whether samples of usual sizes would show it."""
    lines = []
    for name, row in made["responses"].items():
        material = row["material"]
        if not material or material.get("median_effect") is None:
            continue
        if material["largest_effect"] == 0:
            lines.append(f"{name}: there is no effect")
            continue
        median, unit = material["median_effect"], row["unit"]
        largest = amount(material["largest_effect"], unit)
        said = f"{name}: the median main effect is {amount(median, unit)}, the largest {largest}"
        if material["range"]:
            said += f", where values of one treatment range over {amount(material['range'], unit)}"
        lines.append(said + _enough(material, unit))
    if not lines:
        return []
    more = [f"so much for {MOST} responses; the other {len(lines) - MOST:,} are in --json"] if len(lines) > MOST else []
    return [f"does it matter in practice: {lines[0]}", *lines[1:MOST], *more]


def _enough(material: Row, unit: str) -> str:
    """What intervals from a usual number of values show, and from how many on they are narrower than the effects."""
    widths = {(each["method"], each["n"]): each["median_width"] for each in material["widths"]}
    method = "BCa" if any(each == "BCa" for each, _ in widths) else "t"
    sizes = sorted(n for each, n in widths if each == method)
    if not sizes:
        own = material["own"]
        width = own["BCa"] if own["BCa"] is not None else own["t"]
        return "" if width is None else _shown(material, own["n"], width, unit)
    usual = next((n for n in reversed(sizes) if n <= USUAL), sizes[0])
    said = _shown(material, usual, widths[method, usual], unit)
    enough = material["enough"].get(method)
    if enough is None:
        return f"{said}; those from {sizes[-1]:,}, the most that were studied, are wider than the median effect"
    return f"{said}; from {enough:,} values on they are narrower than the median effect"


def _shown(material: Row, n: int, width: float, unit: str) -> str:
    if width < material["median_effect"]:
        what = "which shows most effects"
    elif width < material["largest_effect"]:
        what = "which shows the largest effect and hides most others"
    else:
        what = "which hides every effect"
    return f"; intervals from {n:,} values are {amount(width, unit)} wide, {what}"


def _same_everywhere(made: Row) -> list[str]:
    """Block plots in which all boxes agree by less than chance."""
    found: dict[str, list[str]] = {}
    for name, row in made["responses"].items():
        for factor, plot in row["blocks"].items():
            if plot and plot["consistent"] and plot["chance"] <= made["alpha"]:
                said = f"{name} in {plot['n']} boxes, chance {plot['chance']:.2g}"
                found.setdefault(factor, []).append(said)
    if not found:
        return []
    named = [f"{factor} ({some(each)})" for factor, each in found.items()]
    return [f"the same order of levels whatever the other factors are: {some(named)}"]


def _whole_plots(made: Row) -> list[str]:
    refused = [each for row in made["responses"].values() if row["split_plot"] for each in row["split_plot"]["refused"]]
    return [*dict.fromkeys(refused), *_not_alike(made)]


def _not_alike(made: Row) -> list[str]:
    """What was told from chance within the batches that there are, and not from their differences."""
    lines = []
    for name, row in made["responses"].items():
        for effect, each in _effects(row):
            within = (each["test"] or {}).get("p_within")
            if within is not None and within * made["tests"] < made["alpha"] and not each["significant"]:
                prefix = f"{name}: " if len(made["responses"]) > 1 else ""
                lines.append(
                    f"{prefix}{effect} differs within these batches (p {within:.2g}), but not alike in all of them "
                    f"(against the batches p {each['p']:.2g}): nothing is told of others; take more batches"
                )
    return lines


def _boots(made: Row) -> list[str]:
    found = [
        f"{name}{' at ' + each['level'] if each['level'] else ''} ({100 * (each['icc'] or 0):.0f} % of the variance)"
        for name, row in made["responses"].items()
        for each in row["boots"]
        if each["depends"]
    ]
    return [f"values depend on the batch: {some(found)}"] if found else []


def _first_runs(made: Row) -> list[str]:
    found = [
        f"{name} {each['name']}"
        for name, row in made["responses"].items()
        for each in row["treatments"]
        if each["first_run"] and each["first_run"]["flagged"]
    ]
    return [f"the first value stands out from all others of its treatment: {some(found)}"] if found else []


def _beware(made: Row) -> list[str]:
    design, chosen = made["design"], made["filter"]
    lines = list(design["warnings"])
    doubtful = [each["name"] for each in design["treatments"] if each["questionable"] is not None and each["kept"]]
    if doubtful:
        are = "is" if len(doubtful) == 1 else "are"
        lines.append(f"{some(doubtful)} {are} questionable and counted; --exclude-questionable leaves such out")
    used = next(each for each in design["sets"] if each["name"] == chosen["name"])
    if used["balanced"] is False:
        lines.append(f"{chosen['name']}: not balanced in {some(used['unbalanced'])}: only adjusted effects compare")
    mains = [each for each in used["aliased"] if each["effect"] in {factor["name"] for factor in design["factors"]}]
    for each in mains:
        lines.append(f"{chosen['name']}: {each['effect']} cannot be told from {some(each['with'])}")
    if pairs := [each["effect"] for each in used["aliased"] if each not in mains]:
        are = "is an interaction" if len(pairs) == 1 else "are interactions"
        lines.append(f"{chosen['name']}: {some(pairs)} {are} that cannot be told from other effects")
    lines += _too_few(made)
    for name, row in made["responses"].items():
        if row["missing"]:
            lines.append(f"{name} has no values of {some(row['missing'])}")
        lines += _untestable(name, row, [each["effect"] for each in used.get("untestable", [])])
        if row["blocks_dropped"]:
            whole = row["blocks_dropped"] + row["blocks_used"]
            lines.append(
                f"{name}: {row['blocks_dropped']:,} of {whole:,} iterations lack a value and are left out of the tests"
            )
        if any(each["n"] > 1 and not each["t"] for each in row["treatments"]):
            lines.append(f"{name}: there are no intervals by Student's t: the values are too large to be squared")
        if row["treatments"] and all(each["alike"] or not each["n"] for each in row["treatments"]):
            lines.append(f"{name}: all values of each treatment are alike")
    return lines


def _untestable(name: str, row: Row, known: Sequence[str]) -> list[str]:
    """Effects that a response cannot test for want of treatments. `known`: those that no response can."""
    if not row["missing"] and not row["unobtainable"]:
        return []
    lost = [each["why"] for effect, each in _effects(row) if effect not in known and not each["testable"]]
    more = [f"{name}: so much for {MOST} effects that cannot be tested; the other {len(lost) - MOST:,} are in --json"]
    return [f"{name}: {why}" for why in lost[:MOST]] + (more if len(lost) > MOST else [])


def _too_few(made: Row) -> list[str]:
    """Responses with so few iterations that Holm asks for less than any p within them."""
    by_ranks = [
        (row["blocks_used"], name)
        for name, row in made["responses"].items()
        if any(each["test"] and each["test"]["by"] == RANKS for _, each in _effects(row))
    ]
    told = sum(each["significant"] for row in made["responses"].values() for _, each in _effects(row))
    return enough.words(made["tests"], made["alpha"], by_ranks, told)


def _effects(row: Row) -> list[tuple[str, Row]]:
    return [*row["effects"].items(), *((each["name"], each) for each in row["interactions"])]

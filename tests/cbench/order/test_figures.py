"""The figures of a report: SVG elements that show every test, and that do not depend on each other."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

from cbench.order import figures as plots_order
from cbench.report.svg import embedded, shortened, svg
from tests.cbench.order.pages import NASTY, analysed, study

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("figures")]

SPACE = "{http://www.w3.org/2000/svg}"
FEW = [f"test {number}" for number in range(9)]
SORTED = {"p_values": plots_order.p_values, "effects": plots_order.effects, "deltas": plots_order.deltas}


@pytest.fixture(scope="module")
def few() -> Any:
    return analysed(study(FEW, n=60))


@pytest.fixture(scope="module")
def many() -> Any:
    one = study([f"test {number}" for number in range(200)], n=5)
    return analysed({key: one[key] for key in ("test", "order", "value")})


def texts(figure: str) -> list[str]:
    """The texts of a figure, in order; ParseError where it is not XML."""
    return ["".join(each.itertext()) for each in ET.fromstring(figure).iter(f"{SPACE}text")]


def points(figure: str) -> int:
    return len(list(ET.fromstring(figure).iter(f"{SPACE}use")))


@pytest.mark.parametrize("name", SORTED)
def test_of_a_few_tests_each_has_a_line_with_its_name(few: Any, name: str) -> None:
    assert set(FEW) <= set(texts(SORTED[name](few[0])))


def test_p_values_are_sorted_with_the_smallest_on_top(few: Any) -> None:
    made = few[0]
    lines = [text for text in texts(plots_order.p_values(made)) if text in FEW]
    assert lines == sorted(FEW, key=lambda name: made.tests[name].p_decides or 0)


def test_differences_are_sorted_in_ascending_order(few: Any) -> None:
    made = few[0]
    lines = [text for text in texts(plots_order.deltas(made)) if text in FEW]
    assert lines == sorted(FEW, key=lambda name: made.tests[name].delta_pct_hl or 0)


@pytest.mark.parametrize("name", SORTED)
def test_of_many_tests_each_is_a_point_of_a_curve(many: Any, name: str) -> None:
    figure = SORTED[name](many[0])
    ticks = points(SORTED[name](replace(many[0], tests={})))
    assert 200 <= points(figure) <= 200 + 2 * ticks + 20
    assert not any(text.startswith("test 1") for text in texts(figure))


def test_of_very_many_tests_only_as_many_points_are_drawn_as_can_be_seen() -> None:
    made, _ = analysed(study(["a"]))
    one = replace(made.tests["a"], significant=False, p=0.5, epsilon2=0.1, delta_pct_median=1.0)
    tests = {str(number): one for number in range(10_000)}
    made = replace(made, alpha_bonferroni=5e-6, null="chi2", tests=tests)
    for draw in SORTED.values():
        figure = draw(made)
        assert plots_order.MOST_POINTS <= points(figure) <= plots_order.MOST_POINTS + 100  # ticks, legend
        assert len(figure) < 200_000


def test_the_figure_of_p_values_shows_the_levels_of_one_test_and_of_the_family(few: Any) -> None:
    assert {"0.05, for one test", "0.0056, for all (Bonferroni)"} <= set(texts(plots_order.p_values(few[0])))


def test_a_p_value_of_0_can_be_drawn(few: Any) -> None:
    tests = few[0].tests | {FEW[0]: replace(few[0].tests[FEW[0]], p_permutation=0.0)}
    assert FEW[0] in texts(plots_order.p_values(replace(few[0], tests=tests)))


def test_intervals_name_each_test_with_its_case(few: Any) -> None:
    made = few[0]
    written = texts(plots_order.intervals(made))
    cases = [text[:6] for text in written if re.match(r"case \d", text)][::-1]
    names = sorted(FEW, key=lambda name: made.tests[name].p_decides or 0)
    assert cases == [f"case {made.tests[name].case}" for name in names]
    assert "case 1: apart" in written


def test_the_matrix_marks_the_predecessor_that_disturbs(few: Any) -> None:
    made = few[0]
    significant = [(each.test, each.after) for each in made.predecessors if each.significant]
    assert significant == [(FEW[0], FEW[1])]
    assert len([text for text in texts(plots_order.matrix(made)) if "●" in text]) == 1


def test_of_many_tests_the_matrix_shows_those_with_the_clearest_effects() -> None:
    names = [f"test {number}" for number in range(39, -1, -1)]
    made, _ = analysed(study(names, n=40))
    written = texts(plots_order.matrix(made))
    rows = [text for text in written if text in names]
    assert len(rows) + written.count("(start of a run)") == 2 * plots_order.MOST_CELLS
    assert {names[0], names[1]} <= set(rows)


def test_a_matrix_without_differences_can_be_drawn() -> None:
    made, _ = analysed(study(FEW[:3]) | {"value": [7.0] * (3 * 24)})
    assert texts(plots_order.matrix(made)).count("+0.0") == len(made.predecessors)


def test_positions_and_drift_have_a_panel_for_each_of_the_first_tests(few: Any) -> None:
    made, trials = few
    names = FEW[:4]
    made = replace(made, tests=made.tests | {FEW[0]: replace(made.tests[FEW[0]], unit="ms")})
    figures = plots_order.positions(made, names), plots_order.drift(made, trials, names)
    for figure in figures:
        assert sum(any(name in text for name in names) for text in texts(figure)) == 4
    assert {"ms", "value", "fixed order", "random order"} <= set(texts(figures[1]))


def test_each_host_has_a_panel_of_the_drift_and_its_own_time() -> None:
    columns = study(FEW[:2])
    half = len(columns["value"]) // 2  # the second host's runs come after those of the first
    made, trials = analysed(columns | {"host": ["n1"] * half + ["n2"] * half})
    written = texts(plots_order.drift(made, trials, FEW[:2]))
    titles = [f"{host}: {name}" for name in FEW[:2] for host in ("n1", "n2")]
    assert [text for text in written if text in titles] == titles
    latest = max(int(text) for text in written if text.isdigit())
    assert latest <= len(set(columns["run"])) // 2 + 1


def test_the_orders_are_distinguished_by_shape_and_not_only_by_color(few: Any) -> None:
    made, trials = few
    shapes = re.findall(r'<path id="drift-[^"]+" d="([^"]+)"', plots_order.drift(made, trials, FEW[:1]))
    assert sum("C" in path for path in shapes) == 1  # a circle's curves
    assert len(set(shapes)) >= 3  # with the ticks


@pytest.mark.parametrize("name", NASTY)
def test_a_name_is_shown_unchanged(name: str) -> None:
    made, _ = analysed(study([name, "other"]))
    for draw in (plots_order.p_values, plots_order.intervals, plots_order.matrix):
        assert shortened(name) in texts(draw(made))


def test_a_long_name_keeps_its_end() -> None:
    assert shortened("a" * 40 + "/threads=16") == "aaaaaaaaaaaaaaaaaa…hreads=16"
    assert len(shortened("b" * 29)) == 28
    assert shortened("b" * 28) == "b" * 28
    assert shortened("tab\there\x00") == "tab here "


def test_an_embedded_figure_has_no_style_and_no_ids_but_its_own() -> None:
    figure = svg("one", lambda axes: axes.plot([0, 1], [0, 1], "o"))
    assert "<style" not in figure
    assert "<metadata" not in figure
    ids = re.findall(r' id="([^"]+)"', figure)
    assert ids
    assert all(each.startswith("one-") for each in ids)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', figure)) == set(ids)


def test_text_in_a_figure_is_not_parsed_as_markup() -> None:
    text = '<?xml?>\n<svg><g id="a"><text>id="a" href="#a" 1.23456</text></g><use xlink:href="#a" x="1.23456"/></svg>'
    assert embedded(text, "k") == (
        '<svg><g id="k-a"><text>id="a" href="#a" 1.23456</text></g><use href="#k-a" x="1.23"/></svg>'
    )

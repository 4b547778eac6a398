"""The page of a screen's report: the most important statement comes first, and it is self-contained."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbench.screen.analysis.analysis import analyse
from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.data.data import Data
from cbench.screen.data.roles import Chosen
from cbench.screen.report import page
from tests.cbench.order.pages import NASTY, Outline
from tests.cbench.screen import screens
from tests.cbench.screen.screens import BOTH, screened, table
from tests.cbench.screen.stats import simulated

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pages")]


def nasty() -> list[dict[str, Any]]:
    """Factors and levels with unexpected names."""
    return [
        {NASTY[0]: NASTY[1 + level], "b": b, "iteration": iteration, "value": level + len(b) + iteration % 3}
        for iteration in range(6)
        for level in range(5)
        for b in ("<b>", "&amp;")
    ]


SCREENS: dict[str, tuple[list[dict[str, Any]], Chosen | None]] = {
    "planted": (screens.planted(25), BOTH),
    "pilot": (screens.pilot(), None),
    "questionable": (screens.two_by_three(8), None),
    "whole plots": (screens.split_plot(), None),
    "boots": (screens.boots(), None),
    "names that nobody expects": (nasty(), None),
    "all alike": ([each | {"wall": 1, "other": 0} for each in screens.planted(4)], BOTH),
    "one treatment": ([{"a": 0, "iteration": i, "value": i} for i in range(9)], None),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("data")
    made = {}
    for name, (rows, chosen) in SCREENS.items():
        found, data = screened(table(folder / f"{name}.csv", rows), chosen=chosen)
        made[name] = page.page(found, data)
    return made


each_screen = pytest.mark.parametrize("name", SCREENS)


@each_screen
def test_a_page_is_well_formed_and_no_id_appears_twice(pages: dict[str, str], name: str) -> None:
    found = Outline(pages[name])
    assert len(set(found.ids)) == len(found.ids)
    assert pages[name].startswith("<!doctype html>")


@each_screen
def test_a_page_needs_nothing_but_itself(pages: dict[str, str], name: str) -> None:
    found = Outline(pages[name])
    assert {tag for tag, _ in found.tags}.isdisjoint({"script", "link", "iframe", "object", "embed", "base", "b:"})
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in found.links)
    attributes = [value or "" for _, attrs in found.tags for key, value in attrs.items() if key != "xmlns"]
    assert not [value for value in attributes if re.search(r"https?:|url\((?!#)", value)]
    assert not [attrs for _, attrs in found.tags if any(key.startswith("on") for key in attrs)]


@each_screen
def test_every_internal_reference_of_a_page_has_a_target(pages: dict[str, str], name: str) -> None:
    found = Outline(pages[name])
    attributes = [value or "" for _, attrs in found.tags for value in attrs.values()]
    wanted = {link[1:] for link in found.links if link.startswith("#")}
    wanted |= {each for value in attributes for each in re.findall(r"url\(#([^)]+)\)", value)}
    wanted |= {each for _, attrs in found.tags for each in (attrs.get("aria-labelledby") or "").split()}
    assert wanted <= set(found.ids)


@each_screen
def test_every_figure_says_in_words_what_it_shows(pages: dict[str, str], name: str) -> None:
    found = Outline(pages[name])
    images = [attrs for tag, attrs in found.tags if tag == "svg"]
    assert images
    assert all(attrs["role"] == "img" and len((attrs["aria-labelledby"] or "").split()) == 2 for attrs in images)
    assert [tag for tag, _ in found.tags].count("desc") == len(images)
    assert all(text.strip() for tag, text in found.texts if tag == "desc")


@each_screen
def test_unknown_numbers_are_not_shown_as_numbers(pages: dict[str, str], name: str) -> None:
    assert not re.search(r"\b(nan|inf|None|True|False)\b", Outline(pages[name]).text())


def test_the_verdict_comes_first_and_in_words(pages: dict[str, str]) -> None:
    text = Outline(pages["planted"]).text()
    verdict = text.index("effects that matter: ")
    assert verdict < text.index("practical significance: ") < text.index("Effects") < text.index("Main effects")
    assert 'class="verdict yes"' in pages["planted"]
    assert 'class="verdict no"' in pages["all alike"]


def test_every_kind_of_figure_of_the_method_is_present(pages: dict[str, str]) -> None:
    titles = Outline(pages["planted"]).text("title")
    for title in (
        *("Means with intervals", "Main effects", "Interactions of two factors", "Block plots", "Every value"),
        *("Values over time", "Intervals by sample size"),
    ):
        assert title in titles
    assert "Do values depend on the batch?" in Outline(pages["boots"]).text("h3")
    assert "Hard factors against their batches" in Outline(pages["whole plots"]).text("h3")


def test_questionable_treatments_are_marked_and_choices_compared(pages: dict[str, str]) -> None:
    text = Outline(pages["questionable"]).text()
    assert "beware: os=0 fp=0 prf=2, os=1 fp=0 prf=2 are questionable and counted" in text
    assert "without questionable treatments" in text
    assert "+2.33" in text
    assert "+2.5 adj." in text  # the plain effect of these treatments is 2.67
    assert "#b3261e" in pages["questionable"][pages["questionable"].index("Block plots") - 60_000 :]


def test_names_are_shown_and_not_interpreted(pages: dict[str, str]) -> None:
    found = Outline(pages["names that nobody expects"])
    assert NASTY[0] in found.text("dt")
    assert "script" not in {tag for tag, _ in found.tags}


def test_the_same_data_give_the_same_bytes(pages: dict[str, str], tmp_path: Path) -> None:
    rows, chosen = SCREENS["planted"]
    found, data = screened(table(tmp_path / "planted.csv", rows), chosen=chosen)
    assert page.page(found, data) == pages["planted"]


@pytest.mark.long
def test_a_report_of_220000_values_is_light_and_made_in_bounded_time() -> None:
    data: Data = simulated.technical_note(5000, seed=2)  # of some 20 seeds one shows an effect by chance
    assert sum(each.value.size for each in data.series) == 220_000
    begin = time.process_time()
    made = analyse(data, ScreenOptions())
    text = page.page(made, data)
    assert time.process_time() - begin < 60
    assert len(text.encode()) < 5_000_000
    assert len(re.findall(r"<path|<use", text)) < 10_000
    found = made.responses["elapsed"].effects
    assert found["prf"].effect == pytest.approx(0.19, abs=0.005)
    assert found["fp"].significant
    assert not any(each.significant for each in made.responses["sys"].effects.values())
    plots = {name: row.blocks["prf"] for name, row in made.responses.items()}
    assert plots["elapsed"] is not None
    assert plots["samples"] is not None
    assert plots["elapsed"].chance == pytest.approx(1 / 216)
    assert plots["samples"].chance == 0.125
    assert [each.treatments for each in made.design.sets] == [12, 10, 10, 8, 4]
    assert np.isfinite(found["os"].effect or 0.0)

"""The page of a report: the most important statement comes first, and it is self-contained."""

from __future__ import annotations

import re

import pytest

from cbench.report.page import style
from tests.cbench.order.pages import NASTY, Outline, paged, study

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pages")]

FEW = [f"test {number}" for number in range(4)]
MANY = study([f"t{number}" for number in range(40)], n=6)
PLAIN = ("test", "order", "value")
STUDIES = {
    "few tests": study(FEW),
    "names that nobody expects": study(NASTY, n=7),
    "one test": study(["alone"]),
    "one run of each order": study(FEW[:3], n=1),
    "one order only": study(FEW[:2], orders=("fixed",)),
    "more tests than have a line in a figure, no runs": {key: MANY[key] for key in PLAIN},
    "all results 0": study(FEW[:3]) | {"value": [0.0] * (3 * 24)},
}


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: paged(columns) for name, columns in STUDIES.items()}


each_study = pytest.mark.parametrize("name", STUDIES)


@each_study
def test_a_page_is_well_formed_and_no_id_appears_twice(pages: dict[str, str], name: str) -> None:
    found = Outline(pages[name])
    assert len(set(found.ids)) == len(found.ids)
    assert pages[name].startswith("<!doctype html>")


@each_study
def test_a_page_needs_nothing_but_itself(pages: dict[str, str], name: str) -> None:
    found = Outline(pages[name])
    assert {tag for tag, _ in found.tags}.isdisjoint({"script", "link", "iframe", "object", "embed", "base"})
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in found.links)
    attributes = [value or "" for _, attrs in found.tags for key, value in attrs.items() if key != "xmlns"]
    assert not [value for value in attributes if re.search(r"https?:|url\((?!#)", value)]
    assert not re.search(r"https?:|@import|url\(", style())
    assert not [attrs for _, attrs in found.tags if any(key.startswith("on") for key in attrs)]


@each_study
def test_every_internal_reference_of_a_page_has_a_target(pages: dict[str, str], name: str) -> None:
    found = Outline(pages[name])
    attributes = [value or "" for _, attrs in found.tags for value in attrs.values()]
    wanted = {link[1:] for link in found.links if link.startswith("#")}
    wanted |= {each for value in attributes for each in re.findall(r"url\(#([^)]+)\)", value)}
    wanted |= {each for _, attrs in found.tags for each in (attrs.get("aria-labelledby") or "").split()}
    assert wanted <= set(found.ids)


@each_study
def test_every_figure_says_in_words_what_it_shows(pages: dict[str, str], name: str) -> None:
    found = Outline(pages[name])
    images = [attrs for tag, attrs in found.tags if tag == "svg"]
    assert all(attrs["role"] == "img" and len((attrs["aria-labelledby"] or "").split()) == 2 for attrs in images)
    assert [tag for tag, _ in found.tags].count("desc") == len(images)
    assert all(text.strip() for tag, text in found.texts if tag == "desc")


def test_the_verdict_comes_first_and_in_words(pages: dict[str, str]) -> None:
    text = Outline(pages["few tests"]).text()
    verdict = text.index("order matters: 2 of 4 tests differ")
    assert verdict < text.index("Tests") < text.index("p-values, sorted")
    assert 'class="verdict yes"' in pages["few tests"]
    assert 'class="verdict no"' in pages["one run of each order"]


def test_the_verdict_contains_the_warnings() -> None:
    blocked = study(FEW[:3])
    blocked["run"] = [
        run + 100 * (order == "random") for run, order in zip(blocked["run"], blocked["order"], strict=True)
    ]
    text = paged(blocked)
    assert "order and time cannot be distinguished: 12 fixed and 12 random runs" in text[: text.index("<nav>")]
    assert "blocked: the orders are confounded with time" in text


def test_names_are_shown_and_not_interpreted(pages: dict[str, str]) -> None:
    found = Outline(pages["names that nobody expects"])
    rows = [text for tag, text in found.texts if tag == "th"]
    assert set(NASTY) <= set(rows)
    assert "p-title" in found.ids  # that of the figure, and not that of the name


def test_the_name_of_a_study_is_shown_and_not_interpreted() -> None:
    found = Outline(paged(study(["a"]), name="</title><script>"))
    assert "</title><script>: does the order of trials matter?" in found.text("h1")


def test_the_same_data_give_the_same_bytes(pages: dict[str, str]) -> None:
    assert paged(study(FEW)) == pages["few tests"]


def test_a_page_is_light(pages: dict[str, str]) -> None:
    assert len(pages["few tests"].encode()) < 200_000
    many = study([f"test {number}" for number in range(1500)], n=2)
    assert len(paged({key: many[key] for key in PLAIN}).encode()) < 1_000_000


@each_study
def test_unknown_numbers_are_not_shown_as_numbers(pages: dict[str, str], name: str) -> None:
    text = Outline(pages[name]).text()
    assert not re.search(r"\b(nan|inf|None|True|False)\b", text)


def test_intervals_that_do_not_exist_are_reported(pages: dict[str, str]) -> None:
    assert "no interval below n = 6" in pages["one run of each order"]
    assert "nothing was compared" in pages["one order only"]

"""Properties of all pages: everything is escaped, empty sections are left out, the package has the templates."""

from __future__ import annotations

import tomllib

import pytest
from jinja2 import DictLoader, Environment, TemplateNotFound, UndefinedError

from cbench.report import page
from cbench.report.page import Cell, Figure, Table, style
from tests import CHECKOUT
from tests.cbench.order.pages import Outline

SVG = '<svg width="3"><g id="k-a"/></svg>'
PAGE = """{% extends "report/base.html" %}
{% from "report/macros.html" import facts, figure, table, folded %}
{% set title = name %}
{% set tests %}
{{ table(found) }}
{{ figure(drawn) }}
{{ folded("more", facts([("a & b", "1")])) }}
{% endset %}
{% set empty %}

{% endset %}
{% set sections = [("tests", "Tests", tests), ("empty", "Empty", empty)] %}
"""
TABLE = Table(("one", "two", Cell("three", "of 3")), [("<a>", "b", "1"), ("c", "d", Cell("2", "±1"))], [True, False], 2)
DRAWN = Figure("k", SVG, 'A "title"', "Explained.", "Shown <here>.", broad=True)


@pytest.fixture
def environment() -> Environment:
    found = page._environment().overlay()
    kept = found.loader
    assert kept is not None
    base = {name: kept.get_source(found, name)[0] for name in ("report/base.html", "report/macros.html")}
    return found.overlay(loader=DictLoader(base | {"page.html": PAGE}))


def made(environment: Environment, **changes: object) -> str:
    context = {"name": "<b>", "verdict": ["yes", "beware: no"], "matters": True, "found": TABLE, "drawn": DRAWN}
    return environment.get_template("page.html").render(context | changes)


def test_everything_except_a_figure_is_escaped(environment: Environment) -> None:
    text = made(environment)
    found = Outline(text)
    assert found.text("h1") == found.text("title").split("\n")[0] == "<b>"
    assert "<a>" in found.text("th")
    assert '<svg role="img" aria-labelledby="k-title k-desc" width="3"><title id="k-title">' in text
    assert found.text("desc") == "Shown <here>."


def test_a_section_without_content_is_left_out_and_not_linked(environment: Environment) -> None:
    found = Outline(made(environment))
    assert [each for each in found.ids if each in {"tests", "empty"}] == ["tests"]
    assert found.links == ["#tests"]


def test_a_table_has_headers_for_its_columns_and_rows(environment: Environment) -> None:
    text = made(environment)
    tags = Outline(text).tags
    assert [attributes.get("scope") for tag, attributes in tags if tag == "th"] == ["col"] * 3 + ["row"] * 2
    assert [attributes.get("class") for tag, attributes in tags if tag == "td"] == ["name", None] * 2
    assert '<tr class="yes"><th scope="row">&lt;a&gt;</th>' in text
    assert "2<small>±1</small>" in text


def test_warnings_stand_out_in_the_verdict(environment: Environment) -> None:
    assert '<p>yes</p>\n<p class="beware">beware: no</p>' in made(environment)
    assert 'class="verdict no"' in made(environment, matters=False)


def test_a_name_without_a_value_is_an_error(environment: Environment) -> None:
    with pytest.raises(UndefinedError):
        environment.from_string("{{ nothing }}").render()


def test_the_style_sheet_and_the_templates_are_in_the_package() -> None:
    assert "@media print" in style()
    data = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["cbench"]
    root = CHECKOUT / "cbench"
    packed = {path for pattern in data for path in root.glob(pattern)}
    assert {*root.rglob("*.css"), *root.rglob("*.html")} <= packed


@pytest.mark.parametrize("name", ["report/no.html", "order/../report/base.html/x"])
def test_an_unknown_template_is_an_error(name: str) -> None:
    with pytest.raises(TemplateNotFound):
        page.render(name)


def test_the_browser_may_load_and_run_nothing_that_is_not_in_the_page(environment: Environment) -> None:
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    text = made(environment)
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in text
    assert text.index("Content-Security-Policy") < text.index("<style>")

"""Render HTML pages from jinja2 templates, with one base, one set of macros and one style sheet for all features.

A feature puts its template into its own directory, `cbench/FEATURE/templates/NAME.html`, and calls
`render("FEATURE/NAME.html", made=made, ...)`. A template has this form:

    {% extends "report/base.html" %}
    {% from "report/macros.html" import facts, figure, table %}
    {% set title = name ~ ": does it matter?" %}
    {% set tests %}
    {{ table(made.tests) }}
    {% endset %}
    {% set sections = [("tests", "Tests", tests)] %}

The base shows `title`, the lines of `verdict` (with a red border if `matters` is true), and each section (id, heading,
body) that is not empty, with a link to it. Everything is escaped except the style sheet and a Figure's SVG text; an
undefined name is an error. Python passes `Table`, `Cell` and `Figure` objects; text that does not depend on the data is
in the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quiet import UsageError, check_savable

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NEEDED_BY_PAGES = "pages need matplotlib: pip install 'quiet-cbench[order]'"
PAGE = b"<!doctype html"


class Cell(NamedTuple):
    """A cell of a table; `small` and `more` are further lines in small type. A plain `str` also serves as a cell."""

    text: str
    small: str = ""
    more: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its own scroll bar if it is too wide.

    The first `names` cells of a row are names. `marked`: whether to highlight each row; empty to highlight none.
    """

    head: Sequence[str | Cell]
    rows: Sequence[Sequence[str | Cell]]
    marked: Sequence[bool] = ()
    names: int = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its title and a sentence that explains it. `found`: the content as text, "" if there is none.

    Screen readers read `found`, or `explained` if `found` is "". `key`: the prefix of all ids in `svg`. `broad`:
    whether the figure spans the whole width of the page.
    """

    key: str
    svg: str
    title: str
    explained: str
    found: str = ""
    broad: bool = False


def render(template_name: str, /, **context: object) -> str:
    """The HTML of the template FEATURE/NAME.html with this context; equal contexts yield equal text."""
    return _environment().get_template(template_name).render(context)


def style() -> str:
    """The style sheet of all pages."""
    return (files("cbench.report") / "report.css").read_text(encoding="utf-8")


def labelled_svg(figure: Figure) -> Markup:
    """The SVG element with its title and description for screen readers. Title and description are escaped; the SVG is
    not.
    """
    from markupsafe import Markup, escape

    key, begin = escape(figure.key), figure.svg.index(">") + 1
    opened = figure.svg[:begin].replace("<svg ", f'<svg role="img" aria-labelledby="{key}-title {key}-desc" ', 1)
    title, shown = escape(figure.title), escape(figure.found or figure.explained)
    inner = f'<title id="{key}-title">{title}</title><desc id="{key}-desc">{shown}</desc>'
    return Markup(opened + inner + figure.svg[begin:])  # noqa: S704


def check_page(data: str, output: str) -> None:
    """Raises UsageError if the page cannot be written to `output`, if the name has the suffix of another format, or if
    the page would replace a file that is not a page.
    """
    check_savable(output, "-o")
    target = Path(output)
    if not target.is_file():
        if target.suffix.lower() not in ("", ".html", ".htm"):
            raise UsageError(f"-o {output}: the page is HTML; choose a name that ends with .html")
        return
    if Path(data).exists() and target.samefile(data):
        raise UsageError(f"-o {output}: is the data file itself; choose another name for the page")
    with target.open("rb") as file:
        begin = file.read(len(PAGE))
    if begin and begin.lower() != PAGE:
        raise UsageError(f"-o {output}: already exists and is not a page; choose another name, or remove it")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["style"] = style
    environment.filters["labelled_svg"] = labelled_svg
    environment.filters["thousands"] = "{:,}".format
    return environment


def _source(template_name: str) -> str | None:
    """The template's text from the installed package; None if there is no such template."""
    folder, _, name = template_name.rpartition("/")
    place = files("cbench").joinpath(*folder.split("/"), "templates", name)
    return place.read_text(encoding="utf-8") if place.is_file() else None

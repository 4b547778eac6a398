"""The Markdown pages: every relative link leads to a file, and every anchor to a heading of it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests import CHECKOUT

PAGES = [
    *sorted(CHECKOUT.glob("*.md")),
    *sorted((CHECKOUT / "docs").rglob("*.md")),
    *sorted((CHECKOUT / "kernel-configs").glob("*.md")),
    *sorted((CHECKOUT / "contrib").rglob("*.md")),
    CHECKOUT / "tests" / "lab" / "README.md",
]
FENCE = re.compile(r"^(```+|~~~+).*?^\1$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`|^(?: {4}|\t).*$", re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+)(?: \"[^\"\n]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*#*$", re.MULTILINE)


def links(text: str) -> list[str]:
    """The targets of links outside code, without those that have a scheme."""
    return [each for each in LINK.findall(CODE.sub("", FENCE.sub("", text))) if not re.match(r"[a-z][a-z+.-]*:", each)]


def slug(heading: str) -> str:
    """The anchor that GitHub and myst-parser give a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    found: dict[str, int] = {}
    for heading in HEADING.findall(FENCE.sub("", page.read_text())):
        name = slug(heading)
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return frozenset(found)


def broken(page: Path, link: str) -> str | None:
    """The error of a link of a page, or None."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{link}: no such file"
    if not target.is_relative_to(CHECKOUT):
        return f"{link}: outside the checkout"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{link}: no such heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_relative_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert [why for link in links(page.read_text()) if (why := broken(page, link))] == []


def test_a_link_to_a_missing_file_or_heading_is_reported(tmp_path: Path) -> None:
    page = CHECKOUT / "docs" / "api.md"
    text = "[a](no-such.md) [b](api.md#no-such-heading) `[c](in-code.md)` [d](https://example.org/) [e](api.md)"
    assert [broken(page, link) for link in links(text)] == [
        "no-such.md: no such file",
        "api.md#no-such-heading: no such heading",
        None,
    ]

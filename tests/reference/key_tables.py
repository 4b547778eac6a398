"""The tables of TOML keys in the pages of docs/: `| key | default | meaning |`."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests import CHECKOUT

Names = tuple[str, ...]
HEADING = re.compile(r"#+ (?:The table )?`\[+([\w.]+)\]+`")
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
ASIDE = re.compile(r" \(\[.*?\]\(.*?\)\)|[;,] (?:see )?\[[^\]]*\]\([^)]*\)(?: has .*)?$")


class KeyRow(NamedTuple):
    """A key's row: its default in words, "" where the page has none; its meaning, with links as in that page."""

    default: str
    meaning: str


def rows(page: str, path: Names = ()) -> dict[Names, KeyRow]:
    """The keys by path. `path`: of tables that stand before a heading such as ``## `[study]` ``."""
    found: dict[Names, KeyRow] = {}
    columns: list[str] = []
    for line in (CHECKOUT / "docs" / page).read_text().splitlines():
        if line.startswith("#"):
            heading = HEADING.fullmatch(line)
            path = tuple(heading[1].split(".")) if heading else path
        cells = [cell.strip() for cell in line[1:-1].split("|")] if line.startswith("|") else []
        if not cells or cells[0] == "key":
            columns = cells
        elif columns and not line.startswith("| ---"):
            row = dict(zip(columns, cells, strict=False))
            default = row.get("default", "")
            meaning = cells[2 if "default" in row else 1]
            found |= {(*path, key): KeyRow(default, meaning) for key in re.findall(r"`(\w+)`", cells[0])}
    return found


def plain(text: str) -> str:
    """A meaning without its links, as the description in a schema."""
    return LINK.sub(r"\1", ASIDE.sub("", text))


def moved(text: str, page: str) -> str:
    """A meaning for another page of the same directory."""
    return LINK.sub(lambda link: f"[{link[1]}]({page if link[2].startswith('#') else ''}{link[2]})", text)

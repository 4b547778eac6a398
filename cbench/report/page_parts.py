"""What the page of a report is put together from."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def section(key: str, title: str, body: str) -> str:
    return f'<section id="{key}">\n<h2>{escape(title)}</h2>\n{body}</section>\n' if body else ""


def paragraph(text: str, kind: str = "") -> str:
    """`text` is plain text."""
    return f"<p{_class(kind)}>{escape(text)}</p>\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str] = (), names: int = 1) -> str:
    """A table that scrolls by itself where it is too wide. Cells are HTML; the first `names` of a row are names.

    `kinds`: a class for each row, or none.
    """
    cells = "".join(f'<th scope="col">{name}</th>' for name in head)
    kinds = kinds or [""] * len(rows)
    body = "".join(
        f'<tr{_class(kind)}><th scope="row">{row[0]}</th>'
        + "".join(f"<td{_class('name' if at < names else '')}>{cell}</td>" for at, cell in enumerate(row) if at)
        + "</tr>\n"
        for row, kind in zip(rows, kinds, strict=True)
    )
    return (
        f'<div class="wide" tabindex="0">\n<table>\n<thead><tr>{cells}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Names and what they stand for; plain texts."""
    inner = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>\n" for name, text in rows)
    return f"<dl>\n{inner}</dl>\n" if rows else ""


def figure(key: str, svg: str, title: str, explained: str, found: str = "", broad: bool = False) -> str:
    """A figure with its title, one sentence that explains it and what it shows; the same is read aloud."""
    label = f'<svg role="img" aria-labelledby="{key}-title {key}-desc" '
    inner = f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(found or explained)}</desc>'
    begin = svg.index(">") + 1
    labelled = svg[:begin].replace("<svg ", label, 1) + inner + svg[begin:]
    text = f"<b>{escape(title)}.</b> {escape(explained)}" + (f" <i>{escape(found)}</i>" if found else "")
    return (
        f'<figure{_class("broad" if broad else "")}>\n<div class="plot" tabindex="0">{labelled}</div>\n'
        f"<figcaption>{text}</figcaption>\n</figure>\n"
    )


def small(text: str) -> str:
    """A second line in a cell; plain text."""
    return f"<small>{escape(text)}</small>" if text else ""


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""

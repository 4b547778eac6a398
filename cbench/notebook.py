"""How results show themselves in a notebook: a small table, every value escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table_html(title: str, head: Sequence[str], rows: Iterable[Sequence[object]], below: Sequence[str] = ()) -> str:
    """A table with a caption, and lines of text below it."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_text(value))}</td>' for value in row)}</tr>" for row in rows)
    lines = "".join(f"<p>{escape(line)}</p>" for line in below)
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{lines}"
    )


def _text(value: object) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)

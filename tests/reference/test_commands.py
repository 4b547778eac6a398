"""The page of commands has the help that the commands print now."""

from __future__ import annotations

from tests.reference.commands import FILE, written


def test_the_page_of_commands_is_up_to_date() -> None:
    assert FILE.read_text() == written(), "run: python -m tests.reference.commands"

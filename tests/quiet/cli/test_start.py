"""Plain options are understood without Typer, and exactly as Typer understands them."""

from __future__ import annotations

import pytest

from quiet.cli.start import plain


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("apply",),
        ("plan", "--help"),
        ("plan", "-p", "bench"),
        ("plan", "--cpus=3"),
        ("plan", "--cpus"),
        ("plan", "--cpus", "--json"),
        ("plan", "--cpus", ""),
        ("plan", "extra"),
        ("plan", "json"),
        ("status", "--cpus", "3"),
        ("verify", "--fifo", "1"),
        ("verify", "--duration", "0", "--max-gap", "50us"),
    ],
)
def test_anything_but_plain_options_is_left_to_typer(arguments: tuple[str, ...]) -> None:
    assert plain(arguments) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("status", "--json"),
        ("plan", "--cpus", "3", "--root", "/tmp"),
        ("verify", "--duration", "0", "--json"),
    ],
)
def test_plain_options_are_called_directly(arguments: tuple[str, ...]) -> None:
    assert plain(arguments) is not None

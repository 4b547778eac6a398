"""Print a gate's result on the terminal."""

from __future__ import annotations

from rich.markup import escape

from cbench.console import table_console
from cbench.gate.report import lines
from cbench.gate.result import GateResult


def result(judged: GateResult) -> None:
    """Print the result of a gate."""
    console = table_console(120)
    for line in lines(judged):
        bold = line.startswith("**")
        console.print(escape(line.strip("*") if bold else line), style="bold" if bold else "", soft_wrap=True)

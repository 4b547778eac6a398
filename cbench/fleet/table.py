"""Print a fleet as text, a line per node."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from cbench.console import table_console, tell
from cbench.fleet.start import FleetPlan
from cbench.fleet.state import FleetState, NodeState
from cbench.jobs.status import RUNNING
from cbench.report.text import counted
from cbench.study.table import span
from quiet import printable

SAID_S = 600.0
"""The time between two reports of all nodes if stderr is not a terminal, in seconds."""


def plan(result: FleetPlan) -> None:
    console = table_console()
    nodes = counted(len(result.nodes), "node") if result.nodes else "allocated nodes"
    console.print(escape(f"{result.study}: {result.kind} on {nodes}"), soft_wrap=True)
    console.print(escape("  " + ", ".join(result.nodes)), soft_wrap=True)
    for number, step in enumerate(result.steps, 1):
        console.print(escape(f"  {number}. {step}"), soft_wrap=True)


def fleet(result: FleetState) -> None:
    console = table_console()
    for name, node in result.nodes.items():
        console.print(escape(f"{name}: {line(node)}"), soft_wrap=True)
    for each in result.unlike:
        console.print(escape(f"the nodes differ: {each}"), soft_wrap=True)
    if result.allocation:
        console.print(f"allocation: {result.allocation}")


def line(node: NodeState) -> str:
    """A line for a node: state, trials, fetched trials, remaining time, noise, and the reason for a failure."""
    of = "" if node.trials is None else f" of {node.trials:,}"
    parts = [node.state, f"{node.trials_done:,}{of} trials", f"{max(node.fetched, 0):,} fetched"]
    if node.trials_failed:
        parts.append(f"{node.trials_failed:,} failed")
    if node.left_s is not None:
        parts.append(f"{span(node.left_s)} to go")
    parts += [each for each in (node.noise, node.message) if each]
    return ", ".join(parts)


class NodeLines:
    """A context manager that shows the progress of every node: on a terminal, a line per node, redrawn at each update;
    otherwise, a line when a node's state changes, and all lines every SAID_S seconds.
    """

    def __init__(self) -> None:
        self._live: Live | None = None
        self._states: dict[str, str] = {}
        self._said_s = time.monotonic()
        if sys.stderr.isatty():
            self._live = Live(
                console=Console(file=sys.stderr, highlight=False, emoji=False), auto_refresh=False, transient=True
            )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, result: FleetState) -> None:
        """Show the state of every node; on a terminal, as many nodes as fit, running ones first."""
        if self._live:
            room = max(1, self._live.console.height - 2)
            nodes = sorted(result.nodes.items(), key=lambda each: each[1].state != RUNNING)
            lines = [f"{name}: {line(node)}" for name, node in nodes[:room]]
            lines += [f"and {len(nodes) - room:,} more nodes"] if len(nodes) > room else []
            self._live.update(Text(printable("\n".join(lines)), no_wrap=True, overflow="ellipsis"), refresh=True)
            return
        every = time.monotonic() - self._said_s >= SAID_S
        self._said_s = time.monotonic() if every else self._said_s
        for name, node in result.nodes.items():
            if every or self._states.get(name) != node.state:
                tell(f"{name}: {line(node)}")
            self._states[name] = node.state

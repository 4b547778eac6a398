"""Print a fleet as text, a line per node."""

from __future__ import annotations

import sys

from rich.markup import escape

from cbench.console import table_console
from cbench.fleet.run import FleetPlan
from cbench.fleet.state import FleetState, NodeState
from cbench.study.table import span


def plan(result: FleetPlan) -> None:
    console = table_console()
    console.print(escape(f"{result.study}: {result.kind} on {len(result.nodes) or 'allocated'} nodes"), soft_wrap=True)
    console.print(escape("  " + ", ".join(result.nodes)), soft_wrap=True)
    for number, step in enumerate(result.steps, 1):
        console.print(escape(f"  {number}. {step}"), soft_wrap=True)


def fleet(result: FleetState) -> None:
    console = table_console()
    for name, node in result.nodes.items():
        console.print(escape(f"{name}: {line(node)}"), soft_wrap=True)
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


def progress(result: FleetState) -> None:
    """Print the progress as one line on a terminal; print nothing elsewhere."""
    if sys.stderr.isatty():
        done = sum(node.trials_done for node in result.nodes.values())
        left = max((node.left_s or 0.0 for node in result.nodes.values()), default=0.0)
        sys.stderr.write(f"\r\x1b[K{len(result.nodes)} nodes, {done:,} trials, {span(left)} to go")
        sys.stderr.flush()

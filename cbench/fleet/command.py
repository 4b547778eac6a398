"""The command `cbench fleet`, which runs one study on many machines through Ansible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cbench.command import STUDY, Json
from cbench.console import show, tell
from quiet import Incomplete, Refused, emit

if TYPE_CHECKING:
    from cbench.fleet.run import Fleet
    from cbench.fleet.state import FleetState

fleet = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run one study on many machines, through Ansible. Any of these commands may be killed and repeated.",
)
Inventory = Annotated[
    str | None,
    typer.Option("--inventory", "-i", metavar="FILE", help="Ansible inventory: a file, or host names with commas."),
]
Study = Annotated[str, typer.Argument(metavar="STUDY.toml")]
Known = Annotated[
    str | None, typer.Argument(metavar="[STUDY.toml]", help="The study given to `run`; optional.", show_default=False)
]
Folder = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Directory for the results and the fleet's state.")
]
Poll = Annotated[
    float, typer.Option(metavar="S", min=0.1, help="Maximum time between checks of the nodes, in seconds.")
]
Patience = Annotated[
    float, typer.Option(metavar="S", min=0, help="Time to wait for a node that does not answer, in seconds.")
]


@fleet.command("plan")
def plan_command(
    study: Study,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="The directory that `run` uses; nothing is written."),
    ] = None,
    inventory: Inventory = None,
    as_json: Json = False,
) -> None:
    """Show the steps of `run`. Contacts no node."""
    from cbench.fleet import start, table

    show(start.plan(inventory, study, output), as_json, table.plan)


@fleet.command("run")
def run_command(
    study: Study,
    *,
    output: Folder,
    inventory: Inventory = None,
    poll: Poll = 60,
    patience: Patience = 3600,
    as_json: Json = False,
) -> None:
    """Run the study on all nodes, fetch results, restore the nodes.

    Installs the programs, starts the study, fetches each store as it grows, and releases the nodes. Exits with 1 if the
    study, or every trial, failed on a node, and with 4 if a node was not restored and released.
    """
    from cbench.fleet import start

    start.begin(inventory, study, output)
    _with(output, lambda each: each.run(poll, patience), as_json, judged=True)


@fleet.command("resume")
def resume_command(
    study: Known = None,
    *,
    output: Folder,
    inventory: Inventory = None,
    poll: Poll = 60,
    patience: Patience = 3600,
    as_json: Json = False,
) -> None:
    """Resume a fleet after `run` was interrupted. Exits as `run` does."""
    _check(output, inventory, study)
    _with(output, lambda each: each.run(poll, patience), as_json, judged=True)


@fleet.command("status")
def status_command(study: Known = None, *, output: Folder, inventory: Inventory = None, as_json: Json = False) -> None:
    """Report the progress of every node.

    While another `cbench fleet` uses DIR, report the progress that it last recorded.
    """
    from cbench.fleet import state, table

    _check(output, inventory, study)
    try:
        _with(output, lambda each: each.look(), as_json, wait=False)
    except Refused:
        tell(f"{output}: another cbench fleet is working here; this is the progress that it last recorded")
        show(state.existing(output), as_json, table.fleet)


@fleet.command("fetch")
def fetch_command(study: Known = None, *, output: Folder, inventory: Inventory = None, as_json: Json = False) -> None:
    """Fetch consistent copies of all stores into DIR/results. Exits with 1 if a store could not be fetched."""
    from cbench.fleet.state import UNREACHABLE

    _check(output, inventory, study)
    result = _with(output, lambda each: (each.look(), each.fetch())[1], as_json)
    incomplete = [(name, node) for name, node in result.nodes.items() if not node.complete]
    if left := [name for name, node in incomplete if node.fetches_failed or node.state == UNREACHABLE]:
        tell(f"not fetched: {', '.join(left)}")
        raise typer.Exit(1)


@fleet.command("release")
def release_command(study: Known = None, *, output: Folder, inventory: Inventory = None, as_json: Json = False) -> None:
    """Restore, fetch and clean all nodes; release the allocation.

    Exits as `run` does.
    """
    _check(output, inventory, study)
    _with(output, lambda each: each.release(), as_json, judged=True)


@fleet.command("collections")
def collections_command() -> None:
    """Print the directory of the Ansible collection.

    Add it to ANSIBLE_COLLECTIONS_PATH to use the collection in your own playbooks.
    """
    from cbench.fleet.ansible import COLLECTIONS

    emit(f"{COLLECTIONS}\n")


def _check(folder: Path, inventory: str | None, study: str | None) -> None:
    from cbench.fleet import start, state

    start.check_same(state.existing(folder), folder, inventory, study)


def _with(
    folder: Path, work: Callable[[Fleet], FleetState], as_json: bool, judged: bool = False, wait: bool = True
) -> FleetState:
    from cbench.fleet import state, table
    from cbench.fleet.run import Fleet

    state.existing(folder)
    with state.alone(folder, state.PATIENCE_S if wait else 0) as lock, table.NodeLines() as lines:
        result = work(Fleet(folder, lock, lines.show))
    show(result, as_json, table.fleet)
    if judged:
        if left := [name for name, node in result.nodes.items() if node.state != state.RELEASED]:
            again = f"repeat: cbench fleet release -o {folder}"
            raise Incomplete(f"not released: {', '.join(left)}; {again}")
        failed = [node for node in result.nodes.values() if 0 < node.trials_done == node.trials_failed]
        if failed or not all(node.finished for node in result.nodes.values()):
            raise typer.Exit(1)
    return result


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(fleet, name="fleet", rich_help_panel=STUDY)

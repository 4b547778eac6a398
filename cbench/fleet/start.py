"""Plan a fleet, and create its directory."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from cbench.console import tell
from cbench.fleet import ansible, state
from cbench.fleet.config import load
from cbench.fleet.state import FleetState
from quiet import UsageError, __version__


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The output of `cbench fleet plan`. `steps`: one sentence per step. Planning only reads the inventory and contacts
    no node.
    """

    study: str
    kind: str
    nodes: tuple[str, ...]
    steps: tuple[str, ...]


def plan(inventory: str | None, study: str, folder: Path | None = None) -> FleetPlan:
    """Plan the actions of `run`. Raises UsageError for an invalid study or inventory, and if `folder` belongs to
    another fleet.
    """
    config = load(Path(study))
    before = state.load(folder) if folder else None
    if folder and before:
        check_same(before, folder, inventory, study)
        inventory = before.inventory or None
    if before is None:
        config.check_files()
        if lacking := config.not_pushed():
            tell(f"not in fleet.files, so the nodes will not have them: {', '.join(lacking)}")
    nodes = ansible.hosts(inventory) if inventory else ()
    if not nodes and not config.allocate:
        raise UsageError("specify an inventory (-i), or a command that prints one (fleet.allocate in the study's file)")
    steps = (
        *([f"allocate nodes: {config.allocate}"] if config.allocate and not nodes else []),
        f"use the programs in {config.bin}" if config.bin else f"install quiet-cbench {__version__} from wheels",
        f"push {', '.join((config.path.name, *config.files))}",
        *([f"apply the boot parameters of profile {config.boot}, and reboot once"] if config.boot else []),
        *(["compare the nodes' passports, and report the differences"] if len(nodes) != 1 else []),
        f"start `cbench {' '.join(config.begin)}` detached, and fetch its store as it grows",
        "stop the study, restore the nodes, and remove the installed files",
        *([f"release nodes: {config.release}"] if config.release else []),
    )
    return FleetPlan(str(config.path), config.kind, nodes, steps)


def begin(inventory: str | None, study: str, folder: Path) -> None:
    """Create the directory and its state unless they exist. Raises UsageError if the directory holds another fleet."""
    plan(inventory, study, folder)
    folder.mkdir(parents=True, exist_ok=True)
    if state.load(folder) is None:
        path = str(Path(study).absolute())
        state.store(folder, FleetState(secrets.token_hex(4), path, _inventory(inventory)))


def check_same(before: FleetState, folder: Path, inventory: str | None, study: str | None) -> None:
    """Raises UsageError if the directory's fleet has a different study or inventory than the given ones."""
    if study and before.study != str(Path(study).absolute()):
        raise UsageError(f"{folder}: contains the fleet of {before.study}; choose another directory (-o)")
    if inventory and before.inventory != _inventory(inventory):
        known = before.inventory or "allocated nodes"
        raise UsageError(f"{folder}: contains the fleet of {known}; choose another directory (-o), or omit -i")


def _inventory(given: str | None) -> str:
    return str(Path(given).absolute()) if given and Path(given).exists() else given or ""

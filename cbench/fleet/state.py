"""Keep the controller's record of its fleet: one small JSON file in DIR, replaced atomically."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from cbench.console import tell
from cbench.results import to_json
from quiet import QuietError, Refused, UsageError, save

VERSION = 1
NEW, UNREACHABLE, RELEASED = "new", "unreachable", "released"
NONE, ASKED, ALLOCATED, GIVEN_BACK = "", "asked", "allocated", "released"
PATIENCE_S = 10.0
LOCKS = ("lock", "ansible.lock")


@dataclass(frozen=True, slots=True)
class NodeState:
    """The progress of one node. `state`: new, unreachable, released, or one of `cbench status`; `fetched`: trials in
    the controller's copy, -1 if there is none.

    `complete`: whether everything is fetched; `finished`: whether the study was finished; `attempts`: the number of
    consecutive starts that failed or yielded no further trial; `fetches_failed`: the number of consecutive failed
    fetches. `seen_ns`: the time of the node's last answer in ns since 1970; `left_s`: remaining time in seconds;
    `noise`: as in `cbench status`. `trials`, `left_s`: None if unknown.
    """

    state: str = NEW
    trials_done: int = 0
    trials: int | None = None
    trials_failed: int = 0
    left_s: float | None = None
    noise: str | None = None
    message: str = ""
    fetched: int = -1
    complete: bool = False
    finished: bool = False
    attempts: int = 0
    fetches_failed: int = 0
    seen_ns: int = 0


@dataclass(frozen=True, slots=True)
class FleetState:
    """The controller's record of a fleet. `id`: the name of the directory on each node; `allocation`: "", asked,
    allocated or released; `unlike`: the facts in which the nodes differed before the study began, as text.
    """

    id: str
    study: str
    inventory: str
    release: str = ""
    allocation: str = NONE
    nodes: dict[str, NodeState] = field(default_factory=dict)
    unlike: tuple[str, ...] = ()
    version: int = VERSION

    def with_node(self, name: str, node: NodeState) -> FleetState:
        return replace(self, nodes={**self.nodes, name: node})


def load(folder: Path) -> FleetState | None:
    """Read the state of a fleet; None if the directory has none. Raises QuietError if the file is damaged."""
    file = folder / "fleet.json"
    try:
        content = json.loads(file.read_bytes())
        if content["version"] != VERSION:
            raise ValueError(f"version {content['version']}")
        nodes = {str(name): NodeState(**each) for name, each in content["nodes"].items()}
        return FleetState(**{**content, "nodes": nodes, "unlike": tuple(content.get("unlike", ()))})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise QuietError(f"{file}: cannot be read ({error})") from None


def existing(folder: Path) -> FleetState:
    """Read the state of an existing fleet. Raises UsageError if the directory has none."""
    state = load(folder)
    if state is None:
        raise UsageError(
            f"{folder}: contains no fleet; start one with: cbench fleet run -i INVENTORY STUDY.toml -o {folder}"
        )
    return state


def store(folder: Path, state: FleetState) -> None:
    save(str(folder / "fleet.json"), json.dumps(to_json(state), indent=1), "-o")


@contextmanager
def alone(folder: Path, patience_s: float = PATIENCE_S) -> Iterator[int]:
    """A context in which this process is the only controller of the directory. Yields the lock's file descriptor for
    Ansible and the user's commands to inherit, because these may outlive this process. Raises Refused if another
    controller still works after `patience_s` seconds; waits for processes that a killed controller left running.
    """
    own, left = (os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for name in LOCKS)
    try:
        limit = time.monotonic() + patience_s
        while not _taken(own):
            if time.monotonic() > limit:
                raise Refused(
                    f"{folder}: another cbench fleet is working here: wait until it ends, or choose another directory"
                )
            time.sleep(0.1)
        if not _taken(left):
            tell(f"{folder}: waiting for processes that a killed cbench fleet has left running")
            fcntl.flock(left, fcntl.LOCK_EX)
        yield left
        fcntl.flock(left, fcntl.LOCK_UN)  # even if a process that the user's commands left running has inherited it
    finally:
        os.close(own)
        os.close(left)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

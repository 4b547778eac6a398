"""Implement the commands `cbench fleet ...`; each may be killed at any time and repeated."""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from cbench.console import StoppedError, shell_path, tell
from cbench.fleet import ansible, state, wheels
from cbench.fleet.config import FleetConfig, load
from cbench.fleet.state import ALLOCATED, ASKED, GIVEN_BACK, RELEASED, UNREACHABLE, FleetState, NodeState
from cbench.jobs.status import FAILED, FINISHED, RUNNING, STOPPED
from cbench.machine.passport import Passport, unlike
from cbench.report.text import counted
from cbench.results import JsonValue
from quiet import QuietError, UsageError, __version__

FIRST_POLL_S = 2.0
FETCH_S = 300.0
"""The minimum time between two fetches of a growing store, in seconds; a finished store is fetched at once."""
MOST_ATTEMPTS = 5
"""The maximum number of consecutive starts on a node without a new trial, and of consecutive attempts to fetch its
store.
"""
NOT_RELEASED = "; not released: "
Show = Callable[[FleetState], None]


class Fleet:
    """A fleet and its directory. `lock`: the descriptor from state.alone(), which keeps other controllers out."""

    def __init__(self, folder: Path, lock: int, show: Show) -> None:
        self._folder, self._lock, self._show = folder, lock, show
        self._state = state.existing(folder)
        self._config = _config(Path(self._state.study), folder / "study")
        self._fetched_s: dict[str, float] = {}
        self._silent_s: dict[str, float] = {}  # when each silent node stopped answering this controller
        self._unprepared: set[str] = set()  # nodes that the last start could not reach

    @property
    def state(self) -> FleetState:
        return self._state

    def run(self, poll_s: float, patience_s: float) -> FleetState:
        """Start the remaining nodes, wait, fetch, restore, and release. `poll_s`: the maximum time between checks in
        seconds; `patience_s`: seconds to wait for nodes that do not answer. Raises QuietError if
        Ansible or the allocation fails.
        """
        try:
            self._prepare()
            wait, announced = FIRST_POLL_S, False
            while not self._over(patience_s):
                if waiting := [name for name, node in self._state.nodes.items() if _waits(node)]:
                    self._start(waiting)
                self.look()
                self.fetch(growing=True)
                self._show(self._state)
                if not announced and all(node.state == UNREACHABLE for node in self._state.nodes.values()):
                    tell(f"no node answers; waiting for up to {patience_s:g} s (--patience)")
                    announced = True
                if not self._over(patience_s):
                    time.sleep(min(wait, poll_s))
                    wait *= 1.5
        except KeyboardInterrupt:
            folder = shell_path(self._folder)
            again = f"resume with: cbench fleet resume -o {folder}; stop with: cbench fleet release -o {folder}"
            measure = any(node.state in (RUNNING, UNREACHABLE) for node in self._state.nodes.values())
            nodes = "nodes that have started keep measuring" if measure else "no node is known to be measuring"
            raise StoppedError(f"interrupted; {nodes}; {again}") from None
        self.release()
        return self._state

    def look(self) -> FleetState:
        """Query the progress of every node that is not released, and return the new state."""
        names = [name for name, node in self._state.nodes.items() if node.state != RELEASED]
        if not names:
            return self._state
        answers = ansible.look(
            self._state.inventory, names, self._variables("started"), self._folder / "looks", self._lock
        )
        for name in names:
            node, answer = self._state.nodes[name], answers.get(name, ansible.Answer())
            seen = _answered(node, answer)
            if name in self._unprepared and answer.status is not None and seen.state in (state.NEW, FAILED):
                seen = replace(seen, message=node.message, attempts=node.attempts + 1)
                seen = replace(seen, state=FAILED) if _given_up(seen) else seen
                tell(f"{name}: answers, but cannot be prepared: {node.message}{_ending(seen)}")
            self._change(name, seen)
        self._unprepared.clear()
        return self._save()

    def fetch(self, growing: bool = False) -> FleetState:
        """Fetch a consistent copy of every store that has grown since its last fetch, and of every finished store that
        is not yet complete here. `growing`: skip running nodes whose store was fetched less than FETCH_S ago.
        """
        due = [name for name, node in self._state.nodes.items() if self._due(name, node, growing)]
        if not due:
            return self._state
        (self._folder / "results").mkdir(exist_ok=True)
        played = self._play(due, "fetched")
        for name in due:
            self._fetched_s[name] = time.monotonic()
            if why := played.failed.get(name):
                node = self._state.nodes[name]
                self._change(name, replace(node, fetches_failed=node.fetches_failed + 1))
                tell(f"{name}: not fetched: {why}")
            else:
                self._take(name)
        return self._save()

    def release(self) -> FleetState:
        """Stop, restore, fetch and clean every node that answers; then release the allocation, even if nodes failed.

        A node whose store cannot be fetched is restored and keeps its directory.
        """
        try:
            names = [name for name, node in self._state.nodes.items() if node.state != RELEASED]
            if names:
                self.look()
                (self._folder / "results").mkdir(exist_ok=True)
                played = self._play(names, "released")
                for name in names:
                    if why := played.failed.get(name):
                        node = self._state.nodes[name]
                        self._change(name, replace(node, message=_not_released(node, why)))
                        continue
                    self._take(name)
                    node = self._state.nodes[name]
                    self._change(name, replace(node, state=RELEASED, message=_reason(node)))
                    (self._folder / "results" / f"{name}.db.part").unlink(missing_ok=True)
        finally:
            self._give_back()
        return self._save()

    def _take(self, name: str) -> None:
        """Replace the controller's copy of a store with the last fetched file if this file is complete."""
        part = self._folder / "results" / f"{name}.db.part"
        if not part.is_file() or not _whole(part):
            return
        shutil.copyfile(part, copy := part.with_suffix(".new"))
        os.replace(copy, part.with_suffix(""))
        node = self._state.nodes[name]
        complete = node.state == FINISHED
        self._change(name, replace(node, fetched=node.trials_done, complete=complete, fetches_failed=0))

    def _due(self, name: str, node: NodeState, growing: bool) -> bool:
        if node.complete or node.state in (UNREACHABLE, RELEASED, state.NEW):
            return False
        if node.state != FINISHED and node.trials_done <= node.fetched:  # a finished store contains more than trials
            return False
        recent = time.monotonic() - self._fetched_s.get(name, -FETCH_S) < FETCH_S
        return not (growing and node.state == RUNNING and recent)

    def _over(self, patience_s: float) -> bool:
        def ended(name: str, node: NodeState) -> bool:
            if node.state == RELEASED or (node.state == FAILED and not _waits(node)):
                return True
            if node.state == FINISHED and (node.complete or node.fetches_failed >= MOST_ATTEMPTS):
                return True
            silent_s = time.monotonic() - self._silent_s.get(name, math.inf)
            return node.state == UNREACHABLE and silent_s > patience_s

        return all(ended(name, node) for name, node in self._state.nodes.items())

    def _prepare(self) -> None:
        # Once nodes measure, all of them keep the files with which they began, even if these change or disappear here.
        begun = any(node.trials_done or node.state == RUNNING for node in self._state.nodes.values())
        if not begun or not (self._folder / "study").is_dir():
            self._config.stage(self._folder / "study")
        (self._folder / "results").mkdir(exist_ok=True)
        packed = self._folder / "wheels.tar"
        if not self._config.bin and not packed.is_file():
            wheels.pack(fresh := packed.with_suffix(".new"))
            os.replace(fresh, packed)
        if self._config.allocate and self._state.allocation != ALLOCATED and not self._state.inventory:
            self._allocate()
        known = ansible.hosts(self._state.inventory)
        every = {name: self._state.nodes.get(name, NodeState()) for name in known}
        nodes = {name: replace(node, attempts=0, fetches_failed=0) for name, node in every.items()}
        self._state = replace(self._state, nodes={**self._state.nodes, **nodes})
        self._save()

    def _start(self, names: Sequence[str]) -> None:
        """Start or restart the study; before the first start on a node, report how the node differs from the others."""
        ready: list[str] = []
        passports = self._folder / "results"
        new = [name for name in names if not (passports / f"{name}.passport.json").exists()]
        if new and len(self._state.nodes) > 1:
            tell(f"preparing {counted(len(new), 'node')}")
            ready = self._played(new, "prepared")
            self._compare()
            names = [name for name in names if name in ready or name not in new]
        for name in self._played(names, "started", ready) if names else ():
            node = self._state.nodes[name]
            started = replace(node, state=RUNNING, message="", seen_ns=time.time_ns(), attempts=node.attempts + 1)
            self._change(name, started)
        self._save()

    def _played(self, names: Sequence[str], wanted: str, ready: Sequence[str] = ()) -> list[str]:
        """Bring nodes into the state `wanted`. Returns the nodes that reached this state, and reports the others.
        `ready`: nodes that are already prepared.
        """
        played = self._play(names, wanted, ready)
        for name, why in played.failed.items():
            node, gone = self._state.nodes[name], name in played.unreachable
            ended = replace(node, state=UNREACHABLE if gone else FAILED, message=why)
            ended = replace(ended, attempts=node.attempts + (not gone))
            self._change(name, ended)
            if gone:
                self._unprepared.add(name)
            else:
                tell(f"{name}: {why}{_ending(ended)}")
        return [name for name in names if name not in played.failed]

    def _compare(self) -> None:
        """Record and report the facts in which the nodes' passports differ."""
        passports = {}
        for name in self._state.nodes:
            try:
                stored = json.loads((self._folder / "results" / f"{name}.passport.json").read_bytes())
                passports[name] = Passport.parse({"passport": stored})
            except (OSError, ValueError):  # not prepared, or a fetch that was cut short
                continue
        differences = tuple(str(each) for each in unlike({name: each for name, each in passports.items() if each}))
        for each in differences:
            if each not in self._state.unlike:
                tell(f"the nodes differ: {each}")
        if not differences and len(passports) > 1:
            tell(f"the passports of {len(passports)} nodes agree")
        self._state = replace(self._state, unlike=differences)

    def _play(self, names: Sequence[str], wanted: str, ready: Sequence[str] = ()) -> ansible.Played:
        log = self._folder / "ansible.log"
        variables: dict[str, JsonValue] = {**self._variables(wanted), "quiet_cbench_ready": list(ready)}
        return ansible.play(self._state.inventory, names, variables, log, self._lock)

    def _variables(self, wanted: str) -> dict[str, JsonValue]:
        config = self._config
        given: dict[str, JsonValue] = {
            "quiet_cbench_id": self._state.id,
            "quiet_cbench_state": wanted,
            "quiet_cbench_version": __version__,
            "quiet_cbench_wheels": "" if config.bin else str((self._folder / "wheels.tar").absolute()),
            "quiet_cbench_study": str((self._folder / "study").absolute()),
            "quiet_cbench_begin": list(config.begin),
            "quiet_cbench_boot": config.boot,
            "quiet_cbench_results": str((self._folder / "results").absolute()),
            "quiet_cbench_complete": [name for name, node in self._state.nodes.items() if node.complete],
        }
        return {**given, "quiet_cbench_bin": config.bin} if config.bin else given

    def _allocate(self) -> None:
        self._state = replace(self._state, allocation=ASKED, release=self._config.release)
        self._save()
        try:
            done = self._shell(self._config.allocate, subprocess.PIPE)
            if done.returncode:
                raise QuietError(f"fleet.allocate: exited with {done.returncode}")
            text = json.dumps(ansible.static_inventory(done.stdout))
            file = self._folder / "inventory.json"
            file.touch(0o600)
            file.write_text(text)
            ansible.hosts(str(file))
        except KeyboardInterrupt:
            self._give_back()
            raise StoppedError("interrupted while allocating; the allocation is released") from None
        except Exception:
            self._give_back()
            raise
        self._state = replace(self._state, allocation=ALLOCATED, inventory=str(file.absolute()))
        self._save()

    def _give_back(self) -> None:
        """Release the allocation. Raises QuietError if the release command fails; the next `release` runs it again."""
        if self._state.allocation not in (ASKED, ALLOCATED) or not self._state.release:
            return
        done = self._shell(self._config.release or self._state.release, None)
        if done.returncode:
            again = f"correct `release` if it is wrong, and repeat: cbench fleet release -o {self._folder}"
            raise QuietError(f"fleet.release: exited with {done.returncode}: the nodes may still be allocated; {again}")
        self._state = replace(self._state, allocation=GIVEN_BACK)
        self._save()

    def _shell(self, command: str, stdout: int | None) -> subprocess.CompletedProcess[str]:
        """Run one of the user's commands in the study's directory, with the fleet's identifier, directory and
        inventory.
        """
        known = {"FLEET_ID": self._state.id, "FLEET_DIR": str(self._folder.absolute())}
        environment = {**os.environ, **known, "FLEET_INVENTORY": self._state.inventory}
        words = ["/bin/sh", "-c", command]
        folder = Path(self._state.study).parent
        return subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdout=stdout,
            text=True,
            errors="replace",
            check=False,
            pass_fds=[self._lock],
        )

    def _change(self, name: str, node: NodeState) -> None:
        self._state = self._state.with_node(name, node)
        if node.state == UNREACHABLE:
            self._silent_s.setdefault(name, time.monotonic())
        else:
            self._silent_s.pop(name, None)

    def _save(self) -> FleetState:
        state.store(self._folder, self._state)
        return self._state


def _config(study: Path, staged: Path) -> FleetConfig:
    """The configuration of the study; if its file has become unusable, that of the copy for the nodes."""
    try:
        return load(study)
    except UsageError as error:
        if not (staged / study.name).is_file():
            raise
        tell(f"{error}; the copy in {staged} is used")
        return load(staged / study.name)


def _not_released(node: NodeState, why: str) -> str:
    """A node's message with the reason why it was not released; the same reason is not repeated."""
    before = _reason(node)
    return f"{'' if why == before else before}{NOT_RELEASED}{why}".removeprefix("; ")


def _reason(node: NodeState) -> str:
    """A node's message without the reason why the node was not released."""
    return f"; {node.message}".partition(NOT_RELEASED)[0].removeprefix("; ")


def _waits(node: NodeState) -> bool:
    """Whether to start or restart the study on this node. A failed start is repeated: its cause may be gone."""
    return node.state in (state.NEW, STOPPED, FAILED) and not _given_up(node)


def _given_up(node: NodeState) -> bool:
    return node.attempts >= MOST_ATTEMPTS


def _ending(node: NodeState) -> str:
    return f"; given up after {node.attempts} attempts" if _given_up(node) else ""


def _answered(node: NodeState, found: ansible.Answer) -> NodeState:
    """The node's state after a check."""
    if found.status is None:
        gone = UNREACHABLE if node.state != state.NEW else state.NEW
        return replace(node, state=gone, message=found.why or node.message, left_s=None)
    answer = found.status
    try:
        (job,) = json.loads(answer[answer.index("{") :])["jobs"]
        names = ("state", "trials_done", "trials", "trials_failed", "left_s", "noise", "message")
        seen = replace(node, **{name: job[name] for name in names}, finished=job["state"] == FINISHED)
        if seen.trials_done > node.trials_done:
            seen = replace(seen, attempts=0)
    except (ValueError, LookupError, TypeError):
        if node.state == UNREACHABLE and node.trials is None and not node.trials_done:  # its study never began
            if _given_up(node):
                return replace(node, state=FAILED, message=answer.strip()[-200:], seen_ns=time.time_ns())
            return replace(node, state=state.NEW, message="", seen_ns=time.time_ns())
        lost = node.state not in (state.NEW, FAILED)  # the node answers but does not know the study
        known = node.message if node.state == state.NEW else ""  # Ansible's reason says more
        seen = replace(node, state=STOPPED if lost else node.state, message=known or answer.strip()[-200:])
    if seen.state == STOPPED and _given_up(seen):
        seen = replace(seen, state=FAILED)
    if seen.state == FAILED and node.state == FAILED and node.message:
        seen = replace(seen, message=node.message)  # keep the more useful message
    return replace(seen, seen_ns=time.time_ns())


def _whole(file: Path) -> bool:
    """Whether a fetched copy is a complete SQLite file; a kill may have truncated it."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.Error:
        return False

"""What a fleet leaves as it was: the owner's profile and boot parameters; and how its nodes differ."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cbench.fleet import run, start, state
from tests.cbench.fleet.nodes import BIN, Controller, fleet, hosts, study
from tests.cbench.running import comes
from tests.hosts import ARCHIVES
from tests.quiet.boot.trees import grow

# The real programs, on a recorded machine in place of this host.
QUIET = """#!/bin/sh
[ "$1" = --version ] || set -- "$@" --root {root}
exec {quiet} "$@"
"""
# The real program, on a host with some other facts.
CBENCH = """#!/bin/sh
[ "$1" = passport ] || exec {cbench} "$@"
{cbench} "$@" | {python} -c 'import json, sys; print(json.dumps({{**json.load(sys.stdin), **{facts}}}))'
"""


def recorded(folder: Path) -> Path:
    (archive,) = [path for path in ARCHIVES if path.name == "host.tar.gz"]
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="tar")
    return folder


def programs(folder: Path, root: Path, **facts: str) -> Path:
    """A directory of both programs, for the recorded machine in `root`, and a host with these facts."""
    (folder / "bin").mkdir(parents=True)
    known = {"quiet": BIN / "quiet", "cbench": BIN / "cbench", "root": root, "python": sys.executable}
    for name, text in (("quiet", QUIET), ("cbench", CBENCH)):
        file = folder / "bin" / name
        file.write_text(text.format(**known, facts=json.dumps(facts)))
        file.chmod(0o755)
    return folder / "bin"


def begin(folder: Path, *programs: Path, more: str = "") -> None:
    """A study, and an inventory in which each node has programs of its own."""
    file = study(folder, more=more)
    file.write_text(file.read_text().replace(str(BIN), "{{ programs }}"))
    content: Any = hosts(folder, len(programs))
    for node, each in zip(content["all"]["hosts"].values(), programs, strict=True):
        node["programs"] = str(each)
    (folder / "hosts.json").write_text(json.dumps(content))


def quiet(programs: Path, *words: str) -> Any:
    done = subprocess.run([programs / "quiet", *words, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.slow
def test_how_the_nodes_differ_is_reported_before_the_study_begins_and_by_its_status(tmp_path: Path) -> None:
    root = recorded(tmp_path / "root")
    begin(tmp_path, *(programs(tmp_path / kernel, root, kernel=kernel) for kernel in ("6.1.0", "6.12.3")))
    lines = fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out").stderr.splitlines()
    report = "the nodes differ: kernel 6.1.0 (n0) and 6.12.3 (n1)"
    (at,) = [number for number, line in enumerate(lines) if report in line]
    assert at < min(number for number, line in enumerate(lines) if " trials, " in line)
    assert report in fleet(tmp_path, "status", "-o", "out").stdout


@pytest.mark.long
@pytest.mark.slow
def test_a_node_that_joins_later_is_compared_too(tmp_path: Path, start: Callable[..., Controller]) -> None:
    root = recorded(tmp_path / "root")
    first, later = (programs(tmp_path / kernel, root, kernel=kernel) for kernel in ("6.1.0", "6.12.3"))
    begin(tmp_path, first, later)
    later.rename(away := later.with_name("away"))
    controller = start("run", "-i", "hosts.json", "s.toml", "-o", "out", "--poll", "0.1")

    def measures() -> bool:
        known = state.load(tmp_path / "out")
        return known is not None and "n0" in known.nodes and known.nodes["n0"].trials_done > 0

    assert comes(measures)
    assert state.existing(tmp_path / "out").unlike == ()
    away.rename(later)
    assert controller.wait(300) == 0
    assert state.existing(tmp_path / "out").unlike == ("kernel 6.1.0 (n0) and 6.12.3 (n1)",)


@pytest.mark.long
@pytest.mark.slow
def test_a_profile_is_restored_unless_the_owner_had_applied_it(tmp_path: Path) -> None:
    owned, left = (
        programs(tmp_path / name, recorded(tmp_path / name / "root"), profile=before)
        for name, before in (("a", "bench"), ("b", "none"))
    )
    begin(tmp_path, owned, left)
    for each in (owned, left):
        quiet(each, "apply", "--profile", "bench")
    fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out")
    assert quiet(owned, "status")["applied"]
    assert not quiet(left, "status")["applied"]


@pytest.mark.long
@pytest.mark.slow
def test_boot_parameters_of_the_owner_stay_and_those_of_a_fleet_go_with_a_reboot_that_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ansible refuses to reboot its own host, after all else is done: as if it ended right before."""
    monkeypatch.setattr(run, "MOST_ATTEMPTS", 1)
    owned, free = (programs(tmp_path / name, grow("debian", tmp_path / name / "root")) for name in "ab")
    begin(tmp_path, owned, free, more='boot = "bench"\n')
    quiet(owned, "boot", "apply", "--profile", "bench")
    placed = quiet(owned, "status")["boot"]
    folder = tmp_path / "out"
    start.begin(str(tmp_path / "hosts.json"), str(tmp_path / "s.toml"), folder)
    with state.alone(folder) as lock:
        nodes = run.Fleet(folder, lock, lambda _: None).run(0.1, 60).nodes
    assert quiet(owned, "status")["boot"] == placed
    assert quiet(free, "status")["boot"] is None
    for _ in range(2):
        assert nodes["n0"].state == "released"
        assert "reboot" in f"; {nodes['n1'].message}".partition(run.NOT_RELEASED)[2]
        fleet(tmp_path, "release", "-o", "out", code=4)
        nodes = state.existing(folder).nodes
    (tmp_path / "nodes" / "n1" / "last-boot").write_text("another boot\n")
    fleet(tmp_path, "release", "-o", "out", code=1)

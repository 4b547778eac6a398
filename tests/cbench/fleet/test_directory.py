"""The directory of a node: which other users could change it, and what becomes of their programs in it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from cbench.fleet import ansible, run, start, state
from cbench.jobs.status import FAILED
from tests.cbench.fleet.nodes import BIN, inventory, mark, study
from tests.cbench.fleet.test_collection import played

CHECK = ansible.COLLECTIONS / "ansible_collections/quiet_cbench/bench/roles/node/files/private.sh"
ADVICE = "; set quiet_cbench_home to a directory that only this user can change, such as one below ~"
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory to another user needs root")


def checked(home: Path | str, mode: str = "", folder: Path | None = None) -> tuple[int, str, str]:
    """Exit code, output and error."""
    words = ["sh", "-s", str(home), mode]
    done = subprocess.run(words, input=CHECK.read_bytes(), cwd=folder, capture_output=True, check=False, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def private(folder: Path) -> Path:
    """A directory that only this user can change, below directories of this user and root."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    return folder


def test_a_directory_of_this_user_alone_is_accepted_and_what_is_missing_is_created_for_this_user_alone(
    tmp_path: Path,
) -> None:
    home = private(tmp_path / "n")
    (tmp_path / "to").symlink_to("n")
    assert checked(home, "exists") == checked(home, "create") == (0, f"{home}\n", "")
    assert checked("to/../n", folder=tmp_path) == (0, f"{tmp_path}/to/../n\n", "")
    below = tmp_path / "to" / "a b" / "c"
    assert checked(below) == (0, f"{below}\nmissing\n", "")
    assert checked(below, "exists") == (1, f"{below}\n", f"{home}/a b: no such directory\n")
    assert not below.parent.exists()
    assert checked(below, "create") == (0, f"{below}\ncreated\ncreated\n", "")
    assert [each.stat().st_mode & 0o777 for each in (home, below.parent, below)] == [0o755, 0o700, 0o700]


@pytest.mark.parametrize("mode", ["", "exists", "create"])
def test_a_directory_that_everybody_can_change_is_refused_and_so_are_those_below_it(tmp_path: Path, mode: str) -> None:
    open_to_all = private(tmp_path / "n")
    (home := private(open_to_all / "below")).chmod(0o755)
    open_to_all.chmod(0o777)
    for each in (open_to_all, home, open_to_all / "missing"):
        code, _, error = checked(each, mode)
        assert (code, error) == (1, f"every user can change {open_to_all}{ADVICE}\n")
    open_to_all.chmod(0o1777)  # as /tmp: others can create files in it, but not replace those of this user
    assert checked(home, mode)[0] == 0
    assert checked(open_to_all, mode)[0] == 1


@as_root
def test_a_directory_or_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    home = private(tmp_path / "n")
    (tmp_path / "to").symlink_to("n")
    os.chown(tmp_path / "to", NOBODY, -1, follow_symlinks=False)
    assert checked(home)[0] == 0
    (code, _, error), link = checked(tmp_path / "to" / "x", "create"), tmp_path / "to"
    assert (code, error) == (1, f"{link} belongs to user nobody{ADVICE}\n")
    os.chown(home, NOBODY, -1)
    for each in (home, home / "x"):
        code, _, error = checked(each, "create")
        assert (code, error) == (1, f"{home} belongs to user nobody{ADVICE}\n")


@as_root
def test_the_user_who_called_sudo_is_trusted_and_a_group_of_other_users_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = private(tmp_path / "n")
    home.chmod(0o775)
    assert checked(home)[0] == 0  # the group root has no other members
    os.chown(home, NOBODY, 0)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    assert checked(home)[0] == 0
    monkeypatch.setenv("SUDO_UID", "1000")
    assert checked(home)[0] == 1
    for gid in (2, 654321):  # the primary group of the user bin or daemon; one that does not exist
        os.chown(home, 0, gid)
        code, _, error = checked(home)
        assert (code, error[:27]) == (1, "the members of group 654321" if gid > 2 else error[:27])
        assert error.endswith(f" can change {home}{ADVICE}\n")


@pytest.mark.slow
def test_a_refused_directory_is_one_line_of_the_fleet_and_nothing_is_installed_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "MOST_ATTEMPTS", 1)
    (home := private(tmp_path / "nodes" / "n0")).chmod(0o777)
    start.begin(str(inventory(tmp_path, 1)), str(study(tmp_path)), folder := tmp_path / "out")
    with state.alone(folder) as lock:
        node = run.Fleet(folder, lock, lambda _: None).run(0.1, 60).nodes["n0"]
    refused = f"every user can change {home}{ADVICE}"
    assert f"cbench: n0: {refused}; given up after 1 attempts\n" in capsys.readouterr().err
    assert (node.state, node.message) == (FAILED, f"not released: {refused}")
    assert list(home.iterdir()) == []


@pytest.mark.slow
def test_no_program_in_the_directory_of_another_user_runs(tmp_path: Path) -> None:
    file = inventory(tmp_path, 2)
    homes = [private(tmp_path / "nodes" / name) for name in ("n0", "n1")]
    for home in homes:
        (program := private(home / "venv/bin") / "cbench").write_text(f"#!/bin/sh\ntouch {home}.ran\necho answer\n")
        program.chmod(0o755)
    homes[1].chmod(0o777)
    with open(os.devnull, "rb") as null:
        found = ansible.look(str(file), ["n0", "n1"], {"quiet_cbench_id": "1"}, tmp_path / "tree", null.fileno())
    assert (found["n0"].status or "").strip() == "answer"
    assert (found["n1"].status or "").strip() == f"every user can change {homes[1]}{ADVICE}"
    assert [Path(f"{home}.ran").exists() for home in homes] == [True, False]


@pytest.mark.slow
def test_the_directory_of_a_node_is_created_for_its_user_alone(tmp_path: Path) -> None:
    inventory(tmp_path, 1)
    (tmp_path / "study").mkdir()
    (tmp_path / "results").mkdir()
    played(tmp_path, ["n0"], quiet_cbench_bin=str(BIN), quiet_cbench_state="prepared")
    assert [each.stat().st_mode & 0o777 for each in (tmp_path / "nodes", tmp_path / "nodes/n0")] == [0o700, 0o700]


@pytest.mark.slow
@pytest.mark.parametrize("role", ["install", "node"])
def test_a_role_in_a_playbook_of_the_user_refuses_such_a_directory_too(tmp_path: Path, role: str) -> None:
    file = inventory(tmp_path, 1)
    (home := private(tmp_path / "nodes" / "n0")).chmod(0o777)
    (tmp_path / "wheels.tar").touch()
    variables = {"quiet_cbench_wheels": str(tmp_path / "wheels.tar"), "quiet_cbench_study": str(tmp_path)}
    own = {"hosts": "all", "gather_facts": False, "roles": [f"quiet_cbench.bench.{role}"], "vars": variables}
    (tmp_path / "own.yml").write_text(json.dumps([own]))
    words = [ansible.program("ansible-playbook"), "-i", str(file), str(tmp_path / "own.yml")]
    known = {**mark(tmp_path), **ansible.environment()}
    done = subprocess.run(words, env=known, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert ansible.failures(done.stdout) == {"n0": f"every user can change {home}{ADVICE}"}
    assert list(home.iterdir()) == []

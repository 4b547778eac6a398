"""`cbench fleet` from the first command to the last, on hosts that are directories."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cbench.fleet import ansible, run, start, state
from cbench.jobs.status import FINISHED, RUNNING
from cbench.results import JsonValue
from quiet import QuietError, UsageError
from tests.cbench.fleet.nodes import (
    BIN,
    Controller,
    fleet,
    hosts,
    inventory,
    marked,
    once,
    order,
    same_as_undisturbed,
    study,
)
from tests.cbench.running import comes, error_line

Start = Callable[..., Controller]
# KILLS=30 in the environment kills at 30 random moments.
KILLS = int(os.environ.get("KILLS", "4"))


@pytest.mark.slow
def test_a_fleet_runs_is_fetched_and_leaves_nothing_on_its_nodes(tmp_path: Path) -> None:
    study(tmp_path)
    inventory(tmp_path)
    result = json.loads(fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out", "--json").stdout)
    assert {node["state"] for node in result["nodes"].values()} == {"released"}
    for name in ("n0", "n1"):
        once(tmp_path / "out" / "results" / f"{name}.db", 12)
    assert list((tmp_path / "nodes").iterdir()) == []
    left = sorted(each.name for each in (tmp_path / "out" / "results").iterdir())
    assert left == ["n0.db", "n0.passport.json", "n1.db", "n1.passport.json"]
    fleet(tmp_path, "resume", "-o", "out")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kills", [KILLS])
def test_a_controller_killed_again_and_again_loses_and_repeats_no_trial_and_releases(
    tmp_path: Path, start: Start, kills: int
) -> None:
    allocated = tmp_path / "allocated"
    (tmp_path / "printed.json").write_text(json.dumps(hosts(tmp_path)))
    more = 'allocate = "echo $FLEET_ID >>allocated; cat printed.json"\nrelease = "rm allocated"\n'
    repetitions = 10 * kills  # so that the study is under way until the last kills
    study(tmp_path, repetitions, more=more)
    drawn = random.Random(7)
    for _ in range(kills):
        controller = start("run", "s.toml", "-o", "out")
        try:
            controller.wait(drawn.uniform(0.5, 9))
        except subprocess.TimeoutExpired:
            controller.cut_short()
    fleet(tmp_path, "run", "s.toml", "-o", "out", code=None)
    if allocated.exists():
        fleet(tmp_path, "release", "-o", "out", code=None)
    for name in ("n0", "n1"):
        same_as_undisturbed(tmp_path, name, 4 * repetitions)
    assert not allocated.exists()
    assert list((tmp_path / "nodes").iterdir()) == []


@pytest.mark.long
@pytest.mark.slow
def test_a_node_with_a_persistent_error_is_given_up_with_the_reason_and_the_others_finish(tmp_path: Path) -> None:
    study(tmp_path)
    inventory(tmp_path)
    (tmp_path / "nodes" / "n1").mkdir(parents=True)
    (tmp_path / "nodes" / "n1" / "study").touch()  # where the directory of the study would be
    done = fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out", "--poll", "0.1", "--json", code=1)
    every = [line for line in done.stderr.splitlines() if line.startswith("cbench: n1: ")]
    lines = [line for line in every if " trials, " not in line]  # without those of the progress
    assert len(lines) == run.MOST_ATTEMPTS
    assert lines[-1].endswith(f"; given up after {run.MOST_ATTEMPTS} attempts")
    n1 = json.loads(done.stdout)["nodes"]["n1"]
    assert (n1["state"], n1["finished"]) == ("released", False)
    assert n1["message"]
    assert n1["message"] in lines[0]
    once(tmp_path / "out" / "results" / "n0.db", 12)


@pytest.mark.long
@pytest.mark.slow
def test_a_node_that_never_adds_a_trial_is_started_as_often_as_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MOST_ATTEMPTS", 2)
    bench = tmp_path / "bench.sh"
    bench.write_text(f"#!/bin/sh\necho >>{tmp_path}/starts\nexit 7\n")
    bench.chmod(0o755)
    (tmp_path / "s.toml").write_text(f'[fleet]\nbin = "{BIN}"\ncommand = "cbench run --trials 2 -- {bench}"\n')
    inventory(tmp_path, 1)
    folder = tmp_path / "out"
    start.begin(str(tmp_path / "hosts.json"), str(tmp_path / "s.toml"), folder)
    with state.alone(folder) as lock:
        nodes = run.Fleet(folder, lock, lambda _: None).run(0.1, 60).nodes
    assert (tmp_path / "starts").read_text() == 2 * "\n"
    assert "exited with 7" in nodes["n0"].message


@pytest.mark.long
@pytest.mark.slow
def test_a_store_that_cannot_be_fetched_is_reported_kept_and_fetched_later(tmp_path: Path) -> None:
    study(tmp_path)
    inventory(tmp_path)
    obstacle = tmp_path / "nodes" / "n1" / "study" / "data.db.copy" / "in the way"
    obstacle.parent.mkdir(parents=True)
    obstacle.touch()
    words = ("-o", "out", "--json")
    done = fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "--poll", "0.1", *words, code=4)
    assert f"cbench: n1: not fetched: {obstacle.parent}" in done.stderr
    nodes = json.loads(done.stdout)["nodes"]
    assert {name: node["state"] for name, node in nodes.items()} == {"n0": "released", "n1": "finished"}
    once(tmp_path / "nodes" / "n1" / "study" / "data.db", 12)  # still there
    fleet(tmp_path, "fetch", *words, code=1)
    shutil.rmtree(obstacle.parent)
    fleet(tmp_path, "fetch", *words)
    once(tmp_path / "out" / "results" / "n1.db", 12)
    fleet(tmp_path, "release", *words)
    assert list((tmp_path / "nodes").iterdir()) == []


@pytest.mark.slow
def test_nodes_are_released_days_later_and_when_allocating_fails(tmp_path: Path) -> None:
    study(tmp_path, more='allocate = "touch allocated; exit 7"\nrelease = "rm allocated"\n')
    assert "fleet.allocate: exited with 7" in error_line(fleet(tmp_path, "run", "s.toml", "-o", "out", code=2))
    assert not (tmp_path / "allocated").exists()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("command", ["cbench ab --blocks 12 -- true true", "cbench run hash --quick --trials 5"])
def test_a_command_runs_on_every_node_like_a_study(tmp_path: Path, command: str) -> None:
    (tmp_path / "s.toml").write_text(f'[fleet]\nbin = "{BIN}"\ncommand = "{command}"\n')
    inventory(tmp_path)
    result = json.loads(fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out", "--json").stdout)
    assert {(node["state"], node["finished"]) for node in result["nodes"].values()} == {("released", True)}
    left = sorted(each.name for each in (tmp_path / "out" / "results").iterdir())
    assert left == ["n0.db", "n0.passport.json", "n1.db", "n1.passport.json"]


def mounts() -> bool:
    words = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not mounts(), reason="a small file system of its own needs root")
def test_a_full_disk_is_reported_in_one_line_keeps_its_trials_and_is_resumed_when_there_is_space(
    tmp_path: Path, start: Start
) -> None:
    study(tmp_path, repetitions=10)
    inventory(tmp_path, 1)
    home = tmp_path / "nodes" / "n0"
    (tmp_path / "nodes").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path / "nodes"], check=True)
    home.mkdir()
    (home / "filler").write_bytes(bytes(800 << 10))
    controller = start("run", "-i", "hosts.json", "s.toml", "-o", "out", "--poll", "0.1")
    try:
        assert comes(lambda: "disk is full" in "".join(path.read_text() for path in tmp_path.glob("out/fleet.json")))
        before = order(home / "study" / "data.db")
        (home / "filler").unlink()
        assert controller.wait(120) == 0
        after = order(tmp_path / "out" / "results" / "n0.db")
        assert after[: len(before)] == before
        same_as_undisturbed(tmp_path, "n0", 40)
    finally:
        controller.cut_short()
        comes(lambda: not [os.kill(pid, signal.SIGKILL) for pid in marked(tmp_path)])
        subprocess.run(["umount", tmp_path / "nodes"], check=True)


@pytest.mark.slow
def test_an_error_in_a_fleet_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(study(tmp_path))
    assert "specify an inventory (-i)" in error_line(fleet(tmp_path, "plan", "s.toml", code=2))
    with pytest.raises(UsageError, match="contains no fleet"):
        state.existing(tmp_path)
    assert "contains no fleet" in error_line(
        fleet(tmp_path, "status", "-i", "hosts.json", "s.toml", "-o", "out", code=2)
    )
    study(tmp_path, more="wrong = 1\n")
    with pytest.raises(UsageError, match=r"s\.toml:12: fleet.wrong: unknown"):
        start.plan(None, file)
    (tmp_path / "c.toml").write_text('[fleet]\ncommand = "rm -rf x"\n')
    with pytest.raises(UsageError, match="must be `cbench run"):
        start.plan(None, str(tmp_path / "c.toml"))
    study(tmp_path, more='files = ["bnech.sh"]\n')
    with pytest.raises(UsageError, match=r"fleet\.files: bnech\.sh: no such file"):
        start.plan("hosts.json", file)
    study(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        ansible.hosts(str(tmp_path / "none"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="ansible-inventory: not installed; pip install"):
        ansible.hosts(str(inventory(tmp_path)))
    (tmp_path / "fleet.json").write_text("{")
    with pytest.raises(QuietError, match="cannot be read"):
        state.existing(tmp_path)


def test_files_that_a_command_names_and_fleet_files_lacks_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("old", "new", "in.txt", "lib/data"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    file = tmp_path / "s.toml"
    command = f"cbench ab -- ./old './new in.txt {tmp_path}/new missing.txt lib/data lib'"
    for files, said in (
        ("", "not in fleet.files, so the nodes will not have them: ./old, ./new, in.txt, lib/data"),
        ('"old", "in.txt", "lib"', "not in fleet.files, so the nodes will not have them: ./new"),
        ('"old", "new", "in.txt", "lib"', ""),
    ):
        test = '[[test]]\nname = "in.txt"\ncommand = "old"\n' if not files else ""
        file.write_text(f'[fleet]\nallocate = "./allocate"\nfiles = [{files}]\ncommand = "{command}"\n{test}')
        start.plan(None, str(file))
        assert capsys.readouterr().err.removeprefix("cbench: ").strip() == said


def test_what_a_user_configured_for_ansible_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSIBLE_PIPELINING", "0")
    monkeypatch.delenv("ANSIBLE_SSH_EXTRA_ARGS", raising=False)
    known = ansible.environment()
    assert known["ANSIBLE_PIPELINING"] == "0"
    assert "ServerAliveInterval" in known["ANSIBLE_SSH_EXTRA_ARGS"]
    (tmp_path / "ansible.cfg").write_text("[ssh_connection]\nssh_extra_args = -J 50%@gate\n")
    assert "ANSIBLE_SSH_EXTRA_ARGS" not in ansible.environment()
    (tmp_path / "ansible.cfg").write_text("damaged")
    assert "ANSIBLE_SSH_EXTRA_ARGS" in ansible.environment()


def test_a_node_whose_python_does_not_run_is_reported_with_the_variable_to_set() -> None:
    said = '"module_stderr": "pyenv: python3.13: command not found\\n", "module_stdout": "", "msg": "No start of json"'
    found = ansible.failures(
        f'fatal: [n0]: FAILED! => {{{said}, "rc": 127}}\nfatal: [n1]: FAILED! => {{{said}, "rc": 1}}\n'
    )
    wanted = "pyenv: python3.13: command not found (set ansible_python_interpreter for this node in the inventory)"
    assert found == {"n0": wanted, "n1": 'pyenv: python3.13: command not found ("No start of json")'}


@pytest.mark.slow
def test_a_wrong_inventory_and_the_folder_of_another_study_are_refused(tmp_path: Path) -> None:
    file = str(study(tmp_path))
    for name, content, why in (
        ("empty", "", "it contains no host"),
        ("bad", "[all", "Failed to parse inventory"),
        ("bad.yml", "all:\n  hosts:\n\t a:", r"bad\.yml:3: not an Ansible inventory: .*[Tt]ab"),
        ("cut.json", '{"all": {"hosts": {"n0"', "not an Ansible inventory: .*YAML"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(UsageError, match=why):
            ansible.hosts(str(tmp_path / name))
    state.store(tmp_path, state.FleetState("1", "another.toml", "hosts"))
    with pytest.raises(UsageError, match=r"contains the fleet of another\.toml"):
        start.begin(str(inventory(tmp_path)), file, tmp_path)
    state.store(tmp_path, state.FleetState("1", file, "other hosts"))
    for verb in (start.begin, start.plan):
        with pytest.raises(UsageError, match=r"contains the fleet of other hosts; .*omit -i"):
            verb(str(inventory(tmp_path)), file, tmp_path)


@pytest.mark.long
@pytest.mark.slow
def test_every_verb_takes_the_inventory_and_the_study_that_run_was_given(tmp_path: Path) -> None:
    study(tmp_path)
    inventory(tmp_path)
    words = ("-i", "hosts.json", "s.toml", "-o", "out")
    fleet(tmp_path, "plan", *words)
    assert not (tmp_path / "out").exists()
    fleet(tmp_path, "run", *words)
    for verb in ("plan", "status", "fetch", "resume", "release"):
        fleet(tmp_path, verb, *words)


def test_the_state_is_the_same_after_reading_it_back(tmp_path: Path) -> None:
    before = state.FleetState("1", "s.toml", "hosts").with_node("n", state.NodeState(trials_done=3))
    state.store(tmp_path, before)
    assert state.load(tmp_path) == before
    assert os.access(BIN, os.X_OK)


def test_a_store_that_had_all_its_trials_before_it_finished_is_fetched_again(tmp_path: Path) -> None:
    node = state.NodeState(state=FINISHED, trials_done=4, trials=4, fetched=4, finished=True)
    state.store(tmp_path, state.FleetState("1", str(study(tmp_path)), "hosts").with_node("n", node))
    each = run.Fleet(tmp_path, -1, lambda _: None)
    assert each._due("n", node, growing=True)
    assert not each._due("n", replace(node, complete=True), growing=True)
    assert not each._due("n", replace(node, state=RUNNING), growing=True)


@pytest.mark.slow
def test_the_ansible_that_a_killed_controller_left_is_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["flock", str(tmp_path / state.LOCKS[1]), "sh", "-c", "echo; read -r _"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as left:
        assert left.stdin
        assert left.stdout
        assert left.stdout.readline() == b"\n"
        threading.Timer(1, left.stdin.close).start()
        with state.alone(tmp_path):
            assert left.wait(60) == 1  # it had come to the end of its input
    assert "waiting for processes that a killed cbench fleet has left running" in capsys.readouterr().err


@pytest.mark.slow
def test_a_check_continues_after_a_node_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ansible, "LOOKERS", 1)  # one worker process checks all
    content = json.loads(inventory(tmp_path, 3).read_text())
    content["all"]["hosts"]["n0"] |= {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    (tmp_path / "hosts.json").write_text(json.dumps(content))
    known: dict[str, JsonValue] = {"quiet_cbench_id": "x", "quiet_cbench_bin": str(BIN)}
    with state.alone(tmp_path) as lock:
        answers = ansible.look(str(tmp_path / "hosts.json"), ["n0", "n1", "n2"], known, tmp_path / "looks", lock)
    assert answers["n0"].status is None
    assert "Connection refused" in answers["n0"].why
    assert all("nodes: no such directory" in (answers[name].status or "") for name in ("n1", "n2"))


@pytest.mark.slow
def test_nodes_that_cannot_be_reached_are_announced_with_the_reason(tmp_path: Path) -> None:
    content = json.loads(inventory(tmp_path, 2).read_text())
    content["all"]["vars"] = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    (tmp_path / "hosts.json").write_text(json.dumps(content))
    study(tmp_path)
    words = ("run", "-i", "hosts.json", "s.toml", "-o", "out", "--poll", "0.1", "--patience", "2", "--json")
    done = fleet(tmp_path, *words, code=4)
    assert "no node answers; waiting for up to 2 s (--patience)" in done.stderr
    assert all("Connection refused" in node["message"] for node in json.loads(done.stdout)["nodes"].values())


@pytest.mark.slow
def test_a_node_that_answers_but_cannot_be_prepared_is_given_up_with_the_reason(tmp_path: Path) -> None:
    content = json.loads(inventory(tmp_path, 1).read_text())
    content["all"].setdefault("vars", {})["ansible_remote_tmp"] = "/proc/none"
    (tmp_path / "hosts.json").write_text(json.dumps(content))
    study(tmp_path)
    done = fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out", "--poll", "0.1", "--json", code=1)
    assert done.stderr.count(f"n0: answers, but cannot be prepared: {ansible.NO_TEMPORARY}") == 5
    assert done.stderr.count("; given up after 5 attempts\n") == 1
    assert json.loads(done.stdout)["nodes"]["n0"]["message"] == ansible.NO_TEMPORARY


@pytest.mark.slow
def test_the_programs_are_installed_below_the_home_of_the_node(tmp_path: Path) -> None:
    content = json.loads(inventory(tmp_path, 1).read_text())
    home = Path("~/.cache").expanduser() / f"quiet-cbench-test-{os.getpid()}"
    content["all"]["hosts"] = {"n0": {"quiet_cbench_home": f"~/.cache/{home.name}/n0"}}
    (tmp_path / "hosts.json").write_text(json.dumps(content))
    text = study(tmp_path).read_text()
    (tmp_path / "s.toml").write_text("".join(line for line in text.splitlines(True) if not line.startswith("bin")))
    try:
        fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out", "--poll", "0.1")
        once(tmp_path / "out" / "results" / "n0.db", 12)
        assert not any(home.iterdir())
    finally:
        shutil.rmtree(home, ignore_errors=True)

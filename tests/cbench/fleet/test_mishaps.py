"""What a fleet does where two of them share nodes, files disappear, and commands end in the middle."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cbench.fleet import ansible, run, start, state
from cbench.formats.registry import read
from cbench.jobs.status import FAILED, RUNNING
from quiet import UsageError
from tests.cbench.fleet.nodes import BIN, Controller, fleet, hosts, inventory, once, study
from tests.cbench.running import comes, error_line

Start = Callable[..., Controller]
FATAL = (
    'fatal: [n0]: FAILED! => {"changed": true, "msg": "non-zero return code", "rc": 1, "stderr": "%s", "stdout": ""}'
)


@pytest.mark.slow
def test_a_fleet_leaves_the_directory_and_the_study_of_another_as_they_are(tmp_path: Path) -> None:
    study(tmp_path)
    inventory(tmp_path, 1)
    node = tmp_path / "nodes" / "n0"
    node.mkdir(parents=True)
    (node / "fleet").write_text("another n0")
    (node / "study").mkdir()
    (node / "study" / "data.db").write_text("its data")
    done = fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out", "--poll", "0.1", "--json", code=1)
    n0 = json.loads(done.stdout)["nodes"]["n0"]
    assert (n0["state"], n0["trials_done"]) == ("released", 0)
    assert "holds another fleet" in n0["message"]
    assert (node / "study" / "data.db").read_text() == "its data"


@pytest.mark.slow
def test_a_killed_allocation_is_waited_for_and_released(tmp_path: Path, start: Start) -> None:
    (tmp_path / "printed.json").write_text(json.dumps(hosts(tmp_path)))
    allocate, release = "touch begun; sleep 4; touch allocated; cat printed.json", "rm allocated && touch free"
    study(tmp_path, more=f'allocate = "{allocate}"\nrelease = "{release}"\n')
    controller = start("run", "s.toml", "-o", "out")
    assert comes((tmp_path / "begun").exists)
    controller.cut_short()
    fleet(tmp_path, "release", "-o", "out", code=None)
    assert (tmp_path / "free").exists()
    assert not (tmp_path / "allocated").exists()


@pytest.mark.long
@pytest.mark.slow
def test_a_study_that_has_disappeared_is_released_by_the_copy_for_the_nodes(tmp_path: Path) -> None:
    inventory(tmp_path, 1)
    fleet(tmp_path, "run", "-i", "hosts.json", str(study(tmp_path)), "-o", "out")
    (tmp_path / "s.toml").unlink()
    assert "the copy in out/study is used" in fleet(tmp_path, "release", "-o", "out").stderr
    once(tmp_path / "out" / "results" / "n0.db", 12)


def test_nothing_is_allocated_for_a_study_without_its_files(tmp_path: Path) -> None:
    study(tmp_path, more='files = ["none.sh"]\nallocate = "touch allocated"\n')
    done = fleet(tmp_path, "run", "s.toml", "-o", "out", code=2)
    assert "none.sh: no such file" in error_line(done)
    assert not (tmp_path / "allocated").exists()


@pytest.mark.long
@pytest.mark.slow
def test_of_two_nodes_in_one_directory_one_is_refused(tmp_path: Path) -> None:
    study(tmp_path)
    content: Any = hosts(tmp_path)
    content["all"]["hosts"]["n1"] = content["all"]["hosts"]["n0"]
    (tmp_path / "hosts.json").write_text(json.dumps(content))
    done = fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out", "--poll", "0.1", "--json", code=1)
    nodes = json.loads(done.stdout)["nodes"]
    (refused,) = [name for name, node in nodes.items() if "or another node of this" in node["message"]]
    (other,) = nodes.keys() - {refused}
    once(tmp_path / "out" / "results" / f"{other}.db", 12)
    assert not (tmp_path / "out" / "results" / f"{refused}.db").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "key", ["ansible_password", "ansible_become_pass", "ansible_private_key", "ansible_ssh_private_key_passphrase"]
)
def test_a_password_that_an_allocation_prints_is_refused_and_the_machines_are_released(
    tmp_path: Path, key: str
) -> None:
    content: Any = hosts(tmp_path)
    content["all"]["hosts"]["n1"][key] = "secret"
    (tmp_path / "printed.json").write_text(json.dumps(content))
    study(tmp_path, more='allocate = "cat printed.json"\nrelease = "touch free"\n')
    done = fleet(tmp_path, "run", "s.toml", "-o", "out", code=2)
    assert error_line(done).startswith(f"fleet.allocate: printed {key}, and credentials are not stored: use ssh keys")
    assert (tmp_path / "free").exists()
    assert not (tmp_path / "out" / "inventory.json").exists()
    content["all"]["hosts"]["n1"][key] = "{{ lookup('env', 'PASSWORD') }}"
    assert ansible.static_inventory(json.dumps(content)) == content


@pytest.mark.long
@pytest.mark.slow
def test_after_a_failed_allocation_another_one_is_asked_for_and_braces_are_no_templates(tmp_path: Path) -> None:
    (tmp_path / "printed.json").write_text(json.dumps(hosts(tmp_path, 1)))
    (tmp_path / "hosts.json").write_text(json.dumps(hosts(tmp_path, 2)))  # not that of this fleet
    command = "cbench run --trials 3 -- echo '{{.ID}} {{ 6*7 }}' true 5"
    (tmp_path / "s.toml").write_text(
        f'[fleet]\nbin = "{BIN}"\ncommand = "{command}"\n'
        'allocate = "test -e ready && cat printed.json"\nrelease = "touch free"\n'
    )
    assert "fleet.allocate: exited with 1" in error_line(fleet(tmp_path, "run", "s.toml", "-o", "out", code=2))
    (tmp_path / "ready").touch()
    nodes = json.loads(fleet(tmp_path, "run", "s.toml", "-o", "out", "--json").stdout)["nodes"]
    assert {name: node["state"] for name, node in nodes.items()} == {"n0": "released"}
    (measured,) = read(tmp_path / "out" / "results" / "n0.db")
    assert measured.name == "echo '{{.ID}} {{ 6*7 }}' true 5"


@pytest.mark.parametrize("printed", ["3", '{"_meta": 3}', '{"_meta": {"hostvars": {}}, "g": 3}', "\xff"])
def test_other_output_of_an_allocation_is_refused(printed: str) -> None:
    with pytest.raises(UsageError, match=r"fleet\.allocate: its output is not an inventory in JSON"):
        ansible.static_inventory(printed)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("release = 'true'", "fleet.release: needs `allocate`"),
        ('command = "cbench run -- \'a"', "fleet.command: No closing quotation"),
        ("command = 'cbench run -ox.db -- true'", "fleet.command: must be"),
        ("command = 'cbench run --output=x.db -- true'", "fleet.command: must be"),
        ("x = }", "Invalid value"),
        ("boot = 'bench-bot'", "fleet.boot: profile bench-bot: no such profile"),
        ("files = ['.']", "fleet.files: '.': name the files"),
    ],
)
def test_a_wrong_fleet_table_is_refused_with_its_line(tmp_path: Path, lines: str, says: str) -> None:
    (tmp_path / "s.toml").write_text(f"[fleet]\n{lines}\n")
    with pytest.raises(UsageError) as refused:
        start.plan(None, str(tmp_path / "s.toml"))
    assert f"s.toml:2: {says}" in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a b", "!n", ".n", "a/b"])
def test_a_host_whose_name_is_a_pattern_or_a_path_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {name: {}}}}))
    with pytest.raises(UsageError, match="must begin with a letter, a digit or _"):
        ansible.hosts(str(tmp_path / "hosts.json"))


def test_an_inventory_scripts_groups_may_be_lists_of_hosts() -> None:
    printed = {"bench": ["n1", "n0"], "_meta": {"hostvars": {"n1": {"ansible_host": "::1"}}}}
    assert ansible.static_inventory(json.dumps(printed)) == {
        "all": {"hosts": {"n0": {}, "n1": {"ansible_host": "::1"}}}
    }
    with pytest.raises(UsageError, match="its output is not an inventory in JSON"):
        ansible.static_inventory("[]")


def test_the_state_of_a_node_has_the_latest_reason_and_loses_it_when_it_no_longer_holds() -> None:
    lost = state.NodeState(state=state.UNREACHABLE, message="Host key verification failed.", left_s=3)
    denied = run._answered(lost, ansible.Answer(None, "Permission denied (publickey)."))
    assert (denied.message, denied.left_s) == ("Permission denied (publickey).", None)
    back = run._answered(denied, ansible.Answer("bash: line 1: .../venv/bin/cbench: No such file or directory"))
    assert (back.state, back.message) == (state.NEW, "")  # its study never began
    job = {"state": RUNNING, "trials_done": 0, "trials": None, "trials_failed": 0}
    status = json.dumps({"jobs": [{**job, "left_s": None, "noise": None, "message": ""}]})
    assert run._answered(denied, ansible.Answer(status)).state == RUNNING  # of a run whose trials are not known
    for before, after in (
        ("x; not released: y", "x"),
        ("not released: y", ""),
        ("x", "x"),
    ):
        assert run._reason(state.NodeState(message=before)) == after
    for before, after in (("x", "x; not released: y"), ("y", "not released: y"), ("", "not released: y")):
        assert run._not_released(state.NodeState(message=before), "y") == after


def test_a_node_whose_study_failed_to_start_too_often_has_failed_also_after_a_silence() -> None:
    lost = state.NodeState(state=state.UNREACHABLE, attempts=run.MOST_ATTEMPTS)
    back = run._answered(lost, ansible.Answer("bash: line 1: .../venv/bin/cbench: No such file or directory"))
    assert back.state == FAILED  # with any other state, the fleet would wait for it forever


def test_a_missing_sudo_is_not_taken_for_a_missing_python() -> None:
    said = '"module_stderr": "/bin/sh: 1: sudo: not found\\n", "module_stdout": "", "msg": "x"'
    found = ansible.failures(f'fatal: [n0]: FAILED! => {{{said}, "rc": 127}}\n')
    assert found == {"n0": "/bin/sh: 1: sudo: not found (ansible_become needs it)"}


def test_a_node_that_answered_long_ago_has_the_whole_patience_of_a_new_controller(tmp_path: Path) -> None:
    long_ago = state.NodeState(state=RUNNING, seen_ns=time.time_ns() - 10**13)
    state.store(tmp_path, state.FleetState("1", str(study(tmp_path)), "hosts").with_node("n", long_ago))
    each = run.Fleet(tmp_path, -1, lambda _: None)
    each._change("n", run._answered(long_ago, ansible.Answer()))
    assert not each._over(patience_s=60)
    assert comes(lambda: each._over(patience_s=0.01))


@pytest.mark.parametrize(
    ("errors", "reason"),
    [("python9: not found", "python9: not found"), ("no space\\nShared connection to n0 closed.\\r\\n", "no space")],
)
def test_the_reason_of_a_failed_command_is_its_last_error(errors: str, reason: str) -> None:
    assert ansible.failures(FATAL % errors) == {"n0": reason}


def test_a_copy_in_a_directory_with_any_name_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "run#1 50%?"
    folder.mkdir()
    (folder / "n0.db.part").write_bytes(b"SQLite format 3\0, cut short")
    assert not run._whole(folder / "n0.db.part")
    assert [each.name for each in tmp_path.iterdir()] == ["run#1 50%?"]


@pytest.mark.slow
def test_the_status_is_shown_while_another_controller_works(tmp_path: Path) -> None:
    node = state.NodeState(state=RUNNING, trials_done=3, trials=12)
    state.store(tmp_path / ".", state.FleetState("1", str(study(tmp_path)), "hosts").with_node("n0", node))
    with state.alone(tmp_path):
        done = fleet(tmp_path, "status", "-o", ".", "--json")
    assert json.loads(done.stdout)["nodes"]["n0"]["trials_done"] == 3
    assert "another cbench fleet is working here" in done.stderr

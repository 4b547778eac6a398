"""The collection: check mode changes nothing, the second time nothing changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from cbench.fleet import wheels
from cbench.fleet.ansible import COLLECTIONS, Played, environment, play, program
from cbench.jobs.status import FINISHED, status
from cbench.results import JsonValue
from tests.cbench.fleet.nodes import BIN, inventory, study
from tests.cbench.running import comes
from tests.hosts import ARCHIVES

STATES = ("prepared", "started", "fetched", "released")


def played(tmp_path: Path, limit: list[str], **variables: JsonValue) -> Played:
    known: dict[str, JsonValue] = {
        "quiet_cbench_study": str(tmp_path / "study"),
        "quiet_cbench_results": str(tmp_path / "results"),
        "quiet_cbench_begin": ["run", "hash", "--quick", "--trials", "5", "-o", "data.db"],
    }
    fd = os.open(os.devnull, os.O_RDONLY)
    check = bool(variables.pop("check", False))
    try:
        done = play(str(tmp_path / "hosts.json"), limit, {**known, **variables}, tmp_path / "log", fd, check=check)
    finally:
        os.close(fd)
    assert done.failed == {}, (tmp_path / "log").read_text()
    return done


@pytest.mark.slow
def test_the_playbook_changes_nothing_under_check_whatever_state_is_wanted(tmp_path: Path) -> None:
    file = inventory(tmp_path, len(STATES))
    content = json.loads(file.read_text())
    for each, wanted in zip(content["all"]["hosts"].values(), STATES, strict=True):
        each["quiet_cbench_state"] = wanted
    file.write_text(json.dumps(content))
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "s.toml").write_text("")
    done = played(tmp_path, list(content["all"]["hosts"]), quiet_cbench_bin=str(BIN), check=True)
    assert "n0" in done.changed
    assert not (tmp_path / "nodes").exists()


@pytest.mark.long
@pytest.mark.slow
def test_the_whole_playbook_changes_nothing_the_second_time(tmp_path: Path) -> None:
    inventory(tmp_path, 1)
    (tmp_path / "study").mkdir()
    (tmp_path / "results").mkdir()
    wheels.pack(tmp_path / "wheels.tar")
    data = tmp_path / "nodes" / "n0" / "study" / "data.db"
    for wanted in STATES:
        given: dict[str, JsonValue] = {
            "quiet_cbench_state": wanted,
            "quiet_cbench_wheels": str(tmp_path / "wheels.tar"),
        }
        assert played(tmp_path, ["n0"], **given).changed == ("n0",)
        if wanted == "started":
            assert comes(lambda: status(str(data)).state == FINISHED)
        assert played(tmp_path, ["n0"], **given).changed == (), (tmp_path / "log").read_text()
    assert not (tmp_path / "nodes" / "n0").exists()


def adhoc(
    tmp_path: Path, module: str, arguments: dict[str, JsonValue], *words: str, code: int = 0
) -> dict[str, object]:
    command = [program("ansible"), "n0", "-i", str(inventory(tmp_path, 1)), "-m", f"quiet_cbench.bench.{module}"]
    tree = tmp_path / "tree"
    given = json.dumps({**arguments, "bin": str(BIN)})
    done = subprocess.run(
        [*command, "-a", given, "--tree", str(tree), *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    answer = json.loads((tree / "n0").read_text())
    assert isinstance(answer, dict)
    return {**answer, "printed": done.stdout}


@pytest.mark.slow
def test_a_profile_is_applied_once_restored_once_and_shown_as_a_diff(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (archive,) = [path for path in ARCHIVES if path.name == "host.tar.gz"]
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="tar")
    given: dict[str, JsonValue] = {"root": str(root)}
    dry = adhoc(tmp_path, "profile", given, "--check", "--diff")
    assert dry["changed"]
    assert "slice:system.slice" in str(dry["printed"])
    applied = [adhoc(tmp_path, "profile", given)["changed"] for _ in range(2)]
    restored = [adhoc(tmp_path, "profile", {**given, "state": "restored"})["changed"] for _ in range(2)]
    assert (applied, restored) == ([True, False], [True, False])


@pytest.mark.slow
def test_a_store_that_another_user_can_change_is_not_resumed_stopped_or_copied(tmp_path: Path) -> None:
    study(tmp_path, repetitions=1)
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    data = folder / "s.db"
    begin: list[JsonValue] = ["order", "run", str(tmp_path / "s.toml"), "-o", str(data)]
    given: dict[str, JsonValue] = {"data": str(data), "begin": begin}
    failed = adhoc(tmp_path, "study", given, code=2)
    assert f"everybody can change {folder}" in str(failed["msg"])
    assert list(folder.iterdir()) == []
    data.touch()
    for state in ("stopped", "fetched"):
        failed = adhoc(tmp_path, "study", {**given, "state": state}, code=2)
        assert (failed["rc"], f"everybody can change {folder}" in str(failed["msg"])) == (3, True)
    assert list(folder.iterdir()) == [data]
    data.unlink()
    folder.chmod(0o755)
    assert adhoc(tmp_path, "study", given)["changed"]
    assert comes(lambda: status(str(data)).state == FINISHED)


@pytest.mark.slow
def test_ansible_is_imported_by_nothing_but_the_modules_that_run_on_nodes() -> None:
    package = COLLECTIONS.parents[1]
    others = [path for path in package.rglob("*.py") if not path.is_relative_to(COLLECTIONS)]
    assert not [
        path for path in others if "import ansible\n" in path.read_text() or "from ansible." in path.read_text()
    ]
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, cbench.fleet.run; print('ansible' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert loaded.stdout == "False\n"


@pytest.mark.slow
def test_ansible_shows_the_documentation_of_every_module() -> None:
    names = [f"quiet_cbench.bench.{each}" for each in ("boot", "noise", "profile", "study")]
    done = subprocess.run(
        [program("ansible-doc"), "--json", *names], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(json.loads(done.stdout)[name]["doc"]["options"] for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("role", ["install", "node"])
def test_the_argument_spec_of_a_role_has_its_variables_and_their_defaults(role: str) -> None:
    name = f"quiet_cbench.bench.{role}"
    done = subprocess.run(
        [program("ansible-doc"), "-t", "role", "--json", name],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    options = json.loads(done.stdout)[name]["entry_points"]["main"]["options"]
    folder = COLLECTIONS / "ansible_collections/quiet_cbench/bench/roles" / role
    defaults = yaml.safe_load((folder / "defaults/main.yml").read_text())
    assert {variable: each["default"] for variable, each in options.items()} == defaults
    assert all(each["description"] and each["type"] for each in options.values())


@pytest.mark.slow
def test_a_state_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    inventory(tmp_path, 1)
    with open(os.devnull, "rb") as file:
        known: dict[str, JsonValue] = {"quiet_cbench_state": "fetch", "quiet_cbench_bin": str(BIN)}
        done = play(str(tmp_path / "hosts.json"), ["n0"], known, tmp_path / "log", file.fileno())
    assert "must be one of: prepared, started, fetched, released, got: fetch" in done.failed["n0"]

"""The collection: check mode changes nothing, the second time nothing changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from cbench.fleet.ansible import COLLECTIONS, environment, play, program
from tests.cbench.fleet.nodes import BIN, inventory
from tests.hosts import ARCHIVES


@pytest.mark.parametrize("wanted", ["started", "fetched", "released"])
def test_the_playbook_changes_nothing_under_check(tmp_path: Path, wanted: str) -> None:
    hosts = inventory(tmp_path, 2)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "s.toml").write_text("")
    variables = {
        "quiet_cbench_state": wanted,
        "quiet_cbench_bin": str(BIN),
        "quiet_cbench_study": str(tmp_path / "study"),
        "quiet_cbench_begin": ["run", "hash", "-o", "data.db"],
    }
    fd = os.open(os.devnull, os.O_RDONLY)
    played = play(str(hosts), ["n0", "n1"], variables, tmp_path / "log", fd, check=True)
    assert played.failed == {}, (tmp_path / "log").read_text()
    assert not (tmp_path / "nodes").exists()


def adhoc(tmp_path: Path, module: str, arguments: dict[str, str], *words: str) -> dict[str, object]:
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
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads((tree / "n0").read_text())
    assert isinstance(answer, dict)
    return {**answer, "printed": done.stdout}


def test_a_profile_is_applied_once_restored_once_and_shown_as_a_diff(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (archive,) = [path for path in ARCHIVES if path.name == "host.tar.gz"]
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="tar")
    given = {"root": str(root)}
    dry = adhoc(tmp_path, "profile", given, "--check", "--diff")
    assert dry["changed"]
    assert "slice:system.slice" in str(dry["printed"])
    applied = [adhoc(tmp_path, "profile", given)["changed"] for _ in range(2)]
    restored = [adhoc(tmp_path, "profile", {**given, "state": "restored"})["changed"] for _ in range(2)]
    assert (applied, restored) == ([True, False], [True, False])


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


def _starts(path: Path) -> set[str]:
    """What its lines begin with: as many characters as an import of Ansible has."""
    return {line.strip()[:14] for line in path.read_text().splitlines()}

"""A damaged journal and a full /run on a real kernel: the host is restored, or the command names the way out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.guest.journal import SIZES_KIB
from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["plain-6.12"], indirect=True)]

SEED = 20241123
TIMEOUT_S = 2400


@once
def report(machine: Machine, what: str) -> dict[str, Any]:
    result = boot(machine, f"python -m tests.lab.guest.journal {what}", timeout=TIMEOUT_S)
    found: dict[str, Any] = json.loads(result.files.get("report.json", "{}"))
    assert "broke" not in found, found["broke"]
    assert found, result.output
    assert found["left_by_warm_up"] == []
    return found


def damaged(machine: Machine) -> dict[str, Any]:
    return report(machine, f"damage {SEED}")


def text(step: dict[str, Any]) -> str:
    return f"exit status {step['code']}\n{step['out']}{step.get('err', '')}"


def test_restore_names_any_damage_and_keeps_the_journal(machine: Machine) -> None:
    for each in damaged(machine)["rounds"]:
        words = text(each["restore"])
        assert "Traceback" not in words, each["name"]
        assert "nothing left changed" not in words, each["name"]
        assert each["restore"]["code"] == 4, (each["name"], words)
        assert "the journal is damaged" in words, (each["name"], words)
        assert "--keep" in words, (each["name"], words)
        assert each["kept"], each["name"]


def test_every_setting_whose_original_value_is_readable_is_restored(machine: Machine) -> None:
    rounds = damaged(machine)["rounds"]
    for each in rounds:
        if not each["lost"]:
            assert each["left"] == [], each["name"]
    assert len([each for each in rounds if not each["lost"]]) > 3
    assert len([each for each in rounds if each["lost"]]) > 3


def test_other_commands_refuse_and_status_reports_it(machine: Machine) -> None:
    for each in damaged(machine)["rounds"]:
        if "status" in each:
            assert each["apply"]["code"] == 3, text(each["apply"])
            assert "`quiet restore`" in each["apply"]["err"]
            assert "journal is damaged" in each["status"]["out"]
            assert "applied: nothing" not in each["status"]["out"]


def test_with_the_undamaged_journal_everything_is_restored(machine: Machine) -> None:
    for name, each in damaged(machine)["ended"].items():
        assert (each["code"], each["left"]) == (0, []), (name, each["out"])


def test_keep_accepts_the_host_and_removes_the_journal(machine: Machine) -> None:
    found = damaged(machine)
    assert found["damaged_by_command"]["code"] == 4
    assert found["kept"]["code"] == 0, text(found["kept"])
    assert found["left_by_kept"] == []


def test_run_restores_with_a_journal_that_its_command_has_damaged(machine: Machine) -> None:
    found = damaged(machine)
    assert found["run"]["code"] == 4, text(found["run"])
    assert "`quiet restore`" in found["run"]["err"]
    assert found["left_by_run"] == []
    assert found["kept_by_run"]["code"] == 0


@pytest.mark.parametrize("kib", SIZES_KIB)
def test_without_space_for_the_journal_nothing_is_changed(machine: Machine, kib: int) -> None:
    seen = report(machine, "space")["sizes"][str(kib)]
    assert seen["apply"]["code"] == 3, text(seen["apply"])
    assert "nothing was changed" in seen["apply"]["err"]
    assert "KiB" in seen["apply"]["err"]
    assert seen["left_by_apply"] == []
    assert seen["restore"]["code"] == 0, text(seen["restore"])
    assert seen["run"]["code"] == 3, text(seen["run"])
    assert "ran" not in seen["run"]["out"].split()
    assert seen["left"] == []
    assert not [name for name in seen["files"] if name.startswith("journal")]


def test_on_a_file_system_that_has_become_full_restore_needs_no_space(machine: Machine) -> None:
    found = report(machine, "space")
    assert found["free"] == 0
    assert found["restore"]["code"] == 0, text(found["restore"])
    assert found["left_by_restore"] == []


def test_on_a_full_file_system_nothing_is_changed(machine: Machine) -> None:
    found = report(machine, "space")
    for step in found["full"].values():
        assert step["code"] == 3, text(step)
        assert step["err"].count("\n") == 1
    assert found["left_by_full"] == []


def test_every_user_sees_what_is_applied_whatever_the_umask_was(machine: Machine) -> None:
    found = report(machine, "space")
    assert found["apply"]["code"] == 0, text(found["apply"])
    assert found["nobody"] == "bench"
    held = {name: mode for name, mode in found["modes"].items() if name.startswith("held.")}
    assert found["modes"] == held | {"journal.jsonl": 0o644, "lock": 0o600}
    assert set(held.values()) <= {0o644}

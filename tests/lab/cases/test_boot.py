"""`quiet` across reboots, on a machine that GRUB boots from a partitioned disk and that systemd runs.

Three boots: as found; with the profile's command line and its service; as found again. And three more: as found; by
kexec, once; as found again.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["grub"], indirect=True)]
# Nothing else changed besides the compared files.
SCRIPT = "export PYTHONDONTWRITEBYTECODE=1; python3 -P -m tests.lab.guest.boot"
TIMEOUT_S = 1500
BOOTS = 3
INSTALLED, ONCE = "installed", "once"
WANTED = {"isolcpus=managed_irq,2-3", "nohz_full=2-3"}


@once
def booted(machine: Machine, what: str) -> Result:
    return boot(machine, f"{SCRIPT} {what}", timeout=TIMEOUT_S)


def seen(machine: Machine, number: int, what: str = INSTALLED) -> dict[str, Any]:
    """The results of a boot, by its number from 1."""
    result = booted(machine, what)
    found: dict[str, Any] = json.loads(result.files.get(f"boot-{number}.json", "{}"))
    assert found, result.output + result.console_tail
    assert "broke" not in found, found["broke"]
    return found


def words(machine: Machine, number: int, what: str = INSTALLED) -> list[str]:
    return str(seen(machine, number, what)["command_line"]).split()


def said(step: dict[str, Any]) -> str:
    return f"exit status {step['code']}\n{step['out']}{step['err']}"


def test_every_boot_comes_up(machine: Machine) -> None:
    for number in range(1, BOOTS + 1):
        found = seen(machine, number)
        assert found["came_up"]["out"].strip() == "running", found["failed_units"]["out"]


def test_the_boot_loaders_own_program_has_written_its_menu(machine: Machine) -> None:
    step = seen(machine, 1)["update_grub"]
    assert step["code"] == 0, said(step)
    assert "Found linux image" in step["err"]


def test_with_systemd_apply_does_what_the_plan_shows(machine: Machine) -> None:
    found = seen(machine, BOOTS)["strict"]
    assert len(found["plan"]["json"]["changes"]) > 10
    assert found["apply"]["code"] == 0, said(found["apply"])
    assert len(found["changed_by_apply"]) > 10
    assert found["plan_again"]["json"]["changes"] == []
    assert found["verify"]["code"] == 0, said(found["verify"])
    assert found["status"]["json"]["applied"]["profile"] == "strict"


def test_with_systemd_restore_leaves_nothing_changed(machine: Machine) -> None:
    found = seen(machine, BOOTS)["strict"]
    assert found["restore"]["code"] == 0, said(found["restore"])
    assert found["left"] == []


def test_apply_changes_files_of_its_own_and_the_menu_and_nothing_else(machine: Machine) -> None:
    assert seen(machine, 1)["boot_apply"]["code"] == 0, said(seen(machine, 1)["boot_apply"])
    assert seen(machine, 1)["install"]["code"] == 0, said(seen(machine, 1)["install"])
    was = {line.split(": was ")[0]: line.split(": was ")[1] for line in seen(machine, 1)["changed"]}
    units = "/etc/systemd/system"
    assert {path for path, what in was.items() if not what.startswith("absent")} == {"/boot/grub/grub.cfg"}
    assert {path for path in was if path.startswith("/etc/systemd")} == {
        f"{units}/quiet.service",
        f"{units}/quiet-after.target",
        f"{units}/multi-user.target.wants/quiet.service",
    }
    others = [path for path in was if not path.startswith(("/etc/systemd", "/boot", "/var/lib/quiet"))]
    assert others == ["/etc/default/grub.d/zz-quiet.cfg"]


def test_after_a_reboot_the_running_command_line_has_the_parameters(machine: Machine) -> None:
    assert not WANTED & set(words(machine, 1))
    assert set(words(machine, 1)) <= set(words(machine, 2))
    assert set(words(machine, 2)) >= WANTED
    assert seen(machine, 2)["plan"]["json"]["boot"]["missing"] == []


def test_after_a_reboot_the_unit_has_applied_the_profile(machine: Machine) -> None:
    found = seen(machine, 2)
    assert {"ActiveState=active", "Result=success", "UnitFileState=enabled"} <= set(found["unit"]["out"].split())
    status = found["status"]["json"]
    assert status["applied"]["profile"] == "bench"
    assert status["applied"]["complete"]
    assert status["applied"]["cpus"]["isolated"] == "2-3"
    assert status["service"] == {"unit": "quiet.service", "profile": "bench", "cpus": None, "at_boot": True}


def test_with_both_verify_succeeds(machine: Machine) -> None:
    found = seen(machine, 2)
    assert found["verify"]["code"] == 0, said(found["verify"])
    assert found["verify"]["json"]["drift"] == []
    assert found["short"]["code"] == 0, said(found["short"])
    assert set(found["short"]["json"]["noise"]["cpus"]) == {"2", "3"}


def test_stopping_the_unit_restores_the_original_values(machine: Machine) -> None:
    found = seen(machine, 2)
    assert found["stop"]["code"] == 0, said(found["stop"])
    assert found["status_stopped"]["json"]["applied"] is None
    assert found["left"] == []


def test_removal_stops_the_unit_first(machine: Machine) -> None:
    found = seen(machine, 2)
    assert found["start"]["code"] == 0, said(found["start"])
    assert found["status_started"]["json"]["applied"]["profile"] == "bench"
    assert found["remove"]["json"]["restored"]
    assert found["status_removed"]["json"]["applied"] is None
    assert found["status_removed"]["json"]["service"] is None


def test_systemd_does_not_know_the_removed_service(machine: Machine) -> None:
    found = seen(machine, 2)
    assert found["remove"]["code"] == 0, said(found["remove"])
    assert found["remove"]["json"]["ran"]
    assert set(found["unit_removed"]["out"].split()) == {
        "LoadState=not-found",
        "ActiveState=inactive",
        "Result=success",
    }


def test_after_removal_and_a_reboot_the_disk_is_as_it_was_first_byte_for_byte(machine: Machine) -> None:
    assert seen(machine, 2)["boot_remove"]["code"] == 0, said(seen(machine, 2)["boot_remove"])
    assert seen(machine, 3)["changed"] == []
    assert words(machine, 3) == words(machine, 1)


@pytest.mark.long
def test_once_starts_one_boot_with_the_parameters_and_changes_no_file(machine: Machine) -> None:
    assert set(words(machine, 2, ONCE)) >= WANTED
    assert seen(machine, 2, ONCE)["plan"]["json"]["boot"]["missing"] == []
    assert seen(machine, 2, ONCE)["changed"] == []


@pytest.mark.long
def test_the_boot_after_once_is_unaffected(machine: Machine) -> None:
    assert words(machine, 3, ONCE) == words(machine, 1, ONCE)
    assert seen(machine, 3, ONCE)["changed"] == []

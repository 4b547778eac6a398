"""The Debian package on a clean Debian: installed, used, kept while it is needed, and purged without a trace."""

from __future__ import annotations

import json

import pytest

from tests import ABSENT, CHECKOUT
from tests.lab.harness import package
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["debian-12", "debian-13"], indirect=True)]
SCRIPT = (CHECKOUT / "tests/lab/guest/package.sh").read_text()
TIMEOUT_S = 3000
FIRST, SECOND = "-1", "-2"


@once
def booted(machine: Machine) -> Result:
    try:
        built = package.ensure()
    except PackageError as error:
        pytest.skip(f"{ABSENT}{error}")
    return boot(machine, SCRIPT, timeout=TIMEOUT_S, give=[built])


def step(machine: Machine, name: str) -> tuple[int, str]:
    """The exit status and the output of a step."""
    result = booted(machine)
    assert f"{name}.code" in result.files, f"{result.output}\n{result.console_tail}"
    return int(result.files[f"{name}.code"]), result.files[name]


def done(machine: Machine, name: str) -> str:
    code, text = step(machine, name)
    assert code == 0, text
    return text


def test_apt_installs_it_without_a_network(machine: Machine) -> None:
    assert "Setting up quiet-cbench" in done(machine, "install")
    assert [line.split()[0] for line in done(machine, "versions").splitlines()] == ["quiet", "cbench"]


def test_both_commands_work(machine: Machine) -> None:
    assert len(json.loads(done(machine, "plan"))["changes"]) > 10
    code, text = step(machine, "run")
    assert code in (0, 1), text  # 1: the trials differ, as they do in an emulator
    assert json.loads(text)


def test_a_man_page_can_be_read(machine: Machine) -> None:
    page = done(machine, "man")
    assert "SYNOPSIS" in page
    assert "--trust-program" in page


def test_three_shells_complete_commands(machine: Machine) -> None:
    assert done(machine, "bash").split() == ["install-service"]
    assert done(machine, "zsh").split() == ["completed"]
    assert [line.split("\t")[0] for line in done(machine, "fish").splitlines()] == ["install-service"]


def test_the_schemas_are_installed(machine: Machine) -> None:
    assert {"study.json", "screen.json", "gate.json", "profile.json"} <= {*done(machine, "schemas").split()}


@pytest.mark.parametrize("time", [FIRST, SECOND])
def test_the_service_applies_the_profile_and_the_watch_runs(machine: Machine, time: str) -> None:
    for name in ("service", "start", "watch"):
        done(machine, f"{name}{time}")
    assert done(machine, f"active{time}").split() == ["active", "active"], booted(machine).files[f"journal{time}"]
    assert "Traceback" not in booted(machine).files[f"journal{time}"]
    done(machine, "verify")


def test_it_is_not_removed_while_a_setting_cannot_be_restored(machine: Machine) -> None:
    code, text = step(machine, "refused")
    assert code != 0
    assert "/proc/sys/kernel/watchdog_cpumask" in text
    assert "quiet-cbench stays installed" in text
    assert done(machine, "kept") == "install ok installed"
    done(machine, "forced")


def test_a_purge_stops_the_services_restores_every_setting_and_leaves_nothing(machine: Machine) -> None:
    done(machine, "purge")
    assert step(machine, "processes") == (1, "")
    assert done(machine, "units") == ""
    assert done(machine, "failed") == done(machine, "failed-before")
    assert step(machine, "run-folder")[0] != 0
    assert booted(machine).files["files"] == ""
    assert done(machine, "settings") == ""

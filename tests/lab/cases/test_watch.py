"""`quiet watch` on a real kernel: drift on a quiet machine is reported within seconds, and repaired with --repair."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["watched"], indirect=True)]

IDLE_S = 30
MOST_CPU = 0.001  # of one CPU that the emulator has to itself, while nothing happens
SOON_S = 2.0
REST_S = 2.0  # news settle for 0.2 s, those of processes for 0.3 s; the rest is for a host that is busy
KNOBS = {
    "governor": "cpufreq.governor",
    "interrupt": "irq",
    "rival": "irqbalance",
    "offline": "cpus",
    "online": "cpus",
    "partition": "cpuset",
    "task": "tasks",
}
REPAIRED = ("governor", "default", "offline", "partition")


@once
def report(machine: Machine) -> dict[str, Any]:
    result = boot(machine, f"python -m tests.lab.guest.watch {IDLE_S}", timeout=1800)
    found: dict[str, Any] = json.loads(result.files.get("report.json", "{}"))
    assert "broke" not in found, found["broke"]
    assert found, result.output
    assert found["apply"]["code"] == 0, found["apply"]
    print(f"the first look: {found['first_look']:.2f} s of CPU time")
    for done, line in found["reported"].items():
        print(done, {name: line.get(name) for name in ("after", "awake", "cost", "by")})
    return found


def test_an_idle_watch_takes_almost_no_cpu_time(machine: Machine) -> None:
    idle = report(machine)["idle"]
    assert idle["lines"] == []
    assert 0 <= idle["cpu_s"] <= MOST_CPU * idle["seconds"] * idle["slowed"], idle


def test_the_watch_runs_only_on_the_housekeeping_cpus(machine: Machine) -> None:
    assert report(machine)["affinity"] == [0, 1]


def test_the_watch_gives_khugepaged_nothing_to_do(machine: Machine) -> None:
    assert report(machine)["huge_pages"] == "0"


@pytest.mark.parametrize("done", KNOBS)
def test_a_disturbance_is_reported_soon(machine: Machine, done: str) -> None:
    line = report(machine)["reported"][done]
    assert "missed" not in line, line
    assert line["knob"] == KNOBS[done]
    assert line["by"] != "a full check", line
    # A look takes as long as the emulator's machine lets it: it is compared with the first one, which is at everything.
    assert line["after"] - line["awake"] <= REST_S, line
    assert line["cost"] <= max(SOON_S, report(machine)["first_look"] / 2), line


def test_unrepaired_drift_ends_with_exit_code_1(machine: Machine) -> None:
    ended = report(machine)["ended"]
    assert ended["code"] == 1
    assert ended["lines"][-1]["event"] == "ended"
    assert ended["lines"][-1]["drifts"] >= len(KNOBS) - 1


@pytest.mark.parametrize("done", REPAIRED)
def test_with_repair_drift_is_undone(machine: Machine, done: str) -> None:
    assert report(machine)["repaired"][done], report(machine)["repair_ended"]["lines"]


def test_after_the_repairs_the_settings_are_in_force(machine: Machine) -> None:
    assert report(machine)["now"] == {
        "governor": "performance",
        "default": "3",
        "online": "0-3",
        "partition": "isolated",
    }
    assert report(machine)["verify_again"]["code"] == 0, report(machine)["verify_again"]
    assert report(machine)["repair_ended"]["code"] == 0, report(machine)["repair_ended"]["lines"]


def test_restore_still_leaves_nothing_changed(machine: Machine) -> None:
    assert report(machine)["restore"]["code"] == 0, report(machine)["restore"]
    assert report(machine)["left"] == []

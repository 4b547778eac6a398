"""The lab's own kernel, built of kernel-configs/ by `make kernel`: it has the options that they set, and the osnoise
tracer.

Skipped where nobody has built it: a build takes minutes of all cores, which no test does. Beside `quiet noise` runs the
kernel's own analyzer, `rtla osnoise`, in the same guest and with the same disturbance planted for each.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from quiet.kernel import fragments
from tests.lab.harness import debian
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["own"], indirect=True)]

SCRIPT = """
quiet kernel check --json >$LAB_OUT/check.json
quiet status >$LAB_OUT/status
export PATH=$PATH:$RTLA LD_LIBRARY_PATH=$RTLA_LIBRARIES
python -m tests.benchmarks.inside.compare turn
"""
ROW = re.compile(r"^(nmi|irq|softirq|thread|hw) +(\d+) +(\d+)$", re.MULTILINE)
# The smallest planted number, by class (tests/benchmarks/inside/planted.py): three non-maskable interrupts, the calls
# and the device's interrupts, the wake-ups of a task and the works of a kworker.
PLANTED = {"nmi": 3, "irq": 90, "thread": 140}


def rtla() -> dict[str, str]:
    """The variables that tell the script where Debian's rtla and its libraries are."""
    root = debian.programs("rtla", ["rtla", "libtracefs1", "libtraceevent1"])
    return {"RTLA": str(root / "usr/bin"), "RTLA_LIBRARIES": str(root / "usr/lib/x86_64-linux-gnu")}


@once
def booted(machine: Machine) -> Result:
    try:
        found = rtla()
    except PackageError as error:
        pytest.skip(f"not here: rtla: {error}")
    result = boot(machine, SCRIPT, timeout=900, env=found)
    assert result.code == 0, result.output
    return result


def counts(machine: Machine) -> dict[str, tuple[int, int]]:
    """The counts of rtla and of quiet for each class."""
    found = {name: (int(theirs), int(ours)) for name, theirs, ours in ROW.findall(booted(machine).output)}
    assert found, booted(machine).output
    return found


def test_the_kernel_has_every_option_except_those_that_the_lab_leaves_out(machine: Machine) -> None:
    check: dict[str, Any] = json.loads(booted(machine).files["check.json"])
    off = {option.name for option in fragments.load([fragments.LAB]) if option.wanted == "n"}
    assert check["source"] == "/proc/config.gz"
    assert {each["option"] for each in check["options"] if each["state"] == "missing"} <= off
    assert check["unknown"] == 0
    assert "kernel options" in booted(machine).files["status"]


@pytest.mark.parametrize("name", PLANTED)
def test_rtla_and_quiet_both_count_the_planted_disturbances(machine: Machine, name: str) -> None:
    theirs, ours = counts(machine)[name]
    assert theirs >= PLANTED[name], booted(machine).output
    assert ours >= PLANTED[name], booted(machine).output


@pytest.mark.parametrize("name", PLANTED)
def test_rtla_and_quiet_count_the_same_interruptions(machine: Machine, name: str) -> None:
    theirs, ours = counts(machine)[name]
    assert 0.5 <= ours / theirs <= 2, booted(machine).output

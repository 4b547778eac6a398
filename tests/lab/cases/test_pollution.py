"""A planted task on the CPU where `cbench run` measures appears by name among the trials' causes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.once import once

pytestmark = [
    pytest.mark.lab,
    pytest.mark.parametrize("machine", ["isolated-6.1", "isolated-6.12"], indirect=True),
]

CPU, TRIALS = 3, 8
# "planted" wakes ten times a second and stays in the shell, so that it has one name and one number. Each read of a file
# that the host serves causes an interrupt from the device behind it. The first instance's owner is long gone.
SCRIPT = f"""
mkfifo /tmp/never
mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing
mkdir /sys/kernel/tracing/instances/quiet-noise.4194303.1.trials
taskset -c {CPU} bash -c 'echo -n planted >/proc/self/comm; while :; do read -t 0.1 -u 4; done' 4<>/tmp/never &
planted=$!
for line in $(sed -n 's/^ *\\([0-9]*\\):.*virtio[0-9]*-requests$/\\1/p' /proc/interrupts); do
    echo {CPU} >/proc/irq/$line/smp_affinity_list
done
taskset -c 0 bash -c 'while :; do : </etc/hostname; read -t 0.03 -u 4; done' 4<>/tmp/never &
reader=$!
cbench run hash --param n=20000000 --trials {TRIALS} --warmup 0 --cpu {CPU} --json >$LAB_OUT/cbench.json
code=$?
kill $planted $reader
echo $planted >$LAB_OUT/planted
ls /sys/kernel/tracing/instances >$LAB_OUT/instances
python -m tests.lab.guest.lost_cpu {CPU} >$LAB_OUT/lost.json
exit $code
"""


@once
def booted(machine: Machine) -> Result:
    return boot(machine, SCRIPT, timeout=1200)


def files(machine: Machine) -> dict[str, str]:
    assert booted(machine).code == 0, booted(machine).output
    return booted(machine).files


def result(machine: Machine) -> dict[str, Any]:
    (only,) = json.loads(files(machine)["cbench.json"])["results"]
    return dict(only)


def trials_with(machine: Machine, text: str) -> int:
    return sum(text in each["cause"] for each in result(machine)["polluted"])


def test_the_causes_come_from_the_kernels_trace(machine: Machine) -> None:
    assert result(machine)["causes_from"]["source"] == "kernel tracing", result(machine)["causes_from"]
    assert result(machine)["causes_from"]["from_counters"] == 0


def test_an_interrupting_task_is_named_with_its_number(machine: Machine) -> None:
    number = files(machine)["planted"].strip()
    assert trials_with(machine, f"task planted ({number})") >= TRIALS / 2, result(machine)["causes"]


def test_a_device_that_interrupted_is_named_with_its_line(machine: Machine) -> None:
    named = {row["cause"]: row["trials"] for row in result(machine)["causes"]}
    devices = [cause for cause in named if cause.startswith("IRQ ") and cause.endswith("-requests")]
    assert max((named[cause] for cause in devices), default=0) >= TRIALS / 2, named


def test_a_context_switch_is_reported_once_with_the_task_that_ran(machine: Machine) -> None:
    assert result(machine)["with_context_switch"] >= TRIALS / 2
    named = result(machine)["causes"]
    assert not [row for row in named if row["cause"].startswith("context switch")], named


def test_every_cause_that_was_traced_has_its_time(machine: Machine) -> None:
    planted = [row for row in result(machine)["causes"] if row["cause"].startswith("task planted ")]
    assert planted
    assert all(0 < row["max_ns"] <= row["total_ns"] for row in planted)


def test_no_trace_is_left_behind_nor_those_of_others_who_have_ended(machine: Machine) -> None:
    assert files(machine)["instances"] == ""


def test_a_cpu_that_goes_offline_ends_the_run_in_one_line_and_the_earlier_trials_are_kept(machine: Machine) -> None:
    lost = json.loads(files(machine)["lost.json"])
    assert lost["code"] == 3, lost["err"]
    (line,) = (line for line in lost["err"].splitlines() if line.startswith("cbench: error: "))
    assert f"CPU {CPU} was lost after" in line
    assert "it went offline" in line
    assert "Traceback" not in lost["err"]
    assert lost["after"] >= lost["before"] > 0

"""A busy CPU runs the timers of idle CPUs since Linux 6.9; since 6.19 an isolated partition keeps them away."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quiet.noise.call_nesting import PULLED
from quiet.noise.prove import NO_TRACER
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.once import once

pytestmark = [
    pytest.mark.lab,
    pytest.mark.parametrize("machine", ["plain-6.12", "plain-7.3"], indirect=True),
]

SCRIPT = r"""
python -m tests.lab.guest.timers & timers=$!
sleep 1
quiet noise --cpus 3 --duration 6 --threshold 20us --json > $LAB_OUT/before.json
quiet apply --profile bench --cpus 3 > $LAB_OUT/apply
cat /sys/fs/cgroup/quiet/cpuset.cpus.partition > $LAB_OUT/partition
quiet noise --cpus 3 --duration 6 --threshold 20us --json > $LAB_OUT/after.json
quiet restore
kill $timers
quiet noise --cpus 3 --duration 0.5 --threshold 20us --prove 2 --json > $LAB_OUT/prove.json
cat /sys/kernel/tracing/available_tracers > $LAB_OUT/tracers
ls /sys/kernel/tracing/events/timer_migration > $LAB_OUT/events
"""


@once
def visit(machine: Machine) -> Result:
    result = boot(machine, SCRIPT, timeout=1500)
    assert result.code == 0, result.output
    return result


def reports(machine: Machine) -> tuple[dict[str, Any], dict[str, Any], str]:
    result = visit(machine)
    assert result.files["partition"].strip() == "isolated", result.files["apply"]
    before, after = (json.loads(result.files[f"{name}.json"])["cpus"]["3"] for name in ("before", "after"))
    return before, after, result.files["events"]


def pulled(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in report["causes"] if each["kind"] == PULLED]


def test_a_timer_that_a_busy_cpu_runs_for_another_one_is_named_with_that_cpu(machine: Machine) -> None:
    before, _, _ = reports(machine)
    assert pulled(before), before["causes"]
    assert any(each["cause"].startswith("timer of CPU 1, pulled here: tcp_") for each in pulled(before))
    assert {each["boot"] for each in pulled(before)} == {"nohz_full=3"}


def test_an_isolated_partition_keeps_them_away_from_linux_6_19_on_only(machine: Machine) -> None:
    _, after, events = reports(machine)
    assert bool(pulled(after)) == ("tmigr_cpu_available" not in events), after["causes"]


def test_gaps_with_interrupts_off_are_detected_if_the_kernel_has_the_tracer(machine: Machine) -> None:
    result = visit(machine)
    proof = json.loads(result.files["prove.json"])["proof"]
    if "hwlat" in result.files["tracers"].split():
        assert (proof["why"], list(proof["cpus"])) == ("", ["3"])
    else:
        assert (proof["why"], proof["cpus"]) == (NO_TRACER, {})

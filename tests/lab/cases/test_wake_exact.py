"""Wake-up latency where time is counted in instructions: 300 us with interrupts off are found and attributed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import CHECKOUT
from tests.lab.harness import kmod
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["exact"], indirect=True)]

MODULE = CHECKOUT / "tests/lab/guest/irqs_off"
OFF_US, LIMIT_US = 300, 200
SCRIPT = f"""
wake="quiet noise --wake --cpus 0 --fifo 80 --stop-above {LIMIT_US}us --json"
$wake --duration 3 >$LAB_OUT/calm; echo $? >$LAB_OUT/calm.code
insmod $LAB_IN/planted.ko cpu=0 off_us={OFF_US} every_ms=500 || exit
$wake --duration 10 --save-trace $LAB_OUT/saved >$LAB_OUT/planted; echo $? >$LAB_OUT/planted.code
rmmod planted
"""


@once
def files(machine: Machine) -> dict[str, str]:
    try:
        module = kmod.of_tests(machine, MODULE)
    except PackageError as error:
        pytest.skip(f"not here: {error}")
    result: Result = boot(machine, SCRIPT, timeout=600, give=[Path(module)])
    assert result.code == 0, result.output
    return dict(result.files)


def report(machine: Machine, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(machine)[name])
    return found


def test_without_it_no_wake_up_is_that_late(machine: Machine) -> None:
    assert files(machine)["calm.code"].strip() == "0", report(machine, "calm")
    assert report(machine, "calm")["stopped"] is None
    assert report(machine, "calm")["cpus"]["0"]["max_ns"] < LIMIT_US * 1000


def test_the_first_wake_up_that_it_delays_stops_the_measuring(machine: Machine) -> None:
    assert files(machine)["planted.code"].strip() == "1"
    stopped = report(machine, "planted")["stopped"]
    assert stopped["cpu"] == 0
    assert LIMIT_US * 1000 < stopped["latency_ns"] < 2 * OFF_US * 1000


def test_who_kept_interrupts_off_is_named_with_its_time(machine: Machine) -> None:
    worst = report(machine, "planted")["cpus"]["0"]["worst"][0]
    longest = worst["parts"][0]
    assert longest["phase"] == "timer", worst
    assert longest["cause"].startswith("interrupts off in task planted-off ("), worst
    assert longest["ns"] > 0.8 * worst["latency_ns"]
    assert "planted-off" in files(machine)["saved"]

"""Cycles by calibration beside the PMU's cycles, both in one run, where every instruction takes one cycle.

QEMU's counted instructions are not a core's: each instruction of a chain takes a cycle, those of its loop too. So there
is no headline there, and an addition of the chain stands for 18/16 cycles: the loop's two instructions are shared by
16.
"""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot

pytestmark = [pytest.mark.lab, pytest.mark.long]

EXACT = pytest.mark.parametrize("machine", ["exact"], indirect=True)
TIMEOUT_S = 600  # ten times the duration on an idle machine
PER_ADDITION = 18 / 16
RUN = "cbench run hash --cpu 0 --no-trace --json --param n=10000"
VISIT = f"""
{RUN} --counter calibrated-cycles --events cycles --trials 1000 >$LAB_OUT/both || exit 1
{RUN} --trials 50 >$LAB_OUT/auto || exit 1
cbench list --json >$LAB_OUT/list
"""


@EXACT
def test_both_counters_of_one_run_agree_and_an_emulator_is_not_mistaken_for_a_core(machine: Machine) -> None:
    done = boot(machine, VISIT, timeout=TIMEOUT_S)
    assert done.code == 0, done.output
    made: dict[str, Any] = {name: json.loads(done.files[name]) for name in ("both", "auto", "list")}
    (both,) = made["both"]["results"]
    counted = both["counts"]["cycles"]
    by_chains = median(both["trials"]) * PER_ADDITION
    how = both["counter"]["calibration"]
    step = how["step"] / (how["length"] * how["ticks_per_cycle"])
    assert by_chains == pytest.approx(counted["median"] - counted["empty"], rel=2 * step + 1e-3)
    assert both["headline"]["value"] is None
    assert "emulator" in both["headline"]["how"]
    assert made["auto"]["counter"]["name"] == "cycles"
    (offered,) = [each for each in made["list"]["counters"] if each["name"] == "calibrated-cycles"]
    assert not offered["available"]
    assert "emulator" in offered["why"]

"""The purpose of the whole project: while every CPU is busy, trials on an isolated one go undisturbed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["busy"], indirect=True)]

TRIALS = 10
TIMEOUT_S = 1200  # ten times the duration on an idle machine
# Each loop has its own CPU, for the scheduler would leave CPU 0 to the measuring alone if it could. Those of CPUs 2
# and 3 are moved by quiet. A trial takes a hundred milliseconds or more: some turns of the scheduler.
SCRIPT = f"""
for cpu in 0 1 2 3; do taskset -c $cpu sh -c 'while :; do :; done' & done
quiet run --profile bench -- \
    cbench run hash --no-trace --param n=5000000 --trials {TRIALS} --warmup 1 --cpu 0,2 \
    --timeout 600 --json > $LAB_OUT/cbench.json
code=$?
kill $(jobs -p)
exit $code
"""


@once
def columns(machine: Machine) -> dict[int, dict[str, Any]]:
    """The result of each CPU: 0 is an ordinary one, 2 is isolated."""
    result = boot(machine, SCRIPT, timeout=TIMEOUT_S)
    assert result.code == 0, result.output
    return {each["cpu"]: each for each in json.loads(result.files["cbench.json"])["results"]}


def test_no_trial_on_the_isolated_cpu_has_a_context_switch(machine: Machine) -> None:
    isolated = columns(machine)[2]
    assert isolated["isolated"] is True
    assert len(isolated["trials"]) == TRIALS
    assert isolated["with_context_switch"] == 0, isolated["polluted"]
    assert isolated["with_migration"] == 0


def test_most_trials_on_an_ordinary_cpu_of_the_same_boot_have_one(machine: Machine) -> None:
    ordinary = columns(machine)[0]
    assert ordinary["isolated"] is False
    assert ordinary["with_context_switch"] > TRIALS / 2, ordinary["polluted"]


def test_both_columns_computed_the_same_value(machine: Machine) -> None:
    assert columns(machine)[0]["outputs"] == columns(machine)[2]["outputs"]

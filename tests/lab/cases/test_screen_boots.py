"""A word of the kernel's command line as a hard factor: each batch boots with it or without, all by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import CHECKOUT
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["grub"], indirect=True)]
SCRIPT = (CHECKOUT / "tests/lab/guest/screen_boots.sh").read_text()
TIMEOUT_S = 1500
WORD = "skew_tick=1"


@once
def booted(machine: Machine) -> Result:
    return boot(machine, SCRIPT, timeout=TIMEOUT_S)


def store(machine: Machine) -> dict[str, Any]:
    assert booted(machine).code == 0, booted(machine).output
    found: dict[str, Any] = json.loads(booted(machine).files["store.json"])
    return found


def test_the_experiment_finishes_by_itself_in_one_boot_for_each_batch(machine: Machine) -> None:
    assert [run[3] for run in store(machine)["runs"]] == [None] * 4
    files = booted(machine).files
    assert json.loads(files["status.json"])["finished"], booted(machine).output
    assert int(files["boots"]) == 3  # the first one, and one for each of two batches
    assert "cbench-study" not in files["units"]


def test_each_batch_has_its_level_and_its_own_boot(machine: Machine) -> None:
    made = store(machine)
    assert [batch["tick"] for batch in made["batches"]] == ["skewed", "plain"]
    boots: dict[str, set[str]] = {}
    for run, _, test, failure, output in made["trials"]:
        assert failure is None
        kind = made["runs"][run][0]
        level = made["batches"][int(kind.split()[1])]["tick"]
        boot_id, *line, value = output.split()
        assert (WORD in line) is (level == "skewed")
        assert f"tick={level} env={value}" == made["tests"][test]
        boots.setdefault(kind, set()).add(boot_id)
    assert sorted(boots) == ["batch 0", "batch 1"]
    assert [len(each) for each in boots.values()] == [1, 1]
    assert len(set.union(*boots.values())) == 2
    assert len(made["trials"]) == 8


def test_read_back_values_are_stored_and_only_the_first_iteration_of_a_batch_is_reset(machine: Machine) -> None:
    runs = store(machine)["runs"]
    assert [run[2]["levels"]["confirmed"] for run in runs[::2]] == [{"tick": WORD}, {"tick": "none of the parameters"}]
    assert [bool(run[1]) for run in runs] == [True, False, True, False]
    assert all(run[1]["boot_id"] != run[1]["boot_id_before"] for run in runs[::2])

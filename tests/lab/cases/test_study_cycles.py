"""Cycles of a command, where a PMU counts and time is counted in instructions: twice the work is twice the cycles."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["exact"], indirect=True)]

TIMEOUT_S = 1500
LOOP = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
SCRIPT = f"""
cd $(mktemp -d)
cat >s.toml <<'END'
[study]
repetitions = 1
design = "random"
[[test]]
name = "none"
command = ":"
read = "cycles"
[[test]]
name = "once"
command = "{LOOP}"
read = "cycles"
[[test]]
name = "below"
command = "{LOOP}; ({LOOP})"
read = "cycles"
[[test]]
name = "user"
command = "{LOOP}"
read = "cycles:u"
[[test]]
name = "hash"
workload = "hash"
params = {{ n = 10000 }}
END
cbench order run s.toml || exit 1
python - >$LAB_OUT/study.json <<'END'
import json, sqlite3
store = sqlite3.connect("s.db")
values = store.execute("SELECT test, value FROM study_value JOIN study_trial USING (run, position)").fetchall()
print(json.dumps([values, json.loads(store.execute("SELECT host FROM study").fetchone()[0])]))
END
cbench run hash --param n=10000 --trials 1 --warmup 0 --json >$LAB_OUT/hash.json
"""
NONE, ONCE, BELOW, USER, HASH = range(5)


@once
def found(machine: Machine) -> tuple[dict[int, list[float]], dict[str, Any], list[int]]:
    """The values of each test, the host's facts, and what `cbench run` measured."""
    result = boot(machine, SCRIPT, timeout=TIMEOUT_S)
    assert result.code == 0, result.output
    rows, host = json.loads(result.files["study.json"])
    values: dict[int, list[float]] = {}
    for test, value in rows:
        values.setdefault(test, []).append(value)
    return values, host, json.loads(result.files["hash.json"])["results"][0]["trials"]


def test_children_are_counted_and_the_runner_is_not(machine: Machine) -> None:
    values, _, _ = found(machine)
    start = min(values[NONE])
    once, below = min(values[ONCE]) - start, min(values[BELOW]) - start
    assert below == pytest.approx(2 * once, rel=0.1)
    assert start < 0.5 * min(values[ONCE])  # starting a shell; Python would take more than the loop


def test_user_mode_is_a_part_of_the_whole(machine: Machine) -> None:
    values, _, _ = found(machine)
    assert 0.3 * min(values[ONCE]) < min(values[USER]) < min(values[ONCE])


def test_a_workload_takes_the_same_time_as_in_cbench_run(machine: Machine) -> None:
    """10 cycles per round and what calls it; an interrupt adds thousands, and is in some."""
    values, host, alone = found(machine)
    assert host["counter"]["name"] == "cycles"
    assert min(values[HASH]) == pytest.approx(min(alone), rel=0.2)
    assert min(values[HASH]) >= 100_000

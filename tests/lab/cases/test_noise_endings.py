"""However the measuring ends, nothing is left behind; missing facilities are reported, and it continues without
them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [
    pytest.mark.lab,
    pytest.mark.parametrize("machine", ["isolated-6.12"], indirect=True),
]


@once
def steps(machine: Machine) -> dict[str, dict[str, Any]]:
    result = boot(machine, "python -m tests.lab.guest.noise_endings", timeout=1500)
    assert result.code == 0, result.output
    found: dict[str, dict[str, Any]] = json.loads(result.files["report.json"])
    return found


def complete(step: dict[str, Any]) -> str:
    """What a command printed that ended well and left no trace instance."""
    assert (step["code"], step["instances"]) == (0, []), step
    return str(step["said"])


@pytest.mark.parametrize(("signal", "code"), [("INT", 130), ("TERM", 143), ("HUP", 129)])
def test_a_signal_ends_it_with_one_line_and_nothing_is_left(machine: Machine, signal: str, code: int) -> None:
    ended = steps(machine)[signal]
    assert f"quiet: error: ended by SIG{signal}" in ended["said"]
    assert (ended["code"], ended["instances"]) == (code, [])


def test_the_next_start_removes_leftovers_of_a_kill(machine: Machine) -> None:
    killed = steps(machine)["KILL"]
    assert killed["code"] == -9
    assert any(name.startswith("quiet-noise.") for name in killed["instances"])
    complete(steps(machine)["next"])


def test_a_full_trace_is_reported_and_later_gaps_have_no_cause(machine: Machine) -> None:
    said = complete(steps(machine)["full"])
    assert re.search(r"CPU 0: the trace was full after [\d.]+ s; [\d,]+ events were lost", said)
    assert "unattributed: after the trace's end" in said


def test_no_gap_makes_the_next_one_where_returning_to_the_loop_takes_long(machine: Machine) -> None:
    (found,) = json.loads(complete(steps(machine)["default"]))["cpus"].values()
    assert found["gaps"] > 0
    assert found["looking_pct"] < 10  # 41 when each gap made the next


def test_cpus_that_cannot_be_measured_are_refused_in_one_line(machine: Machine) -> None:
    offline, absent = steps(machine)["offline"], steps(machine)["absent"]
    assert offline["said"] == "quiet: error: --cpus 2: offline; online CPUs: 0-1,3\n"
    assert absent["said"] == "quiet: error: --cpus 7: no such CPU; this host has 0-3\n"
    assert [(each["code"], each["instances"]) for each in (offline, absent)] == [(2, [])] * 2


def test_all_cpus_that_are_online_can_be_measured(machine: Machine) -> None:
    said = complete(steps(machine)["everything"])
    assert "all CPUs are measured, so this command and the rest of the system interrupt them too" in said
    assert all(f"CPU {cpu}: " in said for cpu in (0, 1, 3))


@pytest.mark.parametrize("step", ["untraced", "nobody"])
def test_without_tracing_it_says_why_and_counts(machine: Machine, step: str) -> None:
    said = complete(steps(machine)[step])
    assert "no kernel tracing, so causes are found by counting" in said
    assert "CPU 3" in said

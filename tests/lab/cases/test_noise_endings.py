"""However the measuring ends, nothing is left behind; missing facilities are reported, and it continues without
them.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.once import once

pytestmark = [
    pytest.mark.lab,
    pytest.mark.parametrize("machine", ["isolated-6.12"], indirect=True),
]

# Each step prints its name, then what the command said, its exit status, and whose trace instances there are.
SCRIPT = r"""
T=/sys/kernel/tracing
step() { echo "=== $1"; }
left() { echo "exit $1"; echo "instances" $(ls $T/instances); }
ended_by() {
    # a shell has its jobs in the background ignore SIGINT, and what is ignored stays so
    env --default-signal=INT quiet noise --cpus 3 --duration 100 --threshold 1ms & pid=$!
    until ls $T/instances | grep -q senders; do sleep 0.2; done
    sleep 1
    kill -$1 $pid
    wait $pid
    left $?
}
for signal in INT TERM HUP KILL; do step $signal; ended_by $signal; done
step next; quiet noise --cpus 3 --duration 0.5 --threshold 1ms; left $?
step default; quiet noise --cpus 3 --duration 0.2 --json
# Events fill the buffer however slowly the guest runs.
taskset -c 0 sh -c 'while :; do sleep 0.001; done' & waker=$!
step full; python - <<'END'
from quiet.host.host import Host
from quiet.noise import budgets, measure, report, table, tracefs
measure.BUFFER_KB, tracefs.MOST_BYTES = 4, 0
wanted = measure.NoiseRequest(frozenset({0}), 4.0, 5_000.0)
print(*table.lines(report.make(measure.measure(Host(), wanted), budgets.NONE, {})), sep="\n")
END
left $?
kill $waker
step offline; echo 0 > /sys/devices/system/cpu/cpu2/online; quiet noise --cpus 2-3 --duration 1; left $?
step absent; quiet noise --cpus 7; left $?
step everything; quiet noise --duration 0.5 --cpus 0-1,3 --threshold 1ms; left $?
step untraced; umount $T; umount -l /sys/kernel/debug; quiet noise --cpus 3 --duration 1 --threshold 1ms; echo "exit $?"
step nobody; setpriv --reuid 65534 --clear-groups quiet noise --cpus 3 --duration 1 --threshold 1ms; echo "exit $?"
"""


@once
def steps(machine: Machine) -> dict[str, str]:
    result = boot(machine, SCRIPT, timeout=1500)
    assert result.code == 0, result.output
    parts = re.split(r"^=== (\w+)\n", result.output, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(("signal", "code"), [("INT", 130), ("TERM", 143), ("HUP", 129)])
def test_a_signal_ends_it_with_one_line_and_nothing_is_left(machine: Machine, signal: str, code: int) -> None:
    said = steps(machine)[signal]
    assert f"quiet: error: ended by SIG{signal}" in said
    assert f"exit {code}\ninstances\n" in said


def test_the_next_start_removes_leftovers_of_a_kill(machine: Machine) -> None:
    assert "exit 137\ninstances quiet-noise." in steps(machine)["KILL"]
    assert "exit 0\ninstances\n" in steps(machine)["next"]


def test_a_full_trace_is_reported_and_later_gaps_have_no_cause(machine: Machine) -> None:
    said = steps(machine)["full"]
    assert re.search(r"CPU 0: the trace was full after [\d.]+ s; [\d,]+ events were lost", said)
    assert "unattributed: after the trace's end" in said
    assert "exit 0\ninstances\n" in said


def test_no_gap_makes_the_next_one_where_returning_to_the_loop_takes_long(machine: Machine) -> None:
    (found,) = json.loads(steps(machine)["default"])["cpus"].values()
    assert found["gaps"] > 0
    assert found["looking_pct"] < 10  # 41 when each gap made the next


def test_cpus_that_cannot_be_measured_are_refused_in_one_line(machine: Machine) -> None:
    said = steps(machine)
    assert said["offline"] == "quiet: error: --cpus 2: offline; online CPUs: 0-1,3\nexit 2\ninstances\n"
    assert said["absent"] == "quiet: error: --cpus 7: no such CPU; this host has 0-3\nexit 2\ninstances\n"


def test_all_cpus_that_are_online_can_be_measured(machine: Machine) -> None:
    said = steps(machine)["everything"]
    assert "all CPUs are measured, so this command and the rest of the system interrupt them too" in said
    assert all(f"CPU {cpu}: " in said for cpu in (0, 1, 3))
    assert "exit 0\ninstances\n" in said


@pytest.mark.parametrize("step", ["untraced", "nobody"])
def test_without_tracing_it_says_why_and_counts(machine: Machine, step: str) -> None:
    said = steps(machine)[step]
    assert "no kernel tracing, so causes are found by counting" in said
    assert "CPU 3" in said
    assert "exit 0" in said

"""Responses from the output of `quiet noise` and `cbench run`."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import time
from typing import Any

import pytest

from cbench.knobs import measure
from cbench.knobs.options import KnobOptions, share
from quiet import Clock, QuietError, UsageError, moment

CPUS = [
    {"lost_pct": 0.2, "max_ns": 9000, "interrupts": {"LOC": {"counted": 30}, "TLB": {"counted": 99}}, "causes": []},
    {
        "lost_pct": 0.4,
        "max_ns": 5000,
        "interrupts": {"LOC": {"counted": 10}},
        "causes": [{"knob": "irq"}, {"knob": None}, {"knob": "tasks"}, {"knob": "irq"}],
    },
]


@pytest.mark.parametrize(("response", "value"), [("lost", 0.3), ("gap", 9.0), ("interrupts", 10.0)])
def test_of_noise(response: str, value: float) -> None:
    assert measure.of_noise(CPUS, 2.0, response) == pytest.approx(value)


def test_of_times() -> None:
    times = [100.0, 104.0, 96.0, 100.0, 102.0, 98.0, 100.0, 100.0]
    assert measure.of_times(times, "median") == 100.0
    assert measure.of_times(times, "spread") == pytest.approx(3.0)
    assert 0 < measure.of_times(times, "floor") < 10


def test_the_noise_floor_is_smaller_with_more_runs_and_larger_with_more_noise() -> None:
    draw = random.Random(1)
    calm, noisy = ([draw.gauss(100, sd) for _ in range(100)] for sd in (1, 5))
    assert measure.floor(calm) < measure.floor(calm[:20])
    assert measure.floor(calm) < measure.floor(noisy)
    with pytest.raises(QuietError, match="too few: raise --trials to at least 6"):
        measure.floor(calm[:4])


def answers(monkeypatch: pytest.MonkeyPatch, texts: list[str], code: int = 0, errors: str = "") -> list[list[str]]:
    executed: list[list[str]] = []

    def execute(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        executed.append(command)
        return subprocess.CompletedProcess(command, code, texts.pop(0) if texts else "", errors)

    monkeypatch.setattr(subprocess, "run", execute)
    return executed


@pytest.mark.slow
@pytest.mark.parametrize("response", ["median", "spread", "floor"])
def test_workloads_are_measured_in_time_whatever_counters_there_are(response: str) -> None:
    options = KnobOptions(response=response, words=("hash",), trials=8)
    (cpu, *_) = os.sched_getaffinity(0)
    found = json.loads(measure._output(measure.command_line(options, frozenset({cpu}))))
    assert found["counter"]["unit"].endswith("ticks")
    assert len(found["results"][0]["trials"]) == 8


def test_the_median_of_a_workload_is_in_nanoseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = moment()

    def output(_: list[str]) -> str:
        time.sleep(0.2)
        return json.dumps({"results": [{"trials": [round(Clock(begun, moment()).ticks(5e6))] * 4}]})

    monkeypatch.setattr(measure, "_output", output)
    found = measure.respond(KnobOptions(response="median", words=("hash",)), frozenset({0}))
    assert found == pytest.approx(5e6, rel=0.01)


def report(lost: float) -> str:
    return json.dumps({"duration_s": 2.0, "cpus": {"2": {**CPUS[0], "lost_pct": lost}}})


def test_the_noise_of_an_application_is_the_median_of_three_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    executed = answers(monkeypatch, [report(1.0), report(50.0), report(2.0)])
    assert measure.respond(KnobOptions(duration=6), frozenset({2, 3})) == 2.0
    assert len(executed) == 3
    assert executed[0][3:] == ["quiet", "noise", "--cpus", "2-3", "--duration", "2", "--no-trace", "--json"]


def test_a_command_is_measured_on_the_first_isolated_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    executed = answers(monkeypatch, [json.dumps({"results": [{"trials": [5, 7, 6]}]})])
    options = KnobOptions(response="median", words=("./a", "-x"), is_command=True, trials=9)
    assert measure.respond(options, frozenset({2, 3})) == 6.0
    assert executed[0][3:] == ["cbench", "run", "--cpu", "2", "--trials", "9", "--json", "--", "./a", "-x"]


def test_a_response_that_cannot_be_measured_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, [], 2, "cbench: ./a: no such program\n")
    options = KnobOptions(response="median", words=("./a",), is_command=True)
    with pytest.raises(QuietError, match=r"^\./a: no such program$"):
        measure.respond(options, frozenset({2}))


def test_suspects_are_the_knobs_that_remedies_name_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, [json.dumps({"cpus": {"2": CPUS[0], "3": CPUS[1]}})])
    assert measure.suspects(frozenset({2, 3}), 6.0) == ["irq", "tasks"]
    answers(monkeypatch, ["not JSON"])
    assert measure.suspects(frozenset({2}), 6.0) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"response": "speed"}, "choose one of lost, gap"),
        ({"response": "median"}, "give a workload, or a command"),
        ({"words": ("hash",)}, "omit the command"),
        ({"only": ("irqs",)}, "--only irqs: unknown knob"),
        ({"applications": 3}, "at least 15"),
        ({"duration": 0.0}, "from 0.1"),
        ({"budget": 0.0}, "above 0"),
        ({"budget": math.nan}, "--budget nan: must be a finite number"),
        ({"budget": math.inf}, "--budget inf: must be a finite number"),
        ({"response": "median", "words": ("hash", "sieve")}, "sieve: only one workload can be measured"),
    ],
)
def test_impossible_options_are_refused_in_one_line(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        KnobOptions(**wrong)


def test_a_share_is_a_percentage_or_a_number() -> None:
    assert share("5%") == share("0.05") == 0.05
    with pytest.raises(UsageError, match="--within much"):
        share("much")

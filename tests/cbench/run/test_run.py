"""`cbench run` and `cbench list` as a user starts them, on this host."""

from __future__ import annotations

import json
import os
from statistics import median

import pytest

from cbench.workloads import registry
from quiet.errors import QuietError
from tests.cbench.running import cbench, measured

ALLOWED = sorted(os.sched_getaffinity(0))
ALL = [workload.name for workload in registry.WORKLOADS]
CONTRACT = {
    "workload", "params", "cpu", "trials", "floor", "mode", "at_floor", "range", "p90", "p99", "max", "warmup",
    "polluted", "verdict",
}  # fmt: skip


@pytest.mark.slow
def test_every_workload_returns_what_python_computes() -> None:
    made = measured(*ALL, trials=3)
    assert [result["workload"] for result in made["results"]] == ALL
    for result in made["results"]:
        workload = registry.find(result["workload"])
        assert result["output"] == registry.expected_output(workload, result["params"])
        assert len(result["trials"]) == 3


@pytest.mark.slow
def test_json_is_one_object_of_the_promised_shape_and_nothing_else() -> None:
    done = cbench("run", "hash", "--param", "n=20000", "--trials", "60", "--json")
    assert done.returncode == 0
    made = json.loads(done.stdout)
    assert made.keys() >= {"counter", "host", "results"}
    assert {"name", "unit", "why"} <= made["counter"].keys()
    assert {"kernel", "cpu", "virtual", "isolated_cpus", "missing"} <= made["host"].keys()
    (result,) = made["results"]
    assert result.keys() >= CONTRACT
    assert result["params"] == {"n": 20000}
    assert 20 <= result["warmup"] <= 200
    for line in made["host"]["missing"]:
        assert f"cbench: {line}" in done.stderr


def test_the_numbers_of_a_result_fit_together() -> None:
    (result,) = measured("hash", trials=60, params=["n=20000"])["results"]
    trials = result["trials"]
    assert result["range"] == max(trials) - min(trials)
    assert result["mode"] + result["max"] == max(trials)
    assert result["at_floor"] == (trials.count(result["floor"]) if result["floor"] is not None else 0)
    assert result["clean"] == 60 - len(result["polluted"])
    assert all(0 <= polluted["trial"] < 60 and polluted["cause"] for polluted in result["polluted"])


@pytest.mark.slow
def test_twice_the_rounds_take_about_twice_the_time() -> None:
    # Of each pair the ratio: a core may change its speed at any time, and as often to a lower as to a higher one.
    ratios = []
    for _ in range(9):
        once, twice = (
            min(measured("hash", trials=5, params=[f"n={n}"])["results"][0]["trials"]) for n in (5_000, 10_000)
        )
        ratios.append(twice / once)
    assert 1.7 < median(ratios) < 2.3


@pytest.mark.slow
@pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two CPUs")
def test_two_cpus_are_measured_in_turn_however_they_are_listed() -> None:
    pair = [ALLOWED[0], ALLOWED[-1]]
    for cpus in ([f"{pair[0]},{pair[1]}"], [str(cpu) for cpu in pair]):
        made = measured("sieve", cpus=cpus)
        assert [result["cpu"] for result in made["results"]] == pair
        assert all(isinstance(result["isolated"], bool) for result in made["results"])


@pytest.mark.slow
@pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two CPUs")
def test_the_table_shows_two_cpus_side_by_side_with_their_interruptions() -> None:
    pair = ALLOWED[0], ALLOWED[-1]
    shown = ("--verbose", "--cpu", f"{pair[0]},{pair[1]}")
    done = cbench("run", "sieve", "--quick", "--trials", "5", "--no-trace", *shown)
    assert any(f"CPU {pair[0]} (" in line and f"CPU {pair[1]} (" in line for line in done.stdout.splitlines())
    for row in ("mode", "90th percentile", "floor", "range", "polluted trials", "context switch", "interrupt"):
        assert row in done.stdout
    assert "an empty region takes" in done.stdout
    assert all(line.startswith("cbench: ") for line in done.stderr.splitlines())


@pytest.mark.slow
def test_a_fixed_warm_up_is_respected() -> None:
    for warmup in (0, 7, 23):
        assert measured("hash", params=["n=1000"], warmup=str(warmup))["results"][0]["warmup"] == warmup


def test_a_workload_named_twice_runs_once() -> None:
    assert len(measured("hash", "hash")["results"]) == 1


def test_addresses_are_fixed_for_the_measuring_process_alone() -> None:
    with open("/proc/self/personality") as personality:
        before = personality.read()
        assert measured("memory")["results"][0]["addresses"] == "fixed"
        personality.seek(0)
        assert personality.read() == before


def test_the_command_itself_keeps_its_cpus() -> None:
    measured("hash", cpus=[str(ALLOWED[-1])])
    assert sorted(os.sched_getaffinity(0)) == ALLOWED


def test_wrong_results_of_a_workload_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cbench.measure.measurement.registry.expected_output", lambda *_: 1)
    with pytest.raises(QuietError, match="instead of 1: broken build or broken hardware"):
        measured("hash")


@pytest.mark.slow
def test_list_names_every_workload_parameter_and_counter() -> None:
    listed = json.loads(cbench("list", "--json").stdout)
    assert [workload["name"] for workload in listed["workloads"]][:-1] == ALL
    assert listed["workloads"][2]["params"]["size"]["default"] == 512 * 1024
    assert all(workload["stresses"] for workload in listed["workloads"])
    assert any(counter["available"] for counter in listed["counters"])
    assert all(counter["why"] for counter in listed["counters"])
    table = cbench("list").stdout
    for name in (*ALL, *(counter["name"] for counter in listed["counters"])):
        assert name in table

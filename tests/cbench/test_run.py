"""`cbench run` and `cbench list` as a user starts them, on this host as it is."""

from __future__ import annotations

import json
import os

import pytest

from cbench import workloads
from tests.cbench.running import cbench, report

ALLOWED = sorted(os.sched_getaffinity(0))
ALL = [workload.name for workload in workloads.WORKLOADS]
CONTRACT = {
    "workload", "params", "cpu", "trials", "floor", "mode", "at_floor", "range", "p90", "p99", "max", "warmup",
    "polluted", "verdict",
}  # fmt: skip


def test_every_workload_returns_what_python_computes() -> None:
    made = report("run", *ALL, "--quick", "--trials", "20")
    assert [result["workload"] for result in made["results"]] == ALL
    for result in made["results"]:
        workload = workloads.find(result["workload"])
        assert result["output"] == workloads.expected_output(workload, result["params"])
        assert len(result["trials"]) == 20


def test_a_result_has_the_promised_shape_and_its_numbers_fit_together() -> None:
    made = report("run", "hash", "--param", "n=20000", "--trials", "60")
    assert {"name", "unit", "why"} <= made["counter"].keys()
    assert {"kernel", "cpu", "virtual", "isolated_cpus", "missing"} <= made["host"].keys()
    (result,) = made["results"]
    trials = result["trials"]
    assert result.keys() >= CONTRACT
    assert result["params"] == {"n": 20000}
    assert result["range"] == max(trials) - min(trials)
    assert result["mode"] + result["max"] == max(trials)
    assert result["at_floor"] == (trials.count(result["floor"]) if result["floor"] is not None else 0)
    assert 20 <= result["warmup"] <= 200
    assert result["clean"] == 60 - len(result["polluted"])
    assert all(0 <= polluted["trial"] < 60 and polluted["cause"] for polluted in result["polluted"])


def test_twice_the_rounds_take_about_twice_the_time() -> None:
    short, long = (
        min(report("run", "hash", "--param", f"n={n}", "--trials", "50")["results"][0]["trials"])
        for n in (20_000, 40_000)
    )
    assert 1.7 < long / short < 2.3


@pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two CPUs")
def test_two_cpus_stand_side_by_side() -> None:
    pair = ALLOWED[0], ALLOWED[-1]
    listed = report("run", "sieve", "--quick", "--trials", "5", "--cpu", f"{pair[0]},{pair[1]}")
    repeated = report("run", "sieve", "--quick", "--trials", "5", "--cpu", str(pair[0]), "--cpu", str(pair[1]))
    for made in (listed, repeated):
        assert [result["cpu"] for result in made["results"]] == list(pair)
        assert all(isinstance(result["isolated"], bool) for result in made["results"])
    table = cbench("run", "sieve", "--quick", "--trials", "5", "--cpu", f"{pair[0]},{pair[1]}").stdout
    assert any(f"CPU {pair[0]} (" in line and f"CPU {pair[1]} (" in line for line in table.splitlines())
    for row in ("mode", "90th percentile", "floor", "range", "polluted trials", "context switch", "interrupt"):
        assert row in table


def test_the_table_names_counter_and_verdict_and_leaves_hints_to_stderr() -> None:
    done = cbench("run", "hash", "--quick", "--trials", "5")
    assert done.returncode == 0
    assert "an empty region takes" in done.stdout
    assert "trials" in done.stdout
    assert all(line.startswith("cbench: ") for line in done.stderr.splitlines())


def test_a_fixed_warm_up_is_kept_to() -> None:
    made = report("run", "hash", "--param", "n=1000", "--trials", "3", "--warmup", "7")
    assert made["results"][0]["warmup"] == 7
    assert report("run", "hash", "--param", "n=1000", "--trials", "3", "--warmup", "0")["results"][0]["warmup"] == 0


def test_a_workload_named_twice_runs_once() -> None:
    assert len(report("run", "hash", "hash", "--param", "n=1000", "--trials", "2")["results"]) == 1


def test_what_a_measurement_did_without_is_listed_both_ways() -> None:
    made = report("run", "hash", "--param", "n=1000", "--trials", "2")
    hints = cbench("run", "hash", "--param", "n=1000", "--trials", "2").stderr
    for line in made["host"]["missing"]:
        assert f"cbench: {line}" in hints


def test_addresses_are_the_same_in_every_process() -> None:
    assert all(
        r["addresses"] == "fixed" for r in report("run", "hash", "memory", "--quick", "--trials", "2")["results"]
    )


def test_list_names_every_workload_parameter_and_counter() -> None:
    listed = json.loads(cbench("list", "--json").stdout)
    assert [workload["name"] for workload in listed["workloads"]][:3] == ALL
    assert listed["workloads"][2]["params"]["size"]["default"] == 512 * 1024
    assert all(workload["stresses"] for workload in listed["workloads"])
    assert any(counter["available"] for counter in listed["counters"])
    assert all(counter["why"] for counter in listed["counters"])
    table = cbench("list").stdout
    for name in (*ALL, *(counter["name"] for counter in listed["counters"])):
        assert name in table

"""`cbench interfere`: the loads run where and while they should, never longer; the figures follow from the trials."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from cbench.interfere import load_generator, measure, run, stats
from cbench.interfere.result import (
    LoadedCondition,
    MeasuredCondition,
    WorkloadInterference,
    condition_result,
    verdict,
)
from cbench.machine.topology import CACHE, NODE, SIBLING, Place
from cbench.model import Counter, Result, Session, Settling, Trial
from cbench.workloads import registry
from quiet.errors import QuietError, UsageError
from tests.cbench.running import CBENCH, alive, cbench, comes, error_line

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("interfere")]  # one measurement is looked at by many

CPUS = sorted(os.sched_getaffinity(0))
FIGURES = (2, 100, True, 100.0, 120, 0.0, None, ((100, 100), (100, 120)))
RANDOM = """
#include <stdint.h>
static uint64_t state = 1;
uint64_t run(void *unused, uint64_t n) { (void)unused; return state = state * 6364136223846793005u + n; }
"""
QUICK = ("interfere", "hash", "--param", "n=2000", "--trials", "8", "--rounds", "2")


def loads() -> list[psutil.Process]:
    """The running load processes of this user's commands."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "cbench.interfere.load_generator" in (process.info["cmdline"] or ()):
            found.append(process)
    return found


def children(pid: int) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended just now
            found += [child] if "cbench.interfere.load_generator" in child.cmdline() else []
    return found


def gone(process: psutil.Process) -> bool:
    return comes(lambda: not alive(process.pid))


# The load


def spec(**changes: Any) -> load_generator.Spec:
    given: dict[str, Any] = {"workload": "hash", "cpu": CPUS[-1], "params": {"n": 1}}
    return load_generator.Spec(**{**given, **changes})


def test_a_load_runs_on_its_cpu_until_it_is_stopped_and_is_then_gone() -> None:
    before = psutil.Process().children()
    with load_generator.running(spec(), measured=-1) as figures:
        process = started(before)
        assert process.cpu_affinity() == [CPUS[-1]]
        assert figures.calls is None
        used = process.cpu_times().user
        time.sleep(0.5)
        assert comes(lambda: process.cpu_times().user > used)
    assert gone(process)
    assert figures.calls
    assert figures.seconds is not None
    assert 0.4 < figures.seconds < 30
    assert 0 < (figures.busy_pct or 0) <= 101


def test_a_load_with_a_buffer_of_its_own_runs_too() -> None:
    with load_generator.running(spec(workload="memory", params={"n": 1, "size": 1 << 20}), measured=-1) as figures:
        time.sleep(0.2)
    assert figures.calls


def test_a_call_of_a_load_is_short_enough_to_be_stopped_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round takes a microsecond; the second call is interrupted for as long as a thousand."""
    clock, calls = [0.0], []

    def run(n: int) -> int:
        calls.append(n)
        clock[0] += n * 1e-6 + (1e-3 if len(calls) == 2 else 0)
        return 0

    monkeypatch.setattr(load_generator.time, "monotonic", lambda: clock[0])
    assert load_generator.rounds(run) == pytest.approx(1000, abs=1)
    assert max(calls) <= 1024


def test_a_load_on_the_measured_cpu_is_refused() -> None:
    with (
        pytest.raises(UsageError, match="would run on the measured CPU"),
        load_generator.running(spec(), CPUS[-1]),
    ):
        raise AssertionError


def test_a_load_on_a_missing_cpu_is_one_clear_error_and_leaves_no_process() -> None:
    before = psutil.Process().children()
    words = "the load hash on CPU 4000: CPU 4000 is not online"
    with pytest.raises(QuietError, match=words), load_generator.running(spec(cpu=4000), 0):
        raise AssertionError
    assert psutil.Process().children() == before


def started(before: list[psutil.Process]) -> psutil.Process:
    (process,) = [child for child in psutil.Process().children() if child not in before]
    return process


def test_an_error_inside_ends_the_load() -> None:
    before, found = psutil.Process().children(), []
    with contextlib.suppress(ZeroDivisionError), load_generator.running(spec(), -1):
        found.append(started(before))
        raise ZeroDivisionError
    assert gone(found[0])


def test_a_load_killed_during_the_trials_is_noticed() -> None:
    before = psutil.Process().children()
    with pytest.raises(QuietError, match="ended early"), load_generator.running(spec(), -1):
        started(before).kill()


# The plan


def test_every_condition_is_visited_once_per_round_and_no_load_first_and_last() -> None:
    for seed in range(20):
        order = measure.schedule(4, 3, seed)
        assert order[0] == order[-1] == 0
        assert all(sorted(order[at : at + 4]) == [0, 1, 2, 3] for at in (1, 5, 9))
    assert len({measure.schedule(4, 3, seed) for seed in range(20)}) > 10
    assert measure.schedule(4, 3, 7) == measure.schedule(4, 3, 7)


def test_loads_are_placed_only_where_a_cpu_exists() -> None:
    places = [Place(SIBLING, None, "no SMT sibling is online"), Place(CACHE, 5), Place(NODE, 9)]
    found = measure.conditions(places, [spec(), spec(workload="memory")])
    assert [c.name for c in found] == [
        "no load",
        "hash on a core with the same cache",
        "memory on a core with the same cache",
        "hash on another node",
        "memory on another node",
    ]
    assert [c.spec.cpu for c in found if c.spec] == [5, 5, 9, 9]


def test_an_unknown_load_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown workload 'nothing-like-it': use .*hash"):
        run.specs(["nothing-like-it"], 4096)


def test_a_load_s_buffer_is_larger_than_the_cache_and_far_smaller_than_free_memory() -> None:
    assert run.buffer_size([], 1 << 40) == run.LEAST_BUFFER
    assert run.buffer_size([], 8 << 20) == 1 << 20


# The figures


def result(values: list[int]) -> Result:
    """The measurement of one visit, as far as the report uses it."""
    counter = Counter("tsc", "TSC ticks", True, "a clock", quantum=1)
    measured = Session(counter, tuple(Trial(value, 7) for value in values), Settling(), "", "", "", "", None)
    return Result(registry.find("hash"), {"n": 1}, 0, False, (measured,))


def visits(base: int, spread: int, count: int = 5, seed: int = 1) -> list[list[int]]:
    dice = random.Random(seed)
    return [[base + dice.randrange(spread) for _ in range(40)] for _ in range(count)]


def test_a_load_without_an_effect_is_not_called_disturbing() -> None:
    false = 0
    for seed in range(8):
        unloaded, loaded = visits(1000, 20, 7, seed), visits(1000, 20, 5, seed + 100)
        found = stats.difference(loaded, unloaded, seed)
        false += stats.disturbs(found, stats.baseline(unloaded))
    assert false == 0


def test_a_slowdown_is_found_with_an_interval_around_the_true_value() -> None:
    unloaded, loaded = visits(1000, 20, 7), visits(1100, 20, 5, 2)
    found = stats.difference(loaded, unloaded, 3)
    assert stats.disturbs(found, stats.baseline(unloaded))
    assert found.low_pct <= found.median_pct <= found.high_pct
    assert found.low_pct < 100 * 100 / 1009.5 < found.high_pct
    assert found.floor_pct == pytest.approx(10, abs=0.2)


def test_the_interval_is_the_seed_s() -> None:
    unloaded, loaded = visits(1000, 300), visits(1000, 300, seed=2)
    once, again, other = (stats.difference(loaded, unloaded, seed) for seed in (1, 1, 2))
    assert once == again
    assert once != other


def test_drift_of_the_unloaded_visits_widens_the_range_of_no_effect() -> None:
    drifting = [[1000 + 50 * number] * 10 for number in range(5)]
    base = stats.baseline(drifting)
    assert base.drift_pct == pytest.approx(20)
    assert base.noise_pct == pytest.approx(100 * 100 / 1100)
    slower = [[1150] * 10] * 5
    assert not stats.disturbs(stats.difference(slower, drifting, 1), base)


def test_the_verdict_names_the_worst_first_and_the_places_that_the_host_lacks() -> None:
    def row(kind: str, pct: float, disturbs: bool) -> LoadedCondition:
        where = (f"{kind} on a core with the same cache", CACHE, kind, 1, None)
        return LoadedCondition(*where, *FIGURES, pct, pct, pct - 1, pct + 1, disturbs, None)

    unloaded = MeasuredCondition("no load", None, None, None, None, *FIGURES)
    rows = (unloaded, row("hash", 5, True), row("memory", 30, True), row("sieve", 0, False))
    result = WorkloadInterference("memory", {}, -0.1, 0.5, 1, rows)
    places = [Place(SIBLING, None, "no SMT sibling is online"), Place(CACHE, 1)]
    assert verdict(result, places, 0) == (
        "memory on CPU 0: disturbed by memory on a core with the same cache (CPU 1): median +30.00 % [+29.00, +31.00], "
        "floor +30.00 %, by hash on a core with the same cache (CPU 1): median +5.00 % [+4.00, +6.00], floor +5.00 %; "
        "not measurably by sieve on a core with the same cache (CPU 1); "
        "unloaded visits differ by up to 0.50 % (drift -0.10 %); "
        "not measured: a sibling thread (no SMT sibling is online)"
    )


@pytest.mark.parametrize(
    ("unloaded", "loaded", "words"),
    [
        ([[1000], [1002]] * 3, [[1001], [999]] * 3, "one trial per visit is too few: increase --trials"),
        (
            [[1000] * 9, [1000] * 9, [1500] * 9, [1000] * 9],
            [[1001] * 9] * 5,
            "unloaded visits differ by up to 50.00 %, which would hide an effect",
        ),
        ([[1000] * 9] * 7, [[1001] * 9, [999] * 9], ""),
    ],
)
def test_an_effect_that_could_not_have_been_seen_is_not_denied(
    unloaded: list[list[int]], loaded: list[list[int]], words: str
) -> None:
    base = stats.baseline(unloaded)
    visited = [[result(values)] for values in loaded]
    condition = measure.Condition(Place(CACHE, 1), spec(cpu=1), "", visited, [load_generator.Figures() for _ in loaded])
    row = condition_result(condition, 0, unloaded, base, 1)
    assert isinstance(row, LoadedCondition)
    words_of = verdict(WorkloadInterference("hash", {}, 0.0, base.noise_pct, 1, (row,)), [], 0)
    where = "hash on a core with the same cache (CPU 1)"
    assert (f"cannot tell whether disturbed by {where}: {words}" in words_of) == bool(words)
    assert (f"not measurably disturbed by {where}" in words_of) == (not words)
    assert row.disturbs is (None if words else False)


# The command


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    done = cbench(*QUICK, "--load", "hash", "--load", "sieve", "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_unloaded_condition_has_two_visits_more_than_the_others(made: dict[str, Any]) -> None:
    rows = made["results"][0]["conditions"]
    assert [row["visits"] for row in rows if not row["reason"]] == [4, *[2] * (len(rows) - 1)]
    assert all(len(visit) == 4 for row in rows for visit in row["trials"])
    assert made["order"][0] == made["order"][-1] == "no load"


def test_every_place_has_a_cpu_or_a_reason_and_every_load_ran_there(made: dict[str, Any]) -> None:
    assert len(made["places"]) == 4
    assert all((place["cpu"] is None) == bool(place["reason"]) for place in made["places"])
    there = [place for place in made["places"] if place["cpu"] is not None]
    loaded = [row for row in made["results"][0]["conditions"] if row["load"]]
    assert len(loaded) == 2 * len(there)
    assert all(row["load_busy_pct"] > 0 for row in loaded)
    assert all(row["load_cpu"] != made["cpu"] for row in loaded)


def test_results_that_differ_between_trials_are_called_non_deterministic(tmp_path: Path) -> None:
    source = tmp_path / "random.c"
    source.write_text(RANDOM)
    done = cbench("interfere", f"{source}:run", *("--trials", "8", "--rounds", "2", "--load", "hash", "--json"))
    assert done.returncode == 1
    assert re.search(r"cbench: .*: non-deterministic: it returned \d+ different results in \d+ trials", done.stderr)
    (found,) = json.loads(done.stdout)["results"]
    assert found["outputs"] > 1
    assert "non-deterministic" in found["verdict"]


def test_no_load_is_left_after_the_command(made: dict[str, Any]) -> None:
    assert [p for p in loads() if p.ppid() in (1, os.getpid())] == []


def test_the_table_has_a_row_for_each_place_that_the_host_lacks(made: dict[str, Any]) -> None:
    done = cbench(*QUICK)
    assert done.returncode == 0
    flat = " ".join(done.stdout.replace("│", " ").split())
    for place in made["places"]:
        if place["cpu"] is None:
            assert f"({place['reason']})" in flat
            assert f"on {place['title']}:" in flat


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_however_the_command_ends_its_load_ends_with_it(sent: signal.Signals, code: int) -> None:
    command = subprocess.Popen(
        [*CBENCH, "interfere", "hash", "--param", "n=50000", "--trials", "4000", "--rounds", "3", "--load", "hash"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 120
        found: list[psutil.Process] = []
        while not found and command.poll() is None and time.monotonic() < deadline:
            found = children(command.pid)
            time.sleep(0.02)
        if len(CPUS) < 2:  # nowhere to put a load
            assert not found
            return
        assert found, "no load appeared"
        command.send_signal(sent)
        out, err = command.communicate(timeout=120)
    finally:
        command.kill()
    assert command.returncode == code
    assert out == ""
    assert "Traceback" not in err
    assert all(gone(process) for process in found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "unknown workload 'nonsense'"),
        (["hash", "--load", "nonsense"], "unknown workload 'nonsense'"),
        (["hash", "--rounds", "0"], "--rounds 0"),
        (["hash", "--trials", "0"], "--trials 0"),
        (["hash", "--param", "size=3"], "--param size: unknown"),
    ],
)
def test_wrong_options_are_reported_in_one_line(arguments: list[str], words: str) -> None:
    done = cbench("interfere", *arguments)
    assert done.returncode == 2
    assert words in error_line(done)

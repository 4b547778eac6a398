"""Experiments that run for real: levels are set around each trial, confirmed and restored; every trial is stored."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import pytest

from cbench.machine.counters import ticks_name
from cbench.screen.data.load_store import read
from cbench.store.database import study_kind
from quiet.errors import UsageError
from tests.cbench.screen.running import experiment, factor, screen, written

ENV = factor("e", {"0": "environment = { V = '10' }", "1": "environment = { V = '20' }"})
TOUCH = factor(
    "c",
    {
        "off": "found = true",
        "on": "command = 'touch set; echo on >>steps'\nrestore = 'rm set; echo off >>steps'\n"
        "check = 'test -e set && echo there'",
    },
)
COMPILER = pytest.mark.skipif(os.system("cc --version >/dev/null 2>&1") != 0, reason="no C compiler")


def facts(path: Path) -> list[dict[str, Any]]:
    """Of each trial, in the order of time."""
    with sqlite3.connect(path) as store:
        return [json.loads(text) for (text,) in store.execute("SELECT facts FROM study_trial ORDER BY run, position")]


def outputs(path: Path) -> list[str]:
    with sqlite3.connect(path) as store:
        found = store.execute("SELECT output FROM study_trial ORDER BY run, position").fetchall()
    return [output.decode() for (output,) in found]


def run(folder: Path, text: str) -> Path:
    written(folder, text)
    done = screen("run", "e.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder / "e.db"


def test_each_iteration_runs_every_treatment_once_in_its_own_order(tmp_path: Path) -> None:
    factors = [factor(n, {"0": f"environment = {{ {n} = '0' }}", "1": f"environment = {{ {n} = '1' }}"}) for n in "abc"]
    data = run(tmp_path, experiment(*factors, command="echo $a$b$c", head="iterations = 5\nseed = 3"))
    found = read(data)
    orders = [[t.treatment for t in found.trials if t.iteration == number] for number in range(5)]
    assert all(sorted(order) == list(range(8)) for order in orders)
    assert len({tuple(order) for order in orders}) == 5
    names = [found.treatments[t.treatment] for t in found.trials]
    assert [f"{int(t.values['y']):03}" for t in found.trials] == ["".join(n.levels.values()) for n in names]
    assert [t.position for t in found.trials] == list(range(8)) * 5


def test_the_same_seed_gives_the_same_orders(tmp_path: Path) -> None:
    text = experiment(ENV, factor("b", {"0": "aslr = false", "1": "aslr = true"}), head="iterations = 4\nseed = 9")
    orders = []
    for name in "xy":
        (tmp_path / name).mkdir()
        orders.append([trial.treatment for trial in read(run(tmp_path / name, text)).trials])
    assert orders[0] == orders[1]


def test_environment_cpus_and_addresses_are_those_of_the_level_and_are_stored(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    cpus = factor("cpu", {"one": f"cpus = '{cpu}'", "any": "found = true"})
    aslr = factor("aslr", {"off": "aslr = false", "on": "aslr = true"})
    command = "grep Cpus_allowed_list /proc/self/status; cat /proc/self/personality; echo $V"
    found = read(data := run(tmp_path, experiment(ENV, cpus, aslr, command=command)))
    every = sorted(os.sched_getaffinity(0))
    for trial, output, fact in zip(found.trials, outputs(data), facts(data), strict=True):
        levels = found.treatments[trial.treatment].levels
        allowed, personality, value = output.splitlines()
        assert (allowed.split()[1] == str(cpu)) is (levels["cpu"] == "one" or len(every) == 1)
        assert bool(int(personality, 16) & 0x40000) is (levels["aslr"] == "off")
        assert value == {"0": "10", "1": "20"}[levels["e"]]
        confirmed = fact["confirmed"]
        assert confirmed["aslr"] == {"off": "addresses fixed", "on": "addresses random"}[levels["aslr"]]
        assert confirmed.get("cpu") == {"one": f"CPU {cpu}", "any": None}[levels["cpu"]]
        assert confirmed["e"] == f"V={value}"


def test_a_command_sets_a_level_before_each_trial_and_another_restores_it_afterwards(tmp_path: Path) -> None:
    data = run(tmp_path, experiment(TOUCH, command="test -e set && echo 1 || echo 0", head="iterations = 3"))
    found = read(data)
    assert Counter((found.treatments[t.treatment].levels["c"], t.values["y"]) for t in found.trials) == {
        ("on", 1.0): 3,
        ("off", 0.0): 3,
    }
    assert (tmp_path / "steps").read_text() == "on\noff\n" * 3
    assert not (tmp_path / "set").exists()
    assert [each.get("confirmed") for each in facts(data)].count({"c": "there"}) == 3
    assert not (tmp_path / "e.db.set").exists()


@pytest.mark.slow
@COMPILER
def test_each_combination_of_levels_is_built_once_and_its_trials_run_that_build(tmp_path: Path) -> None:
    opt = factor("opt", {"O0": "flags = '-DOPT=100'", "O2": "flags = '-DOPT=200'"})
    more = factor("more", {"no": "flags = ''", "yes": "flags = '-DMORE=7'\nbuild = 'echo more >>built'"})
    (tmp_path / "p.c").write_text(
        '#include <stdio.h>\n#ifndef MORE\n#define MORE 0\n#endif\nint main(void) { printf("%d\\n", OPT + MORE); }\n'
    )
    head = "iterations = 2\nbuild = 'echo once >>built; cc $CBENCH_FLAGS -o \"$CBENCH_BUILD/p\" p.c'"
    data = run(tmp_path, experiment(opt, more, command='"$CBENCH_BUILD/p"', head=head))
    found = read(data)
    values = {(t.treatment, t.values["y"]) for t in found.trials}
    assert values == {(0, 100.0), (1, 107.0), (2, 200.0), (3, 207.0)}
    assert Counter((tmp_path / "built").read_text().split()) == {"once": 4, "more": 2}
    assert len({each["build"] for each in facts(data)}) == 4


@pytest.mark.slow
@COMPILER
def test_workloads_of_cbench_have_levels_too_even_built_ones(tmp_path: Path) -> None:
    (tmp_path / "w.c").write_text(
        "#include <stdint.h>\n#include <stdlib.h>\n"
        "uint64_t spin(void *state, uint64_t n) {\n"
        '  const char *v = getenv("V");\n  uint64_t s = 0;\n  (void)state;\n'
        "  if (!v || v[0] != '2' || TIMES > 3) return 0;\n"
        "  for (volatile uint64_t i = 0; i < n * TIMES * TIMES; i++) s += i;\n  return s; }\n"
    )
    build = 'cc -O1 -shared -fPIC $CBENCH_FLAGS -o "$CBENCH_BUILD/w.so" w.c'
    head = f"iterations = 3\ncounter = '{ticks_name()}'\nbuild = '{build}'"
    times = factor("times", {"1": "flags = '-DTIMES=1'", "3": "flags = '-DTIMES=3'"})
    aslr = factor("aslr", {"off": "aslr = false", "on": "aslr = true"})
    text = (
        f"[screen]\n{head}\n{ENV}{times}{aslr}[[workload]]\nworkload = '$CBENCH_BUILD/w.so:spin'\n"
        "params = { n = 200000 }\n[[response]]\nname = 'ticks'\n"
    )
    found = read(run(tmp_path, text))
    ticks: dict[tuple[str, ...], float] = {}
    for trial in found.trials:  # the lowest of each, which other programs have interrupted least
        levels = tuple(found.treatments[trial.treatment].levels.values())
        ticks[levels] = min(trial.values["ticks"], ticks.get(levels, inf))
    assert len(found.trials) == 3 * len(ticks) == 24
    for aslr_level in ("off", "on"):
        assert ticks["1", "1", aslr_level] > 20 * ticks["0", "1", aslr_level]  # V is seen by the worker
        assert ticks["1", "3", aslr_level] > 1.5 * ticks["1", "1", aslr_level]


def test_several_workloads_are_run_with_every_treatment(tmp_path: Path) -> None:
    text = (
        f"[screen]\niterations = 2\n{ENV}[[workload]]\nname = 'p'\ncommand = 'echo $V'\n"
        "[[workload]]\nname = 'q'\ncommand = 'echo y=1$V'\n"
        "[[response]]\nname = 'x'\nworkloads = ['p']\n"
        "[[response]]\nname = 'y'\nread = 'regex:y=(.*)'\nworkloads = ['q']\n"
        "[[response]]\nname = 's'\nread = 'wall'\n"
    )
    found = read(run(tmp_path, text))
    assert [test.name for test in found.tests] == ["p e=0", "q e=0", "p e=1", "q e=1"]
    values = {(t.treatment, t.workload): t.values for t in found.trials}
    assert [values[0, "p"]["x"], values[1, "q"]["y"]] == [10.0, 120.0]
    assert sorted(values[0, "q"]) == ["s", "y"]
    assert found.units == {"x": "", "y": "", "s": "s"}


@pytest.mark.slow
def test_a_profiler_samples_the_trials_of_its_level_only(tmp_path: Path) -> None:
    from cbench.study.instruments import perf_record
    from cbench.study.instruments.instrument import Sampling

    if why := perf_record.obstacle(Sampling("fp")):
        pytest.skip(why)
    prf = factor(
        "prf", {"0": "profiler = 'none'", "1": "profiler = 'fp'", "2": "profiler = 'dwarf,event=cpu-clock,hz=1000'"}
    )
    command = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo 5"
    text = experiment(prf, command=command, head="iterations = 1", more="[[response]]\nname = 'n'\nread = 'samples:'\n")
    found = read(data := run(tmp_path, text))
    by_level = {found.treatments[t.treatment].levels["prf"]: t.values for t in found.trials}
    assert sorted(by_level["0"]) == ["y"]
    assert by_level["1"]["n"] > 0
    assert by_level["2"]["n"] > 0
    assert found.treatments[0].unobtainable == {"n": "nothing is sampled: no profiler runs"}
    assert read(data).warnings == ()


def test_a_hard_factor_is_set_once_per_batch_and_the_host_is_reset_between_batches(tmp_path: Path) -> None:
    hard = factor(
        "h",
        {
            "0": "command = 'echo 0 >level; echo set0 >>steps'\nrestore = 'rm level'\ncheck = 'cat level'",
            "1": "command = 'echo 1 >level; echo set1 >>steps'\nrestore = 'rm level'\ncheck = 'cat level'",
        },
        "hard = true",
    )
    more = (
        "[reset]\nkind = 'command'\ncommand = 'test ! -e level && echo reset$CBENCH_LEVEL_H >>steps'\n"
        "[[controlled]]\nname = 'where'\ncommand = 'pwd'\n[[controlled]]\nname = 'mode'\nvalue = 'single user'\n"
    )
    head = "iterations = 3\nbatches = 2\nsequence = ['1', '0', '0', '1']"
    found = read(run(tmp_path, experiment(hard, ENV, command="cat level; echo $V", head=head, more=more)))
    assert (tmp_path / "steps").read_text().split() == [
        f"{what}{level}" for level in "1001" for what in ("reset", "set")
    ]
    assert list(found.batches) == [{"h": each} for each in "1001"]
    assert Counter(t.batch for t in found.trials) == dict.fromkeys(range(4), 6)
    assert [t.iteration for t in found.trials[:6]] == [0, 0, 1, 1, 2, 2]
    assert all(found.treatments[t.treatment].levels["h"] == found.batches[t.batch]["h"] for t in found.trials)
    assert [each.confirmed for each in found.facts] == [{"h": each} for each in "1001"]
    assert found.facts[0].controlled == {"where": str(tmp_path), "mode": "single user"}
    assert len(found.facts[0].boot_ids) == 1


def test_a_store_that_holds_no_experiment_is_recognized(tmp_path: Path) -> None:
    data = run(tmp_path, experiment(ENV, command="echo $V"))
    assert study_kind(data) == "screen"
    done = screen("analyze", data, folder=tmp_path, group="order")
    assert done.returncode == 2
    assert "is a screening experiment, not a study of orders; use `cbench screen` with the same" in done.stderr
    assert screen("resume", data, folder=tmp_path, group="order").returncode == 2
    (tmp_path / "s.toml").write_text("[study]\nrepetitions = 1\n[[test]]\nname = 'a'\ncommand = 'echo 1'\n")
    assert screen("run", "s.toml", folder=tmp_path, group="order").returncode == 0
    assert study_kind(tmp_path / "s.db") != "screen"
    with pytest.raises(UsageError, match="is a study of orders, not a screening experiment; use `cbench order`"):
        read(tmp_path / "s.db")


@pytest.mark.slow
def test_the_export_has_a_row_for_each_trial_with_its_levels_and_responses(tmp_path: Path) -> None:
    data = run(tmp_path, experiment(ENV, command="echo $V", more="[[response]]\nname = 'z'\nread = 'wall'\n"))
    done = screen(data, "--format", "csv", folder=tmp_path, group="export")
    assert done.returncode == 0, done.stderr
    lines = [line.split(",") for line in done.stdout.splitlines()]
    assert ",".join(lines[0]) == (
        "e,workload,run,batch,iteration,position,treatment,questionable,y,z,failure,begun_ns,ended_ns"
    )
    assert sorted((row[0], row[8]) for row in lines[1:]) == [("0", "10.0")] * 2 + [("1", "20.0")] * 2
    arrow = pytest.importorskip("pyarrow.parquet")
    assert screen(data, "--format", "parquet", "-o", "e.parquet", folder=tmp_path, group="export").returncode == 0
    assert arrow.read_table(tmp_path / "e.parquet").column("y").to_pylist() == [float(row[8]) for row in lines[1:]]


def test_a_failed_trial_is_stored_with_its_reason_and_without_values(tmp_path: Path) -> None:
    found = read(run(tmp_path, experiment(ENV, command='test "$V" = 20 && echo 1')))
    assert [t.failure for t in found.trials if t.treatment == 0] == ["exited with 1"] * 2
    assert found.warnings == ("2 of 4 trials failed",)

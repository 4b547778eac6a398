"""Presets with the harnesses themselves: every test that one lists has a result, whatever its name, in each order."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cbench.study.store import StudyStore
from tests.cbench.study.running import order, rows
from tests.cbench.study.running import written as study_written

PYTEST = """
import pytest
ODD = ["a b", "x::y", "[z]", "$HOME", "'q'", '"', "é", "a/b", "-k", "", "a,b", "%s", "{tests}", "a\\\\b", "#", "*", " "]

class TestC:
    @pytest.mark.parametrize("name", ODD, ids=ODD)
    def test_odd(self, benchmark, name):
        benchmark.pedantic(len, args=(name,), rounds=2)

def test_plain(benchmark):
    benchmark.pedantic(len, args=("",), rounds=2)
"""
GOOGLE = """
#include <benchmark/benchmark.h>
static void work(benchmark::State &state) { for (auto _ : state) benchmark::DoNotOptimize(state.range(0)); }
BENCHMARK(work)->Arg(1)->Arg(10)->Arg(100);
BENCHMARK(work)->Arg(1)->Name("a b: (x|y) [z] $HOME 'q' {tests} \\\\ é * + ? ^");
BENCHMARK(work)->Arg(1)->Name("-k");
BENCHMARK_MAIN();
"""
GO = """
package odd
import "testing"
func BenchmarkA(b *testing.B) { for i := 0; i < b.N; i++ { _ = i } }
func BenchmarkAB(b *testing.B) { b.Run("x y/[z]", func(b *testing.B) { for i := 0; i < b.N; i++ { _ = i } }) }
func Benchmark_é(b *testing.B) { for i := 0; i < b.N; i++ { _ = i } }
"""
CATCH2 = """
TEST_CASE("plain", "[tag]") { BENCHMARK("one") { return 1; }; }
TEST_CASE("plain, and more", "[tag]") { BENCHMARK("one") { return 1; }; BENCHMARK("two") { return 2; }; }
TEST_CASE("[x] \\"q\\" 'p' $HOME {tests} \\\\ é *") { BENCHMARK("one") { return 1; }; }
TEST_CASE("~not") { BENCHMARK("one") { return 1; }; }
"""
CATCH2_HEADS = {
    "catch2-v2": ("catch2/catch.hpp", "#define CATCH_CONFIG_MAIN\n#define CATCH_CONFIG_ENABLE_BENCHMARKING\n", ()),
    "catch2": ("catch2/catch_all.hpp", "", ("-lCatch2Main", "-lCatch2")),
}


def ran(folder: Path, preset: str, program: list[str], tests: int) -> tuple[str, ...]:
    """Run each of two orders as a suite of this preset; returns the names of its tests, which all have results."""
    text = f"[study]\nrepetitions = 1\n[suite]\npreset = '{preset}'\nprogram = {program!r}\nisolated = 'both'\n"
    done = order("run", study_written(folder, text), folder=folder)
    assert done.returncode == 0, done.stderr
    with StudyStore.open(folder / "s.db") as store:
        names, runs = store.header().tests, store.runs()
    trials = rows(folder / "s.db")
    assert len(names) == tests
    assert [why for _, _, _, why, _ in trials if why] == []
    for each in runs:
        assert sorted(test for number, _, test, _, _ in trials if number == each.number) == list(range(tests))
    return names


def compiled(folder: Path, head: str, source: str, *libraries: str) -> str:
    """The program of this source. Skips where there is no compiler or library."""
    (folder / "suite.cc").write_text(source)
    compiler = shutil.which("g++")
    if (
        compiler is None
        or subprocess.run(
            [compiler, "-E", "-x", "c++", "-"], input=f"#include <{head}>", capture_output=True, text=True, check=False
        ).returncode
    ):
        pytest.skip(f"needs g++ and {head} (tests/lab/harness/needs.sh suites)")
    subprocess.run([compiler, "-O1", "suite.cc", "-o", "suite", *libraries], cwd=folder, check=True)
    return "./suite"


@pytest.mark.slow
def test_pytest_runs_ids_with_any_character_in_the_given_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pytest_benchmark")
    for name in [each for each in os.environ if each.startswith("PYTEST_XDIST")]:  # pytest-benchmark would not measure
        monkeypatch.delenv(name)
    (tmp_path / "test_a.py").write_text(PYTEST)
    names = ran(tmp_path, "pytest-benchmark", [sys.executable, "-m", "pytest"], 18)
    assert {"test_a.py::TestC::test_odd[x::y]", "test_a.py::TestC::test_odd[[z]]", "test_a.py::test_plain"} <= {*names}
    with StudyStore.open(tmp_path / "s.db") as store:
        orders = [each.order for each in store.runs()]
    trials = rows(tmp_path / "s.db")
    for number, planned in enumerate(orders):
        assert tuple(test for run, _, test, _, _ in trials if run == number) == planned


@pytest.mark.slow
def test_google_benchmark_selects_names_with_any_character(tmp_path: Path) -> None:
    program = compiled(tmp_path, "benchmark/benchmark.h", GOOGLE, "-lbenchmark", "-lpthread")
    names = ran(tmp_path, "google-benchmark", [program, "--benchmark_min_time=0.001"], 5)
    assert "work/10" in names


@pytest.mark.slow
def test_go_selects_benchmarks_whose_names_begin_alike(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs go (tests/lab/harness/needs.sh suites)")
    (tmp_path / "go.mod").write_text("module example.com/odd\n\ngo 1.19\n")
    (tmp_path / "odd_test.go").write_text(GO)
    env = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod"}
    subprocess.run([go, "test", "-c", "-o", "odd.test"], cwd=tmp_path, env=env, check=True)
    assert ran(tmp_path, "go", ["./odd.test", "-test.benchtime=10x"], 3) == ("BenchmarkA", "BenchmarkAB", "Benchmark_é")


@pytest.mark.slow
@pytest.mark.parametrize("preset", CATCH2_HEADS)
def test_catch2_runs_test_cases_with_any_name(preset: str, tmp_path: Path) -> None:
    head, defines, libraries = CATCH2_HEADS[preset]
    program = compiled(tmp_path, head, f"{defines}#include <{head}>\n{CATCH2}", *libraries)
    quick = ["--benchmark-samples", "2", "--benchmark-no-analysis", "--benchmark-warmup-time", "1"]
    names = ran(tmp_path, preset, [program, *quick], 4)
    assert "plain, and more" in names

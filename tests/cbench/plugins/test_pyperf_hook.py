"""The hook `quiet` of pyperf, in a real worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyperf
import pytest

from cbench.formats.registry import read
from cbench.plugins.own_process import OwnInterruptions
from cbench.plugins.pyperf_hook import QuietHook

BENCHMARK = """
import pyperf
import pytest
runner = pyperf.Runner(processes=2, values=2, warmups=1, loops=10)
runner.bench_func("sum", sum, range(100))
"""


@pytest.mark.slow
def test_each_run_has_its_interruptions_in_its_metadata(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(BENCHMARK)
    done = subprocess.run(
        [sys.executable, "bench.py", "--hook", "quiet", "-o", "out.json", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for each in pyperf.Benchmark.load(str(tmp_path / "out.json")).get_runs():
        metadata = each.get_metadata()
        assert metadata["quiet_preempted"] >= 0
        assert metadata["quiet_interrupted"]


def test_a_disturbed_run_is_not_clean_for_compare(tmp_path: Path) -> None:
    runs = [
        pyperf.Run([1.0 + number], metadata={"name": "b", "quiet_preempted": number % 2}, collect_metadata=False)
        for number in range(4)
    ]
    pyperf.Benchmark(runs).dump(str(tmp_path / "b.json"))
    (test,) = read(tmp_path / "b.json")
    assert test.processes == ((1.0,), (2.0,), (3.0,), (4.0,))
    assert test.clean == ((1.0,), (), (3.0,), ())


def test_the_interrupts_of_a_pinned_run_are_in_its_metadata_and_read_again(tmp_path: Path) -> None:
    hook = QuietHook()
    hook._all = OwnInterruptions(1, 0, 2_000, None, {"LOC (Local timer interrupts)": 3})
    metadata: dict[str, str | int] = {}
    hook.teardown(metadata)
    run = pyperf.Run([1.0], metadata={"name": "b", **metadata}, collect_metadata=False)
    pyperf.Benchmark([run]).dump(str(tmp_path / "b.json"))
    (test,) = read(tmp_path / "b.json")
    assert test.interruptions == {"preempted": 1, "waited_ns": 2_000, "interrupt LOC (Local timer interrupts)": 3}


def test_a_worker_without_a_timed_loop_has_nothing_to_report() -> None:
    metadata: dict[str, str | int] = {}
    QuietHook().teardown(metadata)
    assert metadata == {}

"""The interruptions on both sides of a comparison: from trials, and from the plugins of pytest and pyperf."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from cbench.compare.markdown import summary
from cbench.compare.result import compare
from cbench.compare.verdict import interrupted
from cbench.plugins.own_process import OwnInterruptions
from cbench.results import to_json
from cbench.store.store import Store
from tests.cbench.compare.suites import names, suite
from tests.cbench.running import cbench
from tests.cbench.store.storing import HOST, TICKS, facts, noisy, trials

SEEN = OwnInterruptions(2, 0, 1_500_000, 10, {"LOC (Local timer interrupts)": 3})


def kept(path: Path, processes: int = 5, causes: dict[int, str] | None = None, **more: object) -> Path:
    """A store of a test, with these facts about each process and these causes of its trials."""
    with Store.create(path, HOST, []) as store:
        for process, values in enumerate(noisy(1e6, processes, 3, seed=1)):
            series = store.begin({**facts(process, counter=TICKS), **more})
            store.add(series, trials(values, causes))
            store.finish(series, {})
    return path


def test_counts_of_the_pytest_plugin_are_shown_for_each_side(tmp_path: Path) -> None:
    old, new = kept(tmp_path / "a.db", interrupted=asdict(SEEN)), kept(tmp_path / "b.db")
    result = compare(old, new)
    line = (
        "interrupted in OLD: interrupt LOC (Local timer interrupts) 15, preempted 10, waited for a CPU for 7.5 ms, "
        "50 ms stolen by the host"
    )
    assert result.interrupted == (line,)
    assert compare(old, new, clean_only=True).interrupted == (line,)  # counts of whole tests mark no trial
    assert line in cbench("compare", str(old), str(new)).stdout
    assert f"I{line[1:]}" in summary(result).splitlines()
    (row,) = json.loads(json.dumps(to_json(result)))["comparisons"]
    assert row["a"]["interruptions"]["waited_ns"] == 7_500_000
    assert row["b"]["interruptions"] == {}


def test_causes_are_counted_per_trial_and_omitted_with_polluted_trials(tmp_path: Path) -> None:
    old, new = kept(tmp_path / "a.db", causes={1: "interrupt LOC"}), kept(tmp_path / "b.db")
    assert compare(old, new).interrupted == ("interrupted in OLD: interrupt LOC 5",)
    assert compare(old, new, clean_only=True).interrupted == ()
    third = kept(tmp_path / "c.db")
    assert compare(new, old, third).interrupted == (f"interrupted in NEW ({old}): interrupt LOC 5",)


def test_the_metadata_of_the_hook_of_pyperf_are_added_over_runs_and_tests(tmp_path: Path) -> None:
    lines = json.dumps({"27 (eth0)": 4})
    old = suite(tmp_path / "a.json", names(2), seed=1, processes=5)
    document = json.loads(old.read_text())
    for benchmark in document["benchmarks"]:
        benchmark["runs"][0]["metadata"] = {"quiet_preempted": 3, "quiet_interrupts": lines}
    old.write_text(json.dumps(document))
    assert compare(old, suite(tmp_path / "b.json", names(2), seed=2)).interrupted == (
        "interrupted in OLD: interrupt 27 (eth0) 8, preempted 6",
    )


def test_only_the_most_frequent_causes_are_named() -> None:
    assert interrupted({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "stolen_ms": 7}) == (
        "e 5, d 4, c 3, b 2, 1 more, 7 ms stolen by the host"
    )
    assert interrupted({}) == ""
    assert interrupted({"waited_ns": 6_059_500_000}) == "waited for a CPU for 6.06 s"

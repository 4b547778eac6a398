"""A store as hyperfine's JSON: the keys are those of a file that hyperfine 1.15 wrote."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, median, stdev

import pytest

from cbench.export.export import ExportOptions, export
from cbench.model import Trial, TrialCause
from cbench.store.records import EACH_TRIAL, NO_CPU
from cbench.store.store import Store
from quiet import UsageError
from tests.cbench.store.storing import HOST, noisy, stored

FIXTURE = Path(__file__).with_name("data") / "hyperfine-1.15.json"
SLOW = TrialCause("waited for a CPU")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    with Store.create(path, HOST, []) as made:
        for name in ("./a", "./b"):
            facts = {"workload": name, "params": {}, "cpu": NO_CPU, "process": 0, "processes": EACH_TRIAL}
            number = made.begin({**facts, "counter": {"name": "wall", "unit": "ns", "quantum": 1}})
            counts = {"user_us": 1500, "system_us": 250}
            made.add(number, [Trial(2_000_000 + n, n, (SLOW,) * (n > 1), counts=counts) for n in range(4)])
            made.finish(number, {})
    return path


def exported(store: Path, folder: Path, clean_only: bool = False) -> dict[str, list[dict[str, object]]]:
    export(ExportOptions(str(store), "hyperfine", str(folder / "h.json"), clean_only))
    content: dict[str, list[dict[str, object]]] = json.loads((folder / "h.json").read_text())
    return content


def test_the_keys_are_hyperfines_own_in_its_order(store: Path, tmp_path: Path) -> None:
    theirs = json.loads(FIXTURE.read_text())
    ours = exported(store, tmp_path)
    assert list(ours) == list(theirs)
    assert list(ours["results"][0]) == list(theirs["results"][0])
    kinds = [type(value) for value in theirs["results"][0].values()]
    assert [type(value) for value in ours["results"][0].values()] == kinds


def test_every_time_is_exact_and_the_figures_are_those_of_the_times(store: Path, tmp_path: Path) -> None:
    first, second = exported(store, tmp_path)["results"]
    times = [0.002, 0.002000001, 0.002000002, 0.002000003]
    assert (first["command"], second["command"]) == ("./a", "./b")
    assert first["times"] == times
    assert first["exit_codes"] == [0, 1, 2, 3]
    assert (first["mean"], first["median"], first["stddev"]) == (fmean(times), median(times), stdev(times))
    assert (first["user"], first["system"]) == (0.0015, 0.00025)


def test_disturbed_trials_are_left_out_on_request(store: Path, tmp_path: Path) -> None:
    assert exported(store, tmp_path, clean_only=True)["results"][0]["times"] == [0.002, 0.002000001]


def test_anything_but_a_time_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path / "ticks.db", noisy(1e6, 2, 5, seed=1))
    with pytest.raises(UsageError, match="hyperfine's files contain only seconds"):
        exported(path, tmp_path)

"""`cbench compare` on cycles by calibration: the trials whose chains agree, each process by its robust center."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path

import pytest

from cbench.compare.result import compare
from cbench.model import SHARED
from cbench.store.store import Store
from tests.cbench.stats.cores import COUNTER, CYCLES, Core, trials
from tests.cbench.store.storing import HOST, facts, read


def kept(path: Path, cycles: float, seed: int, processes: int = 10, busy: bool = False) -> Path:
    """A store of processes on a core whose frequency differs from process to process."""
    with Store.create(path, HOST, ["cbench", "run", "hash"]) as store:
        for process in range(processes):
            dice = random.Random(1000 * seed + process)
            rate = dice.choice([0.63, 0.7, 0.754])
            core = Core(rate=lambda _now, rate=rate: rate, interrupted=0.4, shared=lambda _now: busy, random=dice)  # type: ignore[misc]
            series = store.begin(facts(process, counter=asdict(COUNTER)))
            store.add(series, trials(core, 60, cycles))
            store.finish(series, {})
    return path


def test_a_thousandth_more_work_is_found_however_the_frequency_moves(tmp_path: Path) -> None:
    a, b = kept(tmp_path / "a", CYCLES, 1), kept(tmp_path / "b", CYCLES * 1.001, 2)
    (found,) = compare(a, b).comparisons
    assert found.outcome == "higher"
    assert found.headline == "center"
    assert found.interval is not None
    assert found.interval[0] < 1.001 < found.interval[1]


@pytest.mark.slow
def test_the_same_work_is_hardly_ever_found_to_differ(tmp_path: Path) -> None:
    files = [kept(tmp_path / str(number), CYCLES, number) for number in range(10, 22)]
    outcomes = [compare(a, b).comparisons[0].outcome for a, b in zip(files[::2], files[1::2], strict=True)]
    assert sum(outcome in ("higher", "lower") for outcome in outcomes) <= 1


def test_a_store_returns_the_chains_and_marks_the_trials_by_all_of_them(tmp_path: Path) -> None:
    (series,) = read(kept(tmp_path / "a", CYCLES, 3, 1))
    assert all(each.trial.chains for each in series.trials)
    (busy,) = read(kept(tmp_path / "b", CYCLES, 3, 1, busy=True))
    assert any(cause.kind == SHARED for each in busy.trials for cause in each.trial.causes)


def test_if_all_trials_shared_their_core_they_are_not_compared(tmp_path: Path) -> None:
    a, b = kept(tmp_path / "a", CYCLES, 4, 4), kept(tmp_path / "b", CYCLES, 5, 4, busy=True)
    (found,) = compare(a, b).comparisons
    assert (found.outcome, found.interval, found.p) == ("too few to tell", None, None)
    assert found.verdict == "cannot tell: in B the chains of too few trials agree on an unshared core"


def test_one_process_per_side_shows_nothing_about_a_program(tmp_path: Path) -> None:
    a, b = kept(tmp_path / "a", CYCLES, 6, 1), kept(tmp_path / "b", CYCLES * 1.01, 7, 1)
    (found,) = compare(a, b).comparisons
    assert (found.outcome, found.by, found.difference) == ("too few to tell", "process", None)
    assert found.verdict.startswith("cannot tell")

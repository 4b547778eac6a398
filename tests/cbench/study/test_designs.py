"""Each design from its plan to its verdict; orders come back from the store and from the seed."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from cbench.order import analyze as commands_order
from cbench.order.analyze import OrderOptions
from cbench.results import to_json
from cbench.study import orders
from cbench.study.store import StudyStore
from tests.cbench.study.running import order
from tests.cbench.study.storing import stored

A, B = 0, 1


def noise(_test: int, _position: int, _before: int | None, draw: random.Random) -> float:
    return draw.gauss(100, 1)


def slower_after_a(test: int, position: int, before: int | None, draw: random.Random) -> float:
    return noise(test, position, before, draw) + (5 if (test, before) == (B, A) else 0)


def slower_at_the_end(test: int, position: int, before: int | None, draw: random.Random) -> float:
    return noise(test, position, before, draw) + (5 if (test, position) == (B, 3) else 0)


def analyzed(path: Path, **options: Any) -> Any:
    return to_json(commands_order.analyzed(OrderOptions(str(path), **options)))


@pytest.mark.parametrize("design", orders.DESIGNS)
def test_orders_come_back_from_the_store_and_from_the_seed(design: str, tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", 4, design, 8, noise, "seed = 99")
    with StudyStore.open(path) as store:
        runs = [orders.PlannedRun(run.kind, run.order) for run in store.runs()]
        seed = store.header().seed
    assert seed == 99
    assert runs == orders.plan(design, 4, 8, seed)
    assert runs != orders.plan(design, 4, 8, seed + 1)


@pytest.mark.parametrize("design", ["random", "williams"])
def test_without_a_fixed_order_position_and_predecessor_decide(design: str, tmp_path: Path) -> None:
    """40 runs of 4 tests each; the alpha of the study's file holds for both questions together."""
    quiet = analyzed(stored(tmp_path / "quiet.db", 4, design, 40, noise))
    assert quiet["order_matters"] is False
    assert quiet["verdict"][0] == (
        "no effect of the position in the run or of the direct predecessor was found in 4 tests"
    )
    after = analyzed(stored(tmp_path / "after.db", 4, design, 40, slower_after_a))
    assert after["order_matters"] is True
    first, second, *_ = after["verdict"]
    assert first == "order matters: 1 of 4 tests depends on its position or predecessor: b"
    assert second.startswith("the predecessor affects: b after a (+")
    end = analyzed(stored(tmp_path / "end.db", 4, design, 40, slower_at_the_end))
    assert end["order_matters"] is True
    assert "the position in the run affects: b" in end["verdict"]


def test_too_few_runs_for_any_predecessor_are_reported(tmp_path: Path) -> None:
    """With 8 runs of 4 tests, each test runs twice after each other: p is at least 2/28 for one of 16 pairs."""
    first = analyzed(stored(tmp_path / "few.db", 4, "williams", 8, slower_after_a))["verdict"][0]
    assert re.search(r" in 4 tests; too few runs for any pair of tests to be significant: about \d+ are needed$", first)
    assert "too few" not in analyzed(stored(tmp_path / "more.db", 4, "williams", 40, noise))["verdict"][0]


@pytest.mark.slow
@pytest.mark.parametrize("design", ["random", "williams"])
def test_without_a_fixed_order_there_are_hardly_more_false_alarms_than_alpha(design: str, tmp_path: Path) -> None:
    """300 studies of nothing: with 5 % of them alarms, more than 26 have a chance below 0.5 %."""
    from cbench.order.stats.analysis import AnalysisRules, analyze
    from cbench.order.summarize import summarize
    from cbench.tables.columns import trials

    draw = random.Random(5)
    alarms = 0
    for number in range(300):
        columns: dict[str, list[object]] = {name: [] for name in ("test", "order", "run", "position", "value")}
        for run, planned in enumerate(orders.plan(design, 4, 40, number)):
            for position, test in enumerate(planned.order):
                row = (test, planned.kind, run, position, draw.gauss(100, 1))
                for name, each in zip(columns, row, strict=True):
                    columns[name].append(each)
        found, warnings = trials(columns)
        alarms += bool(summarize(found, analyze(found, AnalysisRules()), warnings, 1.0).order_matters)
    assert alarms <= 26


def test_the_command_ends_with_1_where_an_effect_is_found_and_tests_are_in_the_files_order(tmp_path: Path) -> None:
    stored(tmp_path / "s.db", 4, "random", 40, slower_after_a)
    done = order("analyze", "s.db", folder=tmp_path)
    assert done.returncode == 1
    named = [line.split()[0] for line in done.stdout.splitlines() if re.match(r"[a-d]\s", line.strip("│ "))]
    assert [each for each in named if each in "abcd"] == list("abcd"), done.stdout


def test_alpha_and_failures_of_the_studys_file_hold_for_its_analysis(tmp_path: Path) -> None:
    def fails_once(test: int, position: int, before: int | None, draw: random.Random) -> float | None:
        value = noise(test, position, before, draw)
        return None if test == A and value > 101.5 else value

    path = stored(tmp_path / "s.db", 2, "interleaved", 40, fails_once, "alpha = 0.01\nfailures = 'run'")
    made = analyzed(path)
    assert (made["alpha"], made["failures"]) == (0.01, "run")
    tests = made["tests"]
    lost = tests["a"]["failed_fixed"] + tests["a"]["failed_random"]
    kept = tests["b"]["n_fixed"] + tests["b"]["n_random"]
    assert lost
    # the run of a failed trial goes with it, in both orders, and the other run of the pair is not compared
    assert kept + tests["b"]["without_partner"] == 80 - lost
    assert tests["b"]["without_partner"] == lost
    assert analyzed(path, alpha=0.2)["alpha"] == 0.2
    assert analyzed(path, as_published=True)["failures"] == "published"

"""The verdict of a gate on simulated suites."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from cbench.ab.analyze import ALPHA
from cbench.ab.design import order_of
from cbench.gate import result
from cbench.gate.config import load
from cbench.gate.judge import CANNOT_JUDGE, IMPROVEMENT, PASSED, SUSPECTED, alpha_of, judge
from cbench.gate.measure import GateSession, SessionTest
from cbench.gate.report import sentence

TESTS = 20


def simulated(
    seed: int,
    blocks: int = 24,
    slower: float = 0.0,
    noise: float = 0.005,
    second: float = 0.0,
    unit: str = "ns",
    layouts: int = 1,
    layout: float = 0.0,
) -> GateSession:
    """Identical arms but for test 7; every block drifts, the second position is slower by `second`.

    `layout`: the standard deviation of builds.
    """
    dice = random.Random(seed)
    orders = [order_of(block, 3, seed) for block in range(blocks)]
    tests = []
    for number in range(TESTS):
        rows = []
        builds = [(dice.gauss(0, layout), dice.gauss(0, layout)) for _ in range(layouts)]
        for block, order in enumerate(orders):
            drift = 1 + 0.001 * block
            row = [0.0] * 3
            for position, arm in enumerate(order):
                work = 1 + slower * (arm == 2 and number == 7)
                work *= 1 + builds[block % layouts][arm == 2]
                value = 1000 * work * drift * (1 + second * (position == 1)) * (1 + dice.gauss(0, noise))
                row[arm] = 1e9 / value if unit == "ops/s" else value
            rows.append(tuple(row))
        tests.append(SessionTest(f"test {number}", unit, tuple(rows)))
    return GateSession(tuple(tests), tuple(orders), {}, (), (), "", "blocks", 1.0, layouts)


def suspects(session: GateSession, alpha: float = ALPHA, names: frozenset[str] | None = None) -> frozenset[str]:
    found = judge(session, 1, names, alpha, 0.01)
    return frozenset(test.name for test in found if test.outcome == SUSPECTED)


def red(seed: int, second: float = 0.0, slower: float = 0.0, noise: float = 0.005) -> frozenset[str]:
    first = suspects(simulated(seed, second=second, slower=slower, noise=noise))
    again = simulated(seed + 10_000, second=second, slower=slower, noise=noise)
    return suspects(again, alpha_of(len(first)), first) if first else first


def test_identical_code_stays_green_also_where_the_second_position_is_slower() -> None:
    assert [seed for seed in range(20) if red(seed, second=0.03)] == []


def test_identical_code_stays_green_where_the_noise_is_larger_than_the_threshold() -> None:
    assert sum(bool(red(seed, noise=0.04)) for seed in range(40)) <= 4  # 2 are expected at the very most


def test_a_planted_slowdown_is_found_and_no_other_test_is_blamed() -> None:
    found = [red(seed, slower=0.02) for seed in range(10)]
    assert all(each <= {"test 7"} for each in found)
    assert sum(each == {"test 7"} for each in found) >= 9


def test_a_rate_that_falls_is_a_slowdown() -> None:
    assert "test 7" in suspects(simulated(1, slower=0.03, unit="ops/s"))


def test_what_is_faster_is_an_improvement_and_no_regression() -> None:
    outcomes = {test.name: test.outcome for test in judge(simulated(3, slower=-0.03), 1, None, ALPHA, 0.01)}
    assert outcomes["test 7"] == IMPROVEMENT
    assert set(outcomes.values()) <= {IMPROVEMENT, PASSED}


def test_a_slowdown_below_the_threshold_passes() -> None:
    (judged,) = judge(simulated(4, slower=0.005, noise=0.0005), 1, {"test 7"}, ALPHA, 0.01)
    assert judged.outcome == PASSED
    assert judged.delta_pct == pytest.approx(0.5, abs=0.1)


def test_too_few_blocks_cannot_judge() -> None:
    (judged, *_) = judge(simulated(5, blocks=3), 1, None, ALPHA, 0.01)
    assert judged.outcome == CANNOT_JUDGE
    assert judged.interval_pct is None


def test_builds_that_differ_by_their_layout_alone_stay_green() -> None:
    one = [suspects(simulated(seed, blocks=30, noise=0.002, layout=0.03)) for seed in range(5)]
    assert all(len(each) >= 5 for each in one)  # of 20: what one build of each revision shows
    many = [suspects(simulated(seed, blocks=30, noise=0.002, layouts=10, layout=0.03)) for seed in range(5)]
    assert sum(len(each) for each in many) <= 5  # 100 tests at 5 %, on one side


def test_too_few_layouts_cannot_judge_and_more_blocks_are_not_advised() -> None:
    (judged, *_) = judge(simulated(5, blocks=60, layouts=6), 2, None, ALPHA / 20, 0.01)
    assert judged.outcome == CANNOT_JUDGE
    assert sentence(judged) == "cannot judge: 6 layouts are too few; raise layouts"


def test_a_suspect_that_the_second_session_cannot_judge_is_not_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(_config: object, seed: int, tests: frozenset[str] | None, *_: object) -> GateSession:
        session = simulated(seed, blocks=30, layouts=6)
        slower = [
            replace(test, values=tuple((a, copy, 1.05 * b) for a, copy, b in test.values)) for test in session.tests
        ]
        return replace(session, tests=tuple(slower))

    monkeypatch.setattr(result, "measure", measured)
    file = tmp_path / "gate.toml"
    file.write_text("old = 'true'\nnew = 'true'\n")
    judged = result.run(load(file), None, lambda *_: None, lambda _: None)
    assert {test.outcome for test in judged.tests} == {CANNOT_JUDGE}  # 20 suspects at 5 % together, of six layouts
    assert judged.exit_code == 2

"""The verdict of a gate on simulated suites."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from cbench.gate import result
from cbench.gate.config import load
from cbench.gate.judge import CANNOT_JUDGE, IMPROVEMENT, PASSED, SUSPECTED, judge
from cbench.gate.measure import GateSession
from cbench.gate.report import sentence
from tests.cbench.gate.simulated import RULE, SimulatedGate

FIXED = SimulatedGate(blocks=24)


def quiet(draw: random.Random) -> float:
    return draw.gauss(0, 0.0005)


def noisy(draw: random.Random) -> float:
    return draw.gauss(0, 0.04)


def test_identical_code_stays_green_also_where_the_second_position_is_slower() -> None:
    gate = SimulatedGate(blocks=24, second=0.03)
    assert [number for number in range(20) if gate.red(number)] == []


def test_identical_code_stays_green_where_the_noise_is_larger_than_the_threshold() -> None:
    gate = SimulatedGate(blocks=24, noise=noisy)
    assert sum(bool(gate.red(number)) for number in range(40)) <= 4  # 2 are expected at the very most


def test_a_planted_slowdown_by_the_threshold_itself_is_found_and_no_other_test_is_blamed() -> None:
    found = [SimulatedGate(slower=0.01).red(number) for number in range(20)]
    assert all(each <= {"test 7"} for each in found)
    assert sum(each == {"test 7"} for each in found) >= 14


def test_a_rate_that_falls_is_a_slowdown() -> None:
    gate = SimulatedGate(blocks=24, slower=0.03, unit="ops/s")
    assert "test 7" in gate.suspects(gate.session(1))


def test_what_is_faster_is_an_improvement_and_no_regression() -> None:
    session = SimulatedGate(blocks=24, slower=-0.03).session(3)
    outcomes = {test.name: test.outcome for test in judge(session, RULE)}
    assert outcomes["test 7"] == IMPROVEMENT
    assert set(outcomes.values()) <= {IMPROVEMENT, PASSED}


def test_a_slowdown_that_is_shown_to_be_below_the_threshold_passes() -> None:
    (judged,) = judge(SimulatedGate(blocks=24, slower=0.005, noise=quiet).session(4), RULE, {"test 7"})
    assert judged.outcome == PASSED
    assert judged.delta_pct == pytest.approx(0.5, abs=0.1)


def test_a_slowdown_that_may_be_as_large_as_the_threshold_is_suspected() -> None:
    (judged,) = judge(SimulatedGate(blocks=24, slower=0.0099, noise=quiet).session(4), RULE, {"test 7"})
    assert judged.interval_pct
    assert judged.interval_pct[0] < judged.delta_pct < 1.0 < judged.interval_pct[1]
    assert judged.outcome == SUSPECTED


def test_too_few_blocks_cannot_judge() -> None:
    (judged, *_) = judge(SimulatedGate(blocks=3).session(5), RULE)
    assert judged.outcome == CANNOT_JUDGE
    assert judged.interval_pct is None


def test_builds_that_differ_by_their_layout_alone_stay_green() -> None:
    one, many = (SimulatedGate(blocks=30, layout=0.03, layouts=layouts) for layouts in (1, 10))
    shown = [one.suspects(one.session(number)) for number in range(5)]
    assert all(len(each) >= 5 for each in shown)  # of 20: what one build of each revision shows
    assert sum(len(many.suspects(many.session(number))) for number in range(5)) <= 5  # 100 tests at 5 %, on one side


def test_too_few_layouts_cannot_judge_and_more_blocks_are_not_advised() -> None:
    session = SimulatedGate(blocks=60, layouts=6).session(5)
    (judged, *_) = judge(session, RULE, {test.name for test in session.tests})
    assert judged.outcome == CANNOT_JUDGE
    assert sentence(judged) == "6 layouts are too few; raise layouts"


def test_a_suspect_that_the_second_session_cannot_judge_is_not_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(_config: object, seed: int, tests: frozenset[str] | None, *_: object) -> GateSession:
        session = SimulatedGate(blocks=30, layouts=6).session(seed)
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

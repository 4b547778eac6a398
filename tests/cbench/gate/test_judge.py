"""The verdict of a gate on simulated suites."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from math import ceil, log1p
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cbench.gate import result
from cbench.gate.config import load
from cbench.gate.judge import CANNOT_JUDGE, CANNOT_TELL, IMPROVEMENT, PASSED, SUSPECTED, judge
from cbench.gate.measure import GateSession
from cbench.gate.report import amount, junit, lines, markdown, power, sentence
from cbench.report.text import about
from tests.cbench.gate.simulated import RULE, SimulatedGate


def quiet(draw: random.Random) -> float:
    return draw.gauss(0, 0.0005)


def noisy(draw: random.Random) -> float:
    return draw.gauss(0, 0.04)


@pytest.mark.slow
def test_identical_code_stays_green_also_where_the_second_position_is_slower() -> None:
    gate = SimulatedGate(blocks=24, second=0.03)
    assert [number for number in range(20) if gate.red(number)] == []


@pytest.mark.slow
def test_identical_code_stays_green_where_the_noise_is_larger_than_the_threshold() -> None:
    gate = SimulatedGate(blocks=24, noise=noisy)
    assert sum(bool(gate.red(number)) for number in range(40)) <= 4  # 2 are expected at the very most


@pytest.mark.slow
def test_a_planted_slowdown_by_the_threshold_itself_is_found_and_no_other_test_is_blamed() -> None:
    found = [SimulatedGate(slower=0.01).red(number) for number in range(20)]
    assert all(each <= {"test 7"} for each in found)
    assert sum(each == {"test 7"} for each in found) >= 14


def test_a_rate_that_falls_is_a_slowdown() -> None:
    gate = SimulatedGate(blocks=24, slower=0.03, unit="ops/s")
    assert "test 7" in gate.suspects(gate.session(1))


@pytest.mark.parametrize(("better", "outcome"), [("higher", SUSPECTED), ("lower", IMPROVEMENT), (None, IMPROVEMENT)])
def test_the_gate_file_decides_the_better_direction_of_units_that_do_not_imply_it(
    better: str | None, outcome: str
) -> None:
    session = slower(SimulatedGate(blocks=24, noise=quiet).session(1), 0.95)
    rule = replace(RULE, better=better)
    for unit, expected in (("score", outcome), ("ns", IMPROVEMENT)):
        tests = tuple(replace(test, unit=unit) for test in session.tests)
        assert {test.outcome for test in judge(replace(session, tests=tests), rule)} == {expected}


def test_the_percentage_of_a_rate_is_the_change_of_its_value() -> None:
    session = SimulatedGate(blocks=24, noise=quiet).session(4)
    tests = [
        replace(test, unit="points", values=tuple((a, copy, 0.9 * a) for a, copy, _ in test.values))
        for test in session.tests[:1]
    ]
    (judged,) = judge(replace(session, tests=tuple(tests)), replace(RULE, better="higher"))
    assert judged.outcome == SUSPECTED
    assert judged.delta_pct == pytest.approx(-10)
    assert judged.interval_pct
    assert judged.interval_pct[0] <= judged.delta_pct <= judged.interval_pct[1] < -9
    assert judged.worse_pct == pytest.approx(10)


def test_a_faster_test_is_an_improvement_and_not_a_regression() -> None:
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


@pytest.mark.slow
def test_builds_that_differ_by_their_layout_alone_stay_green() -> None:
    one, many = (SimulatedGate(blocks=30, layout=0.03, layouts=layouts) for layouts in (1, 10))
    shown = [one.suspects(one.session(number)) for number in range(5)]
    assert all(len(each) >= 5 for each in shown)  # of 20: what one build of each revision shows
    assert sum(len(many.suspects(many.session(number))) for number in range(5)) <= 5  # 100 tests at 5 %, on one side


def test_too_few_layouts_cannot_judge_and_more_blocks_are_not_advised() -> None:
    session = SimulatedGate(blocks=60, layouts=6).session(5)
    (judged, *_) = judge(session, RULE, {test.name for test in session.tests})
    assert judged.outcome == CANNOT_JUDGE
    assert sentence(judged) == "6 layouts are too few; raise layouts to at least 10"


def ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: Callable[[int, frozenset[str] | None], GateSession]
) -> result.GateResult:
    """The result of a gate whose sessions are these: by their number, and the suspects of the second."""
    file = tmp_path / "gate.toml"
    file.write_text("old = 'true'\nnew = 'true'\n")
    monkeypatch.setattr(result, "measure", lambda _, seed, tests, *__: measured(seed, tests))
    return result.run(load(file), None, lambda *_: None, lambda _: None)


def slower(session: GateSession, factor: float = 1.05, *names: str) -> GateSession:
    """The same with new slower in these tests, or in all."""
    tests = [
        replace(test, values=tuple((a, copy, factor * b) for a, copy, b in test.values))
        if test.name in names or not names
        else test
        for test in session.tests
    ]
    return replace(session, tests=tuple(tests))


def without(session: GateSession, *names: str, left_out: bool = False) -> GateSession:
    """The same without these tests; `left_out`: they are listed as such."""
    reasons = {name: "not in every run" for name in names if left_out}
    return replace(session, tests=tuple(test for test in session.tests if test.name not in names), left_out=reasons)


def test_a_suspect_that_the_second_session_cannot_judge_is_not_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = ended(tmp_path, monkeypatch, lambda seed, _: slower(SimulatedGate(blocks=30, layouts=6).session(seed)))
    assert {test.outcome for test in judged.tests} == {CANNOT_JUDGE}  # 20 suspects at 5 % together, of six layouts
    assert judged.exit_code == 2


@pytest.mark.parametrize("left_out", [False, True])
def test_a_suspect_that_is_not_measured_again_is_not_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: bool
) -> None:
    def measured(seed: int, suspects: frozenset[str] | None) -> GateSession:
        session = slower(SimulatedGate(blocks=24, noise=quiet).session(seed), 1.05, "test 3")
        return without(session, "test 3", left_out=left_out) if suspects else session

    judged = ended(tmp_path, monkeypatch, measured)
    (lost,) = (test for test in judged.tests if test.name == "test 3")
    assert lost.outcome == CANNOT_JUDGE
    why = "not in every run" if left_out else "not in the results of the second session"
    assert sentence(lost).startswith("suspected in the first session: +4.98 %")
    assert sentence(lost).endswith(f"not measured again: {why}")
    assert judged.exit_code == 2
    assert judged.counted == "cannot judge: 20 tests: 1 cannot judge, 19 passed"


def test_a_regression_is_red_also_where_another_suspect_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(seed: int, suspects: frozenset[str] | None) -> GateSession:
        session = slower(SimulatedGate(blocks=24, noise=quiet).session(seed), 1.05, "test 3", "test 4")
        return without(session, "test 3") if suspects else session

    judged = ended(tmp_path, monkeypatch, measured)
    assert judged.regressions == ("test 4",)
    assert judged.exit_code == 1


def test_each_test_is_listed_once_whatever_the_second_session_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(seed: int, suspects: frozenset[str] | None) -> GateSession:
        session = slower(SimulatedGate(blocks=24, noise=quiet).session(seed), 1.05, "test 3")
        return without(session, *(("test 5",) if suspects else ("test 6",)), left_out=True)

    judged = ended(tmp_path, monkeypatch, measured)
    assert dict(judged.left_out) == {"test 6": "not in every run"}
    suite = ElementTree.fromstring(junit(judged))
    names = [case.get("name") for case in suite]
    assert sorted(names) == sorted(f"test {number}" for number in range(20))
    assert [suite.get(count) for count in ("tests", "failures", "skipped")] == ["20", "1", "1"]
    assert len(suite.findall("testcase/failure")) == 1
    assert len(suite.findall("testcase/skipped")) == 1


def test_noise_in_which_the_threshold_cannot_be_found_is_not_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = ended(tmp_path, monkeypatch, lambda seed, _: SimulatedGate(blocks=24, noise=noisy, tests=5).session(seed))
    assert {test.outcome for test in judged.tests} == {CANNOT_TELL}
    assert judged.exit_code == 2
    assert judged.counted == "cannot judge: 5 tests: 5 cannot tell"
    assert "only a slowdown of at least " in sentence(judged.tests[0])
    least = max(test.detectable_pct or 0 for test in judged.tests)
    share = f"{least:.2g}"
    said = (
        f"a slowdown of 1 % was ruled out or would have been detected in 0 of 5 tests, and a slowdown of {share} % in 5"
    )
    blocks = about(ceil(24 * (log1p(least / 100) / log1p(0.01)) ** 2))
    assert power(judged) == f"{said}; to detect 1 %, use a quieter host, or raise blocks to about {blocks:,}"
    suite = ElementTree.fromstring(junit(judged))
    assert suite.get("skipped") == "5"
    assert len(suite.findall("testcase/skipped")) == 5
    assert "<summary>5 cannot tell</summary>" in markdown(judged)


def test_a_gate_that_could_judge_some_tests_is_green_and_names_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(seed: int, _: frozenset[str] | None) -> GateSession:
        noise, calm = (SimulatedGate(blocks=24, noise=each).session(seed) for each in (noisy, quiet))
        return replace(calm, tests=(noise.tests[0], *calm.tests[1:]))

    judged = ended(tmp_path, monkeypatch, measured)
    assert judged.exit_code == 0
    assert judged.counted == "green: 20 tests: 1 cannot tell, 19 passed"
    assert "would have been detected in 19 of 20 tests" in power(judged)
    assert any(line.startswith("  cannot tell: test 0: ") for line in lines(judged))
    assert "<summary>1 cannot tell, 19 passed</summary>" in markdown(judged)


def test_a_slowdown_above_the_threshold_but_within_the_noise_floor_is_not_a_pass() -> None:
    session = slower(SimulatedGate(blocks=24, noise=quiet).session(4), 1.02)
    unlike = [replace(test, values=tuple((a, 1.05 * copy, b) for a, copy, b in test.values)) for test in session.tests]
    judged = judge(replace(session, tests=tuple(unlike)), RULE)
    assert {test.outcome for test in judged} == {CANNOT_TELL}
    assert all(test.detectable_pct is not None and test.detectable_pct > 4.5 for test in judged)


def test_a_suspect_that_a_noisy_second_session_does_not_show_is_not_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(seed: int, suspects: frozenset[str] | None) -> GateSession:
        if suspects:
            return SimulatedGate(blocks=24, noise=noisy).session(seed)
        return slower(SimulatedGate(blocks=24, noise=quiet).session(seed), 1.02, "test 3")

    judged = ended(tmp_path, monkeypatch, measured)
    assert judged.counted == "cannot judge: 20 tests: 1 cannot judge, 19 passed"
    assert judged.exit_code == 2
    text = sentence(judged.tests[0])
    assert text.startswith("suspected in the first session, neither confirmed nor cleared by the second: ")
    assert "only a slowdown of at least " in text


@pytest.mark.parametrize(("why", "advice"), [("blocks", "blocks"), ("budget", "budget_s to at least 72")])
def test_too_few_blocks_name_the_key_that_ended_the_session_and_its_least_value(why: str, advice: str) -> None:
    session = replace(SimulatedGate(blocks=3).session(5), ended=why, seconds=30)
    assert sentence(judge(session, RULE)[0]) == f"3 of at least 6 blocks; raise {advice}"


def test_large_percentages_are_written_without_an_exponent() -> None:
    judged = judge(SimulatedGate(blocks=24, noise=noisy).session(4), RULE)[0]
    assert "by at most 150 %" in sentence(replace(judged, floor_pct=150.4))
    assert [amount(percent) for percent in (0.616, 9.9, 99.4, 104, 2412)] == ["0.62", "9.9", "99", "104", "2,412"]

"""The answer and the remedies, from processes whose truth is known."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median

import pytest

from cbench.doctor.measure import Examination, Examined
from cbench.doctor.result import DoctorResult, OneAfterTheOther, doctor_result, percent, quartile_range, verdict
from cbench.doctor.table import lines
from cbench.model import Counter, Result, Session, Settling, Trial, TrialCause
from cbench.stats.detectable import Detectable
from cbench.workloads import registry
from tests.cbench.stats import cores
from tests.cbench.stats.cores import CYCLES, Core, trials

COUNTER = Counter("tsc", "TSC ticks", True, "no PMU here", quantum=1)
INTERRUPT = TrialCause("interrupt", "LOC (Local timer interrupts)")


def process(value: float, *, busy: float = 0.0, polluted: int = 0, extra: int = 0, stolen_ms: int = 0) -> Examined:
    """30 trials around `value`; the first `polluted` take `extra` longer."""
    trials = tuple(
        Trial(round(value) + n % 3 + (extra if n < polluted else 0), 1, (INTERRUPT,) if n < polluted else ())
        for n in range(30)
    )
    session = Session(COUNTER, trials, Settling(), "all", "fixed", "none", "/proc/interrupts", stolen_ms)
    result = Result(registry.find("hash"), {"n": 1}, 1, False, (session,))
    clean = [trial.value for trial in trials if not trial.polluted]
    middle = float(median(t.value for t in trials))
    return Examined(result, middle, middle, float(median(clean)), busy, None, 1.0)


def examined(*processes: Examined, siblings: frozenset[int] = frozenset()) -> DoctorResult:
    return doctor_result(Examination(1, frozenset(), siblings, processes, float(len(processes))), 10, 1)


@pytest.fixture
def noise() -> random.Random:
    return random.Random(5)


def test_the_answer_is_one_line_with_both_numbers_of_processes() -> None:
    assert verdict(Detectable(0.0062, 0.005, 0.007, 10, 0.2, 0.05), 380, 60, "time") == (
        "differences below 0.62 % in pure computation, measured in time, are lost in the noise here with 10 processes "
        "(A/A); 0.1 % would need about 380 processes"
    )
    fine = verdict(Detectable(0.0004, 0.0003, 0.0005, 10, 0.2, 0.05), 4, 16, "cycles")
    assert fine.endswith("measured in cycles, are lost in the noise here with 10 processes (A/A)")
    many = verdict(Detectable(9.0, 8.0, 9.5, 10, 0.2, 0.05), None, 60, "cycles")
    assert many.endswith("0.1 % would need too many processes")


def test_a_machine_drifts_if_more_comparisons_of_equal_code_differ_than_chance_explains() -> None:
    drifting = [(2, 5), (3, 17), (9, 9)]
    steady = [(0, 5), (1, 5), (1, 16), (2, 20)]
    assert all(OneAfterTheOther(called, of).drifts for called, of in drifting)
    assert not any(OneAfterTheOther(called, of).drifts for called, of in steady)


def test_an_answer_from_few_processes_says_so() -> None:
    line = verdict(Detectable(0.0004, 0.0003, 0.0005, 10, 0.2, 0.05), 4, 8, "cycles")
    assert line.endswith("; not reliable: only 8 of at least 16 processes have a number")


@pytest.mark.slow
def test_processes_that_differ_by_a_neighbor_are_better_without_it(noise: random.Random) -> None:
    result = examined(
        *(
            process(100_000 * (1 + (0.05 * noise.random() if n % 2 else 0.0005 * noise.gauss(0, 1))), busy=n % 2)
            for n in range(40)
        )
    )
    first = result.remedies[0]
    assert first.remedy == "stop the programs on the other CPUs"
    assert first.gain > 5
    assert first.difference == pytest.approx(result.detectable.difference / first.gain)


@pytest.mark.slow
def test_isolation_is_advised_if_interrupted_trials_move_the_median(noise: random.Random) -> None:
    result = examined(
        *(
            process(100_000 * (1 + noise.gauss(0, 0.0003)), polluted=noise.choice((5, 16)), extra=3000)
            for _ in range(40)
        )
    )
    assert result.remedies[0].remedy.startswith("keep interruptions off CPU 1: quiet run")
    assert result.disturbed_trials > 0.1
    assert result.causes["interrupt LOC (Local timer interrupts)"] > 100


@pytest.mark.slow
def test_where_nothing_else_helps_more_processes_do(noise: random.Random) -> None:
    result = examined(*(process(100_000 * (1 + noise.gauss(0, 0.003))) for _ in range(40)))
    assert [each.remedy for each in result.remedies] == ["40 processes per side instead of 10"]
    assert result.remedies[0].gain == pytest.approx(2)


@pytest.mark.slow
def test_time_stolen_by_the_host_is_a_share_and_its_absence_a_gain(noise: random.Random) -> None:
    stolen = [n % 3 == 0 for n in range(45)]
    values = [100_000 * (1 + 0.05 * taken * noise.random()) for taken in stolen]
    result = examined(*(process(v, stolen_ms=100 * taken) for v, taken in zip(values, stolen, strict=True)))
    assert result.stolen_share == pytest.approx(0.1 / 3)
    assert "a host with fewer other guests, or dedicated CPUs" in [each.remedy for each in result.remedies]


def test_a_machine_that_repeats_exactly_needs_no_remedy() -> None:
    result = examined(*(process(100_000) for _ in range(12)))
    assert result.detectable.difference == pytest.approx(1 / 100_001)
    assert result.remedies == () or result.remedies[0].gain <= 2


@pytest.mark.slow
def test_calibrated_headlines_can_be_distinguished_by_less_than_a_step(noise: random.Random) -> None:
    made = tuple(trials(Core(interrupted=0), 30))
    session = Session(cores.COUNTER, made, Settling(), "all", "fixed", "none", "/proc/interrupts", 0)
    result = Result(registry.find("hash"), {"n": 1}, 1, False, (session,))
    values = [CYCLES * noise.gauss(1, 1e-6) for _ in range(16)]
    found = examined(*(Examined(result, value, value, value, 0.0, None, 1.0) for value in values))
    assert found.step_share is not None
    assert 0 < found.detectable.difference < found.step_share
    assert "measured in cycles (calibrated), are" in found.verdict
    assert found.detectable_time is not None
    assert dict(lines(found))["time"].startswith("measured in time, as by most tools: differences below ")


@pytest.mark.slow
def test_a_shared_core_is_named_with_its_other_thread() -> None:
    result = examined(*(process(100_000 + n) for n in range(12)), siblings=frozenset({5}))
    assert dict(lines(result))["core"].startswith("CPU 1 shares its core with CPU 5")


def test_shares_have_two_digits_and_quartiles_are_ranks() -> None:
    assert [percent(share) for share in (0.00012, 0.0062, 0.123, 5.0)] == ["0.012 %", "0.62 %", "12 %", "500 %"]
    assert quartile_range(range(100)) == 50


@pytest.mark.slow
def test_medians_stand_in_where_the_counter_has_no_result() -> None:
    processes = [replace(process(100_000 + n), headline=None if n < 8 else 1.0) for n in range(12)]
    found = Examination(1, frozenset(), frozenset(), tuple(processes), 12.0)
    assert not found.has_headlines
    assert found.headline_of(processes[11]) == processes[11].median
    result = doctor_result(found, 10, 1)
    assert len(result.headlines) == 12
    assert result.frequency is None
    assert result.detectable_time is None


def test_the_reason_for_using_all_trials_is_that_of_most_processes() -> None:
    """Few trials can be kept in most processes, but all kept trials together would be enough for a headline."""
    apart, kept = (tuple(trials(Core(interrupted=rate), 30)) for rate in (40, 0))
    made = [Session(cores.COUNTER, each, Settling(), "all", "fixed", "none", "x", 0) for each in (apart, apart, kept)]
    results = [Result(registry.find("hash"), {"n": 1}, 1, False, (each,)) for each in made]
    found = [
        Examined(each, None if n < 2 else CYCLES, CYCLES, CYCLES, 0.0, None, 1.0) for n, each in enumerate(results)
    ]
    result = doctor_result(Examination(1, frozenset(), frozenset(), tuple(found), 12.0), 10, 1)
    assert result.not_told.startswith("cannot tell: ")
    assert "measured in time, are" in result.verdict

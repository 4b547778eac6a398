"""`cbench step` as far as no frequency driver is needed; with one, tests/lab/cases/test_step.py."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import typer

from cbench.step import frequency, measure, run
from cbench.step.frequency import Policy
from cbench.sweep import command
from quiet.errors import Incomplete, Refused, UsageError
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.settings import journal
from tests.cbench.running import cbench, error_line
from tests.trees import CPU, contents, cpufreq, machine, plant

STEPS = "3000000 2000000 800000"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    files = machine(cpus=4) | cpufreq(4, "acpi-cpufreq", scaling_available_frequencies=STEPS)
    return Host(str(plant(tmp_path, files)))


def limits(host: Reader, number: int = 2) -> list[str | None]:
    return [host.text(f"/{CPU}/cpufreq/policy{number}/scaling_{name}_freq") for name in ("min", "max")]


# Setting and putting back


def test_the_limits_are_held_changed_and_put_back(host: Host, tmp_path: Path) -> None:
    before = contents(tmp_path)
    with frequency.held(host, frequency.policy(host, 2), 800000) as change:
        assert limits(host) == ["800000", "800000"]
        change(3000000)
        assert limits(host) == ["3000000", "3000000"]
        assert limits(host, 1) == ["800000", "3000000"]
    assert contents(tmp_path) == before
    assert journal.load(host) is None


def test_an_error_while_it_is_held_puts_the_limits_back(host: Host, tmp_path: Path) -> None:
    before = contents(tmp_path)
    with pytest.raises(KeyboardInterrupt), frequency.held(host, frequency.policy(host, 2), 2000000):
        raise KeyboardInterrupt
    assert contents(tmp_path) == before


def test_limits_that_somebody_else_changed_meanwhile_are_left_and_told(host: Host) -> None:
    policy, words = frequency.policy(host, 2), "scaling_max_freq: somebody else made it '2500000'"
    with pytest.raises(Incomplete, match=words), frequency.held(host, policy, 2000000):
        host.write(f"/{CPU}/cpufreq/policy2/scaling_max_freq", "2500000")
    assert limits(host) == ["800000", "2500000"]


def test_while_another_step_holds_the_host_a_second_one_is_refused_and_harms_nothing(host: Host) -> None:
    policy = frequency.policy(host, 2)
    with frequency.held(host, policy, 2000000):
        with pytest.raises(Refused, match="'frequency step' is applied"), frequency.held(host, policy, 800000):
            raise AssertionError
        assert limits(host) == ["2000000", "2000000"]


# What may be asked for


def test_a_host_without_a_driver_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no cpufreq driver here: the firmware or the hypervisor sets the frequency"):
        frequency.policy(Reader(str(plant(tmp_path, machine()))), 1)


def test_only_steps_that_the_driver_offers_are_taken(host: Host) -> None:
    policy = frequency.policy(host, 2)
    assert policy == Policy(2, frozenset({2}), "acpi-cpufreq", 800000, 3000000, (800000, 2000000, 3000000))
    assert frequency.checked(policy, "--from", None, policy.low) == 800000
    assert frequency.checked(policy, "--to", 2000000, policy.high) == 2000000
    with pytest.raises(UsageError, match=r"--to 900000: the driver offers 800000, 2000000, 3000000 \(kHz\)"):
        frequency.checked(policy, "--to", 900000, policy.high)


def test_without_fixed_steps_the_range_decides() -> None:
    policy = Policy(0, frozenset({0, 1}), "intel_pstate", 800000, 3000000, ())
    assert frequency.checked(policy, "--to", 1234567, 0) == 1234567
    with pytest.raises(UsageError, match="from 800000 to 3000000"):
        frequency.checked(policy, "--to", 5, 0)


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--trials", "5"], "--trials 5: at least 20"), (["--cpu", "x"], "x")]
)
def test_wrong_options_are_one_line_before_the_host_is_looked_at(arguments: list[str], words: str) -> None:
    done = cbench("step", "hash", *arguments)
    assert done.returncode == 2
    assert words in error_line(done)


RANDOM = """
#include <stdint.h>
static uint64_t state = 1;
uint64_t run(void *unused, uint64_t n)
{
    (void)unused;
    for (int i = 0; i < 1000000; i++)
        state = state * 6364136223846793005u + n + 1;
    return state;
}
"""


@pytest.mark.slow
def test_results_that_differ_between_trials_are_called_non_deterministic(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a host whose frequency can be changed: here that is a small tree of files."""
    source = tmp_path / "random.c"
    source.write_text(RANDOM)
    policy = frequency.policy(host, 2)
    monkeypatch.setattr(run.step_frequency, "policy", lambda *_: policy)
    monkeypatch.setattr(measure, "Host", lambda: host)
    with pytest.raises(typer.Exit) as ended:
        command.step(f"{source}:run", trials=400, timeout=30, counter="auto", as_json=True)
    said = capsys.readouterr()
    assert ended.value.exit_code == 1
    assert "non-deterministic: it returned 400 different results in 400 trials" in said.err
    made = json.loads(said.out)
    assert made["outputs"] == 400
    assert "non-deterministic" in made["verdict"]


# The series


def series(before: float, after: float, at: int, count: int, seed: int = 1) -> list[float]:
    """Times with 1 % noise and now and then an interruption of ten times the length."""
    dice = random.Random(seed)
    return [
        (before if n < at else after) * (1 + dice.random() / 100) * (10 if dice.random() < 0.02 else 1)
        for n in range(count)
    ]


@pytest.mark.parametrize("at", [20, 100, 371, 480])
@pytest.mark.parametrize(("before", "after"), [(300.0, 100.0), (100.0, 110.0)])
def test_the_trial_where_the_series_shifts_is_found(at: int, before: float, after: float) -> None:
    assert abs(measure.shift(series(before, after, at, 500)) - at) <= 1


def test_a_series_that_wanders_is_known_to_wander() -> None:
    assert measure.wobble(series(100, 100, 0, 400)) < 0.01
    assert measure.wobble([100.0] * 50 + [120.0] * 350) > 0.15
    assert measure.wobble([100.0] * 3) == 0

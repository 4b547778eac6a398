"""The short report of `cbench run`: a headline, how it repeats, what disturbed it."""

from __future__ import annotations

import random
from dataclasses import replace

from cbench.measure.result import WorkloadResult, workload_result
from cbench.model import Counter, Result, Session, Settling, Trial, TrialCause
from cbench.run.lines import MOST_LINES, histogram, workload_lines
from cbench.stats.headline import Headline
from cbench.workloads import registry
from tests.cbench.stats.cores import COUNTER, Core, trials

CYCLES = Counter("cycles", "cycles", True, "core cycles", "read", 1, 30, 30)


def made(counter: Counter, *processes: list[Trial], size: int = 0) -> WorkloadResult:
    sessions = tuple(
        Session(counter, tuple(each), Settling((1, 2, 3)), "all", "fixed", "none", "/proc", 0, ticks_per_second=2.4e9)
        for each in processes
    )
    params = {"n": 20_000} | ({"size": size} if size else {})
    return workload_result(Result(registry.find("chase" if size else "hash"), params, 1, False, sessions), True)


def text(result: WorkloadResult) -> str:
    lines = workload_lines(result)
    assert len(lines) <= MOST_LINES
    return "\n".join(lines)


def test_calibrated_cycles_come_with_an_interval_a_time_and_a_verdict() -> None:
    found = text(made(COUNTER, trials(Core(interrupted=0.3))))
    assert found.startswith("hash (n=20,000) on CPU 1 (housekeeping)\n  240,")
    for part in (
        " cycles (calibrated), 2",
        " us at 3.1",
        "trials with agreeing chains lie densest",
        "repeats to ±0.0",
    ):
        assert part in found


def test_a_shared_core_is_reported_with_the_slowdown_of_its_chains() -> None:
    core = Core(shared=lambda now: int(now // 30e6) % 3 > 0, interrupted=0)
    assert "because the core was shared with another thread (wide chains took 1.83 times as long)" in text(
        made(COUNTER, trials(core))
    )


def test_a_missing_number_is_reported_once_with_its_reason() -> None:
    found = text(made(COUNTER, trials(Core(shared=lambda _: True))))
    assert "\n  cannot tell: the core is shared all the time" in found
    assert found.count("cannot tell") == 1
    assert "|" not in found


def test_a_floor_that_repeats_is_the_headline_of_counted_cycles() -> None:
    counted = [Trial(100, 7)] * 30 + [Trial(150, 7, (TrialCause("interrupt", "LOC"),))]
    result = made(CYCLES, counted)
    assert result.headline == Headline(100, "cycles", (100.0, 100.0), "the floor")
    found = text(result)
    assert "  100 cycles, 100 to 100" in found
    assert "disturbed: interrupt LOC 1" in found


def test_context_switches_are_one_cause_whatever_their_number() -> None:
    causes = ["0 voluntary, 1 involuntary", "0 voluntary, 2 involuntary"]
    switched = [Trial(150, 7, (TrialCause("context switch", name),)) for name in causes]
    assert "disturbed: context switch 2" in text(made(CYCLES, [Trial(100, 7)] * 30 + switched))


def test_trials_in_which_another_task_ran_are_no_values_of_calibrated_cycles() -> None:
    found = trials(Core(interrupted=0))
    switch = TrialCause("context switch", "0 voluntary, 1 involuntary")
    result = made(COUNTER, [*found[:-1], replace(found[-1], causes=(switch,))])
    assert len(result.kept_values) == len(found) - 1
    assert result.polluted[-1].left_out


def test_counted_cycles_that_do_not_repeat_have_a_center() -> None:
    dice = random.Random(1)
    result = made(CYCLES, [Trial(round(1e6 + dice.gauss(0, 5000)), 7) for _ in range(300)])
    assert result.headline.value is not None
    assert abs(result.headline.value - 1e6) < 3000
    assert "lie densest" in result.headline.how


def test_several_processes_show_how_far_their_headlines_lie_apart() -> None:
    processes = [trials(Core(random=random.Random(seed))) for seed in range(8)]
    result = made(COUNTER, *processes)
    assert "headlines of 8 processes: range " in text(result)
    assert all(each.headline is not None for each in result.processes.each)


def test_work_in_memory_says_that_its_cycles_depend_on_the_frequency() -> None:
    found = trials(Core())
    assert "depend on the frequency" in text(made(COUNTER, found, size=2**24))
    assert "depend on the frequency" not in text(made(COUNTER, found, size=2**14))
    assert "depend on the frequency" not in text(
        made(CYCLES, [replace(each, chains=None) for each in found], size=2**24)
    )


def test_fully_interrupted_series_are_reported_and_a_few_interrupted_trials_do_not_affect_the_headline() -> None:
    found = trials(Core(interrupted=0))
    longer = [replace(each, causes=(TrialCause("interrupt", "LOC"),)) for each in found]
    assert "most of these trials were interrupted" in text(made(COUNTER, longer))
    mixed = made(COUNTER, found + longer[:50])
    assert "most of these trials" not in text(mixed)
    assert mixed.headline == made(COUNTER, found).headline


def test_the_histogram_counts_every_value_or_says_how_many_lie_beyond() -> None:
    (line,) = histogram([*range(100), 10_000], Headline(50.0, "cycles", (30.0, 60.0), ""))
    assert line.startswith("0 |")
    assert line.endswith(", 5 beyond")
    assert histogram([5] * 100, Headline(5.0, "cycles", (5.0, 5.0), "")) == []

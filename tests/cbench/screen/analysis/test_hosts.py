"""One screen on several hosts, host by host: planted effects, a host with a different effect, and one with a different
speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from cbench.results import to_json
from cbench.screen.analysis.analysis import analyse
from cbench.screen.analysis.host_results import FactorByHost
from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.analysis.result import ScreenResult
from cbench.screen.data import hosts
from cbench.screen.data.data import Data, ResponseSeries
from cbench.screen.design.factorial import Factor
from cbench.screen.report import page

NAMES = tuple(f"n{number}" for number in range(5))
FACTORS = (Factor("size", ("small", "large"), False), Factor("way", ("a", "b", "c"), False))
BLOCKS = 12


def part(seed: int, level: float, effect: float, hard: bool = False) -> Data:
    """One host: its level, and by how many percent size=large is slower. A hard size has each level in six batches."""
    draw = np.random.default_rng(seed)
    factors = (Factor("size", ("small", "large"), hard), FACTORS[1])
    treatments = tuple(product(range(2), range(3)))
    rows = []
    for block in range(BLOCKS):
        wander = 1 + 0.02 * draw.normal()
        for number, (size, _) in enumerate(treatments):
            if hard and size != block % 2:
                continue
            value = level * wander * (1 + effect / 100 * size) * (1 + 0.01 * draw.normal())
            rows.append((number, 0 if hard else block, block if hard else 0, len(rows), value))
    treatment, iteration, batch, sequence, value = (np.array(each) for each in zip(*rows, strict=True))
    codes = [each.astype(np.int32) for each in (treatment, iteration, batch, sequence)]
    series = ResponseSeries("wall", "", "wall", "s", "lower", *codes, value)
    batches = tuple(str(each) for each in range(BLOCKS if hard else 1))
    return Data("screen", factors, treatments, (series,), batches)


def analysed(
    effects: Mapping[str, float], levels: Mapping[str, float] | None = None, hard: bool = False
) -> tuple[ScreenResult, Data]:
    parts = [
        part(seed, (levels or {}).get(name, 100 * (1 + 0.05 * seed)), effects.get(name, 5.0), hard)
        for seed, name in enumerate(NAMES)
    ]
    data = hosts.combined(parts, NAMES)
    return analyse(data, ScreenOptions(subsamples=0)), data


def of_size(result: ScreenResult) -> FactorByHost:
    found = result.responses["wall"].hosts
    assert found is not None
    return next(each for each in found.effects if each.factor == "size")


@pytest.mark.parametrize("hard", [False, True])
def test_each_host_has_its_effect_with_an_interval_and_no_host_is_unlike(hard: bool) -> None:
    result, _ = analysed({}, hard=hard)
    size = of_size(result)
    assert [each.host for each in size.hosts] == list(NAMES)
    for each in size.hosts:
        assert each.interval is not None
        assert each.interval[0] < 5.5 < each.interval[1] if hard else each.effect == pytest.approx(5.5, abs=1.5)
        assert each.n == BLOCKS
    assert not size.significant
    assert result.hosts is not None
    assert all(each.p_holm >= 0.05 for each in result.hosts.unlike)
    assert not any("unlike the other hosts" in line or "differs between hosts" in line for line in result.verdict)


def test_a_host_with_another_effect_is_named_and_the_interaction_is_significant() -> None:
    result, _ = analysed({"n3": 15.0})
    assert of_size(result).significant
    assert result.hosts is not None
    assert (result.hosts.unlike[0].host, result.hosts.unlike[0].what) == ("n3", "size: large against small")
    assert any(
        line.startswith("the effect differs between hosts: wall size: large against small") for line in result.verdict
    )
    assert any(line.startswith("unlike the other hosts: n3 (wall, another effect of size") for line in result.verdict)


def test_a_host_of_another_speed_is_named_and_its_effect_is_not() -> None:
    result, _ = analysed({}, {"n2": 400.0})
    assert result.hosts is not None
    unlike = [(each.host, each.what) for each in result.hosts.unlike if each.p_holm < 0.05]
    assert unlike == [("n2", "level")]
    assert any("% above them" in line for line in result.verdict)


def test_a_factor_of_three_levels_has_two_differences_on_each_host() -> None:
    found = analysed({})[0].responses["wall"].hosts
    assert found is not None
    assert [each.levels for each in found.effects if each.factor == "way"] == [("a", "b"), ("a", "c")]


def test_an_iteration_that_lacks_a_value_counts_on_no_host() -> None:
    data = hosts.combined([part(seed, 100, 5) for seed in range(3)], NAMES[:3])
    data.series[0].value[0] = np.nan
    found = analyse(data, ScreenOptions(subsamples=0)).responses["wall"].hosts
    assert found is not None
    assert [each.n for each in found.effects[0].hosts] == [BLOCKS - 1, BLOCKS, BLOCKS]


def test_one_host_has_no_hosts_and_several_are_in_the_json() -> None:
    alone = to_json(analyse(part(1, 100, 5), ScreenOptions(subsamples=0)))
    assert isinstance(alone, dict)
    assert "hosts" not in alone
    several = to_json(analysed({"n3": 15.0})[0])
    assert isinstance(several, dict)
    assert several["hosts"]["names"] == list(NAMES)  # type: ignore[index, call-overload]


@pytest.mark.slow
def test_several_hosts_are_on_the_page() -> None:
    result, data = analysed({"n3": 15.0})
    written = page.page(result, data)
    assert "Effects by host" in written
    assert "size: large - small" in written

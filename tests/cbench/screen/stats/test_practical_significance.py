"""Effects beside the intervals of samples of usual sizes."""

from __future__ import annotations

import pytest

from cbench.screen.stats.practical_significance import Materiality, OwnWidths, materiality
from cbench.screen.stats.subsampling import StudiedSize
from cbench.stats.interval import BCA, T

Study = tuple[StudiedSize, ...]


def material(effects: dict[str, float], spans: list[float], studies: list[Study]) -> Materiality:
    return materiality(effects, spans or [1.0], studies, OwnWidths(9, None, None))


def study(widths: dict[int, float], wider: float = 1.0) -> Study:
    """With these median widths of t intervals, and BCa ones `wider` times as wide."""
    return tuple(
        StudiedSize(n, method, (width * by / 2, width * by, width * by * 2), 0.9, 0.03, 100, 0)
        for n, width in widths.items()
        for method, by in ((T, 1.0), (BCA, wider))
    )


WIDTHS = {5: 1.0, 40: 0.2, 160: 0.06, 320: 0.04, 640: 0.01}
EFFECTS = {"os": 0.05, "fp": -0.053, "prf": 0.19}


def test_the_smallest_n_is_the_one_whose_median_width_is_below_the_median_effect() -> None:
    found = material(EFFECTS, [2.0], [study(WIDTHS, wider=1.4)])
    assert (found.median_effect, found.largest_effect, found.range) == (0.053, 0.19, 2.0)
    assert found.enough == {T: 320, BCA: 640}


def test_each_effect_is_told_beside_range_and_width() -> None:
    found = material(EFFECTS, [2.0], [study(WIDTHS)])
    assert {name: each.magnitude for name, each in found.effects.items()} == {"os": 0.05, "fp": 0.053, "prf": 0.19}
    assert [each.of_range for each in found.effects.values()] == pytest.approx([0.025, 0.0265, 0.095])
    assert [each.detected_from[T] for each in found.effects.values()] == [320, 320, 160]
    first = found.widths[0]
    assert (first.method, first.n, first.median_width) == (T, 5, 1.0)
    assert [each.n for each in found.widths] == [5, 40, 160, 320, 640] * 2


def test_an_effect_as_wide_as_the_interval_is_not_seen() -> None:
    assert material({"a": 0.2}, [], [study({40: 0.2, 80: 0.19})]).enough[T] == 80


def test_a_size_counts_only_if_all_larger_ones_do() -> None:
    assert material({"a": 0.2}, [], [study({5: 0.1, 10: 0.4, 20: 0.1})]).enough[T] == 20


def test_what_no_size_shows_is_none() -> None:
    found = material({"a": 0.001}, [1.0], [study(WIDTHS)])
    assert found.enough == {T: None, BCA: None}
    assert found.effects["a"].detected_from == {T: None, BCA: None}


def test_of_several_treatments_the_median_width_and_range_count() -> None:
    studies = [study({5: width, 10: 0.1}) for width in (1.0, 3.0, 10.0)]
    studies[0] = study({5: 1.0})
    found = material({"a": 3.5}, [1.0, 2.0, 9.0], studies)
    assert [(each.n, each.median_width) for each in found.widths if each.method == T] == [(5, 3.0)]
    assert (found.range, found.enough[T]) == (2.0, 5)


def test_without_effects_or_studies_it_says_so() -> None:
    found = material({}, [], [])
    assert (found.effects, found.median_effect, found.largest_effect, found.enough) == ({}, None, None, {})
    assert found.why == "there are no effects"
    assert material({"a": float("nan"), "b": 1.0}, [0.0], [study(WIDTHS)]).why == "no finite numbers: a"


def test_no_range_means_no_share_of_it() -> None:
    assert material({"a": 1.0}, [0.0], []).effects["a"].of_range is None

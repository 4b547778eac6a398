"""Samples of one value only: nothing differs, whatever their size."""

from __future__ import annotations

import numpy as np
import pytest

from cbench.order.stats.permutation import COUNTED, p_value


@pytest.mark.parametrize("each", [1, 5, COUNTED // 2, 30, 1000])
def test_samples_in_which_all_values_are_alike_do_not_differ(each: int) -> None:
    assert p_value(0.0, np.array([2.0 * each]), each, each) == 1

"""One change of frequency in the middle of a series, as `make thesis` prints figure 5-1."""

from __future__ import annotations

import pytest

from tests.lab.harness.model import Machine
from tests.lab.thesis import __main__ as thesis

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["cpufreq"], indirect=True)]


def test_the_frequency_changes_at_half_time_between_two_trials(machine: Machine) -> None:
    made = thesis.stepped(machine)
    assert (made["from_khz"], made["to_khz"], made["seen_khz"]) == (1_000_000, 3_000_000, [1_000_000, 3_000_000])
    assert len(made["trials"]) == len(made["trials_ns"]) == 800
    assert 400 <= made["written_after"] < 800

"""A boot is requested once, regardless of how many tests need its results."""

from __future__ import annotations

import pytest

from tests.lab.harness.once import once


def test_a_failed_boot_is_not_repeated() -> None:
    boots = []

    @once
    def boot(machine: str) -> str:
        boots.append(machine)
        if machine == "dead":
            pytest.skip("no such machine")
        return f"{machine} said"

    assert [boot("a"), boot("a")] == ["a said", "a said"]
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception, match="no such machine"):
            boot("dead")
    assert boots == ["a", "dead"]

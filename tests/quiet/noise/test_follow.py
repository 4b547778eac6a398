"""The follower of trials without a trace."""

from __future__ import annotations

from quiet.host.host import Host
from quiet.noise.follow import Follower


def test_ticks_can_be_converted_before_anything_was_taken() -> None:
    with Follower(Host(), frozenset({0})) as follower:
        assert 0 < follower.ns(1_000_000) < 1e10

"""Repair: apply again, by the same journal and the same engine. What was found first stays what a restore puts back."""

from __future__ import annotations

from collections.abc import Iterable

from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.settings import engine, journal
from quiet.settings.apply import apply
from quiet.settings.engine import Write
from quiet.settings.plan import Change
from quiet.settings.profile import Profile
from quiet.targets import value_types
from quiet.watch.watched_files import CPUS

_PATIENCE_S = 5  # for another quiet that is at work


def again(host: Host, profile: Profile, opened: Iterable[Change]) -> dict[str, str]:
    """Set again what has drifted; the reasons of what was not, by target. Raises QuietError when nothing could be."""
    _cpus_back(host, [change for change in opened if change.knob == CPUS])
    receipt = apply(host, profile, patience=_PATIENCE_S, again=True)
    return {item.target: item.reason for item in (*receipt.skips, *receipt.failures)}


def _cpus_back(host: Host, changes: list[Change]) -> None:
    """CPUs that were online when the profile was applied: that is how they were found, so nothing is recorded."""
    writes = [Write(change.target, "1", value_types.NUMBER) for change in changes]
    if writes:
        with locked(host, _PATIENCE_S):
            if journal.load(host) is not None:
                engine.settle(host, writes, lambda write: None, lambda write, found: None)

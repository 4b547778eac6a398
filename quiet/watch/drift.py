"""Detect drift by planning knobs again, keep a ledger of open drifts, and repair drift by another apply."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.host.reader import Reader
from quiet.knobs.registry import BY_NAME
from quiet.machine.facts import CPU, Facts
from quiet.settings import engine, journal, plan
from quiet.settings.applied_state import AppliedState
from quiet.settings.apply import apply
from quiet.settings.engine import Write
from quiet.settings.plan import Change
from quiet.settings.profile import Profile
from quiet.targets import value_types
from quiet.watch.watched_files import CPUS

_PATIENCE_S = 5  # time to wait for another quiet process, in seconds
_GONE = "a CPU of the applied profile has gone offline"


def check(reader: Reader, profile: Profile, state: AppliedState, facts: Facts, names: set[str] | None) -> list[Change]:
    """The changes that an apply would make now for these knobs (None: all knobs)."""
    chosen = profile
    if names is not None:
        wanted = names | {BY_NAME[name].needs for name in names if name in BY_NAME}
        knobs = {name: choice for name, choice in profile.knobs.items() if name in wanted}
        chosen = profile._replace(knobs=knobs)
    planned = plan.make(reader, chosen, state.cpus, state.accepted(), state.refused, facts)
    return [*_offline(state, facts), *planned.changes]


def _offline(state: AppliedState, facts: Facts) -> list[Change]:
    """The drifts of CPUs that have gone offline since the profile was applied; no knob covers them."""
    gone = sorted((state.cpus.isolated | state.cpus.housekeeping) & facts.present - facts.online)
    return [
        Change(CPUS, f"file:{CPU}/cpu{cpu}/online", "0", "1", _GONE, value_types.NUMBER, f"CPU {cpu}") for cpu in gone
    ]


@dataclass(slots=True)
class Ledger:
    """The open drifts by target, and the total numbers of drifts detected and repaired."""

    open: dict[str, Change] = field(default_factory=dict)
    seen: int = 0
    repaired: int = 0

    def update(self, changes: Iterable[Change], names: set[str] | None) -> tuple[list[Change], list[Change]]:
        """Update the ledger with the changes from a check of these knobs (None: all).

        Returns the new drifts, and the drifts that have ended.
        """
        now = {change.target: change for change in changes}
        new = [change for target, change in now.items() if target not in self.open]
        checked = None if names is None else names | {CPUS}
        over = [c for t, c in self.open.items() if t not in now and (checked is None or c.knob in checked)]
        for change in over:
            del self.open[change.target]
        self.open.update(now)
        self.seen += len(new)
        return new, over


def repair(host: Host, profile: Profile, drifts: Iterable[Change]) -> dict[str, str]:
    """Apply the profile again with the same journal and engine, so that a restore still writes the original values.

    Returns the reasons for skips and failures, by target. Raises QuietError if nothing could be applied.
    """
    offline = [Write(change.target, "1", value_types.NUMBER) for change in drifts if change.knob == CPUS]
    if offline:  # the CPUs were online during the apply, so nothing has to be recorded
        with locked(host, _PATIENCE_S):
            if journal.load(host) is not None:
                engine.settle(host, offline, lambda write: None, lambda write, value: None)
    receipt = apply(host, profile, patience=_PATIENCE_S, again=True)
    return {item.target: item.reason for item in (*receipt.skips, *receipt.failures)}

"""What has drifted: a plan for some knobs, and the list of what is open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quiet.host.reader import Reader
from quiet.knobs.registry import BY_NAME
from quiet.machine.facts import CPU, Facts
from quiet.settings import plan
from quiet.settings.applied_state import AppliedState
from quiet.settings.plan import Change
from quiet.settings.profile import Profile
from quiet.targets import value_types
from quiet.watch.watched_files import CPUS

_GONE = "a CPU of the applied profile has gone offline"


def look(reader: Reader, profile: Profile, record: AppliedState, facts: Facts, names: set[str] | None) -> list[Change]:
    """What apply would change now, by these knobs or by all."""
    chosen = profile
    if names is not None:
        wanted = names | {BY_NAME[name].needs for name in names if name in BY_NAME}
        knobs = {name: choice for name, choice in profile.knobs.items() if name in wanted}
        chosen = profile._replace(knobs=knobs)
    made = plan.make(reader, chosen, record.cpus, record.accepted(), record.refused, facts)
    return [*_offline(record, facts), *made.changes]


def _offline(record: AppliedState, facts: Facts) -> list[Change]:
    """CPUs that were online when the profile was applied, which no knob says, and are not now."""
    gone = sorted((record.cpus.isolated | record.cpus.housekeeping) & facts.present - facts.online)
    return [
        Change(CPUS, f"file:{CPU}/cpu{cpu}/online", "0", "1", _GONE, value_types.NUMBER, f"CPU {cpu}") for cpu in gone
    ]


@dataclass(slots=True)
class Ledger:
    """The drifts that are open, and how many there were."""

    open: dict[str, Change] = field(default_factory=dict)
    seen: int = 0
    repaired: int = 0

    def update(self, changes: Iterable[Change], names: set[str] | None) -> tuple[list[Change], list[Change]]:
        """Take in a look by these knobs (None: by all); what is new, and what is no longer."""
        now = {change.target: change for change in changes}
        new = [change for target, change in now.items() if target not in self.open]
        looked = None if names is None else names | {CPUS}
        gone = [c for t, c in self.open.items() if t not in now and (looked is None or c.knob in looked)]
        for change in gone:
            del self.open[change.target]
        self.open.update(now)
        self.seen += len(new)
        return new, gone

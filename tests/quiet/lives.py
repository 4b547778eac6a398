"""One life of a synthetic machine: planned, applied, changed by others, killed anywhere, restored; every property is
checked on the way.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

import pytest

from quiet.errors import QuietError, Refused
from quiet.knobs.registry import BY_NAME
from quiet.machine import write_access
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.settings import journal
from quiet.settings.applied_state import AppliedState
from quiet.settings.apply import Receipt, apply
from quiet.settings.plan import Plan
from quiet.settings.restore import Outcome, restore
from quiet.settings.verify import plan_now
from quiet.targets import value_types
from tests.quiet.made_up import files, meddle, meddling, profiles, stubborn
from tests.quiet.memory import Killed, Memory, dying
from tests.trees import CPU

# what a file's text may stand for; a unit's words would make all files alike
MEANINGS = (
    value_types.TEXT,
    value_types.NUMBER,
    value_types.NUMBERS,
    value_types.CPULIST,
    value_types.CPUMASK,
    value_types.CHOICE,
)
_ONLINE = f"/{CPU}/online"  # made by the kernel of what each CPU's own file says


class Life:
    """The known facts about a simulated machine. `counts`: how often each thing has happened, over many lives."""

    def __init__(self, random: Random, root: Path, counts: dict[str, int]) -> None:
        shutil.rmtree(root / "run", ignore_errors=True)
        self.random, self.counts = random, counts
        found, cpus = files(random)
        closed = frozenset(f"/{name}" for name in found if name.endswith("_list") and random.random() < 0.1)
        self.host = Memory(str(root), found, closed)
        self.wanted = profiles(random, cpus)
        self.first = dict(self.host.files)
        self.touched: set[str] = set()  # by another program
        self.theirs: dict[str, str] = {}  # values that another program wrote over ours

    def live(self) -> None:
        """Raises AssertionError where a law does not hold."""
        self._tell("hosts")
        try:
            chosen = self.wanted.choose(Facts(self.host))
        except QuietError:
            self._nothing_can_be_applied()
            self._tell("no CPUs to isolate")
            return
        split(chosen, Facts(self.host))
        planned = plan_now(self.host, self.wanted, None)[0]
        assert self.host.files == self.first, "a plan writes"
        if write_access.whole(Facts(self.host)):
            assert planned.changes == ()
            self._nothing_can_be_applied()
            self._tell("confined")
            return
        self._apply(planned)
        self._restore()

    def _nothing_can_be_applied(self) -> None:
        with pytest.raises(QuietError), dying(0):
            apply(self.host, self.wanted)
        assert self.host.files == self.first

    def _apply(self, planned: Plan) -> None:
        random = self.random
        stubborn(random, self.host)
        if random.random() < 0.2:
            self.host.laws.append(meddling(random, self.touched))
        with dying(random.choice([0, 0, random.randrange(1, 150)]), torn=random.random() < 0.5):
            try:
                done = apply(self.host, self.wanted)
            except Killed:
                self._tell("killed while applying")
                return
            except Refused:  # a rival runs, and the profile says so
                assert set(changed(self.first, self.host.files)) <= self.touched
                self._tell("refused")
                return
        self._tell("applied")
        self._is_settled(planned, done)

    def _is_settled(self, planned: Plan, done: Receipt) -> None:
        if self.touched or self._gone():
            return
        assert {c.target for c in planned.changes} <= {item.target for item in (*done.changes, *done.skips)}
        again, record = plan_now(self.host, self.wanted, None)
        assert record is not None
        assert again.changes == (), "a second plan is not empty"
        split(record.cpus, Facts(self.host))

    def _restore(self) -> None:
        random = self.random
        if random.random() < 0.7:
            self.host.laws.clear()
        record = journal.load(self.host)
        before = dict(self.host.files)
        self.touched |= meddle(random, self.host, 2) if random.random() < 0.4 else set()
        if record and record.complete and not self._gone():
            self.theirs = {
                p: self.host.files[p] for p in changed(before, self.host.files) if self._is_another(p, record)
            }
        written = {e.target: e.before for e in record.entries.values() if e.wanted is not None} if record else {}
        with dying(random.choice([0, 0, random.randrange(1, 60)]), torn=random.random() < 0.5):
            try:
                self._is_back(restore(self.host), written)
            except Killed:
                self._tell("killed while restoring")
            else:
                return
        with dying(0):
            self._is_back(restore(self.host), written)

    def _is_back(self, outcome: Outcome, written: Mapping[str, str | None]) -> None:
        named = {skip.target for skip in (*outcome.conflicts, *outcome.failures)}
        differing = set(changed(self.first, self.host.files))
        gone = self._gone() | {path for path in differing if target(path) in outcome.gone}
        if not any(path.endswith("/online") and path != _ONLINE for path in differing):
            assert _ONLINE not in differing
        for path in differing - {_ONLINE} - gone:
            if target(path) not in named:
                assert path in self.touched, f"{path} is left changed, and nobody says so"
                # it may have been another's before it was ours: then it is as we found it
                found = written.get(target(path), self.host.files[path])
                assert found == self.host.text(path), f"{path} was ours, then another's, and nobody says so"
        for path, value in self.theirs.items():
            assert self.host.files[path] == value, f"{path} belongs to another program, and is overwritten"
        assert outcome.complete == (not named)
        assert (journal.load(self.host) is None) == outcome.complete
        self._tell("restored" if outcome.complete else "restored but for what is named")

    def _is_another(self, path: str, record: AppliedState) -> bool:
        """Whether the value is neither the original, nor ours, nor one that the kernel changes by itself."""
        entry = record.entries.get(target(path))
        if entry is None:
            return True
        ours = (entry.before, entry.wanted, entry.after, record.settled[entry.target])
        alike = any(value_types.same(entry.kind, self.host.text(path), value) for value in ours)
        return not alike and not BY_NAME[entry.knob].drifts

    def _gone(self) -> set[str]:
        return set(self.first) - set(self.host.files)

    def _tell(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def split(cpus: CpuPartition, facts: Facts) -> None:
    """The sets are disjoint, run, and leave a CPU for housekeeping."""
    assert cpus.isolated
    assert cpus.housekeeping
    assert not cpus.isolated & cpus.housekeeping
    assert not cpus.offline & (cpus.isolated | cpus.housekeeping)
    assert cpus.isolated | cpus.housekeeping <= facts.online
    assert cpus.housekeeping - cpus.offline


def changed(first: Mapping[str, str], now: Mapping[str, str]) -> Iterable[str]:
    """The paths whose contents mean another thing than they did, or are there only now, or no more."""
    for path in first.keys() | now.keys():
        a, b = first.get(path), now.get(path)
        if a != b and (
            a is None or b is None or not any(value_types.same(kind, a.strip(), b.strip()) for kind in MEANINGS)
        ):
            yield path


def target(path: str) -> str:
    """The name under which quiet knows a file."""
    parts = path.split("/")
    if path.startswith("/proc/irq/") and path.endswith("smp_affinity_list"):
        return f"irq:{parts[3]}"
    if parts[1] == "proc" and parts[2].isdecimal():
        return {"status": f"task:{parts[2]}", "cpuset": f"cpuset:{parts[2]}"}.get(parts[-1], f"process:{parts[2]}")
    if path.startswith("/sys/devices/virtual/workqueue/"):
        return f"workqueue:{parts[5]}" if len(parts) > 6 else "workqueue:global"
    for mount in ("/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"):
        if path.startswith(mount + "/"):
            name = path.removeprefix(mount)
            return "cgroup:/+cpuset" if name == "/cgroup.subtree_control" else f"cgroup:{name}"
    if path == "/proc/sys/kernel/soft_watchdog":
        return "lockup:soft"
    return f"file:{path}"

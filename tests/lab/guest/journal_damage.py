"""Runs in the guest: damages the journal of one real apply in a thousand ways, and restores each time.

`python -m tests.lab.guest.journal_damage [--cuts 200] [--flips 500] [--seed N]`, which `make fuzz-journal` starts. The
journal is cut off before every line and at random bytes, and random bits are flipped. After each, `quiet restore` must
either exit with 0 and the host as it was, or with 4, the damage named, and the journal and a copy of it kept.

An apply takes an emulated processor too long to do it a thousand times: between two cases the values that apply has
written are written again, in its order, and the good journal is put in place. So the profile has only knobs whose
values are in files. What apply changed is compared after each case, everything that snapshot.py knows after every tenth
and wherever restore has exited with 0.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import quiet.cli.app
import quiet.cli.settings
import quiet.cli.text
import quiet.settings.restore  # noqa: F401 - what the forks would each load
from quiet.host.host import Host
from quiet.settings import applied_state
from quiet.targets import registry
from tests.lab.guest import disturb, snapshot
from tests.lab.guest.drive import Report, called, differences
from tests.lab.guest.drive import quiet as command

JOURNAL = Path("/run/quiet/journal.jsonl")
PROFILE = """\
name = "files"
summary = "Settings that are values in files."
[knobs]
"irq.default" = "quiet"
irq = "quiet"
workqueue = "quiet"
"idle.cpus" = "quiet"
timer_migration = "quiet"
"watchdog.cpus" = "quiet"
rt_throttling = "quiet"
"perf.sample_rate" = "quiet"
"accounting.sched" = "quiet"
"accounting.delays" = "quiet"
"accounting.bpf" = "quiet"
thp = "quiet"
"thp.defrag" = "quiet"
ksm = "quiet"
"vm.stat_interval" = 120
"vm.compaction" = "quiet"
"vm.watermark_boost" = "quiet"
"writeback.interval" = "quiet"
"writeback.laptop_mode" = "quiet"
"console.loglevel" = "quiet"
"rcu.expedited" = "quiet"
"""
WIDE_EVERY = 10


class Applied:
    """The host with the profile applied, as often as requested."""

    def __init__(self) -> None:
        profile = Path("/tmp/files.toml")
        profile.write_text(PROFILE)
        disturb.disturb()
        self.wide = snapshot.take()
        called("apply", "--profile", str(profile))  # effects of the kernel only at the first writes
        called("restore")
        self.warm_up = differences(self.wide)
        self.wide = snapshot.take()
        code = called("apply", "--profile", str(profile))
        self.journal = JOURNAL.read_bytes()
        changed = snapshot.take()["files"]
        self.before = {name: text for name, text in self.wide["files"].items() if changed.get(name) != text}
        self.after = {name: changed[name] for name in self.before}
        entries = applied_state.read(self.journal).entries.values()
        self.writes = [(entry.target, entry.wanted) for entry in entries if entry.wanted is not None]
        lines = len(self.journal.splitlines())
        print(f"applied ({code}): {len(self.writes)} settings written, {len(self.before)} files differ, {lines} lines")

    def now(self) -> dict[str, str]:
        return {name: Path(name).read_text() for name in self.before}

    def again(self) -> None:
        """Apply, by writing the same values."""
        host = Host("/")
        for target, value in self.writes:
            registry.put(host, target, value)
        for copy in JOURNAL.parent.glob("journal.damaged-*"):
            copy.unlink()
        now = self.now()
        assert now == self.after, {name: now[name] for name in now if now[name] != self.after[name]}


def cases(journal: bytes, lines: bool, cuts: int, flips: int, draw: random.Random) -> Iterator[tuple[str, str, bytes]]:
    """The kind of damage, its number, and the damaged journal."""
    ends = [0, *(n + 1 for n, byte in enumerate(journal) if byte == ord("\n"))]
    for number, end in enumerate(ends[:-1] if lines else (), 1):
        yield "cut before a line", f"line {number}", journal[:end]
    for _ in range(cuts):
        at = draw.randrange(len(journal))
        yield "cut at a byte", f"byte {at}", journal[:at]
    for _ in range(flips):
        at, bit = draw.randrange(len(journal)), draw.randrange(8)
        yield (
            "a flipped bit",
            f"byte {at} bit {bit}",
            journal[:at] + bytes([journal[at] ^ 1 << bit]) + journal[at + 1 :],
        )


def judged(applied: Applied, data: bytes, wide: bool) -> tuple[str, list[str]]:
    """The result of restoring a damaged journal, and the broken promises."""
    JOURNAL.write_bytes(data)
    done = command("restore")
    differing = [name for name, text in applied.now().items() if text != applied.before[name]]
    wide = wide or done["code"] == 0
    everything = [line for line in differences(applied.wide) if line.split(":")[0] not in differing] if wide else []
    broken = [f"changed besides: {line}" for line in everything]
    if "Traceback" in done["err"] or "internal error" in done["err"] or done["code"] not in (0, 4):
        broken.append(f"exit code {done['code']}: {done['err'][-300:]}")
    if done["code"] == 0:
        broken += [f"exit code 0, and {name} is changed" for name in differing]
        return "restored, 0", broken
    if "journal is damaged" not in done["out"] + done["err"]:
        broken.append("the damage is not named")
    if not JOURNAL.exists() or JOURNAL.read_bytes() != data:
        broken.append("the journal is not kept")
    if [copy.read_bytes() for copy in JOURNAL.parent.glob("journal.damaged-*")] != [data]:
        broken.append("there is no copy of the journal")
    if not differing:
        return "restored, 4", broken
    named = all(name in done["out"] or target(name) in done["out"] for name in differing)
    return "left by name, 4" if named else "left, lines named, 4", broken


def target(path: str) -> str:
    """The possible name of a file in a message: "irq:45" for /proc/irq/45/smp_affinity_list, else the path."""
    match path.split("/"):
        case ["", "proc", "irq", number, _]:
            return f"irq:{number}"
        case ["", "sys", "devices", "virtual", "workqueue", name, _]:
            return f"workqueue:{name}"
    return path


def run(applied: Applied, lines: bool, cuts: int, flips: int, seed: int) -> Counter[str]:
    """How many cases broke a promise."""
    seen: dict[str, Counter[str]] = {}
    sums = Counter[str]()
    started = time.monotonic()
    for number, (kind, which, data) in enumerate(cases(applied.journal, lines, cuts, flips, random.Random(seed))):
        ended, broken = judged(applied, data, wide=number % WIDE_EVERY == 0)
        seen.setdefault(kind, Counter())[ended] += 1
        sums["broken"] += bool(broken)
        sums["wide"] += number % WIDE_EVERY == 0 or ended == "restored, 0"
        sums["cases"] += 1
        for line in broken:
            print(f"{kind}, {which}: {line}", flush=True)
        applied.again()
        if number % 50 == 0:
            print(f"{number} cases in {time.monotonic() - started:.0f} s: {counted(seen)}", flush=True)
    print(counted(seen))
    print(f"{sums['cases']} cases, {sums['wide']} wide snapshots, {sums['broken']} broke a promise")
    return sums


def counted(seen: Mapping[str, Counter[str]]) -> str:
    return "; ".join(f"{counts.total()} {kind}: {dict(counts)}" for kind, counts in seen.items())


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--no-lines", action="store_true", help="do not cut before every line")
    parser.add_argument("--seed", type=int, default=20241123)
    given = parser.parse_args()
    applied = Applied()
    assert not applied.warm_up, applied.warm_up
    sums = run(applied, not given.no_lines, given.cuts, given.flips, given.seed)
    JOURNAL.write_bytes(applied.journal)
    last: Report = command("restore")
    left = differences(applied.wide)
    print(f"the undamaged journal: exit code {last['code']}, {len(left)} differ {left[:3]}")
    return 1 if sums["broken"] or last["code"] or left else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs in the guest: damages the journal of a real apply, and applies and runs where /run/quiet has hardly any space.

`python -m tests.lab.guest.journal damage SEED` or `space` writes $LAB_OUT/report.json.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from quiet import Reader, applied_state
from tests.lab.guest import disturb, snapshot
from tests.lab.guest.drive import BENCH, Report, called, differences, quiet

JOURNAL = Path("/run/quiet/journal.jsonl")
NOBODY = 65534
SIZES_KIB = (4, 8, 12, 16, 32)
Damage = Callable[[bytes], bytes]


def flipped(draw: random.Random) -> Damage:
    at, bit = draw.random(), draw.randrange(8)

    def damage(data: bytes) -> bytes:
        where = int(at * len(data))
        return data[:where] + bytes([data[where] ^ 1 << bit]) + data[where + 1 :]

    return damage


def cut(draw: random.Random) -> Damage:
    share = draw.random()
    return lambda data: data[: int(share * len(data))]


def without(line: int) -> Damage:
    return lambda data: b"".join(text for n, text in enumerate(data.splitlines(keepends=True), 1) if n != line)


def lost_lines(good: bytes, data: bytes) -> int:
    """How many original values the damaged journal no longer has: from outside quiet, by the text alone."""
    whole = set(data.split(b"\n")[:-1])
    return sum(line not in whole for line in good.splitlines() if line.startswith(b'{"op":"before"'))


def damaged(report: Report, seed: int) -> None:
    draw = random.Random(seed)
    lost: dict[str, Damage] = {
        "empty": lambda data: b"",
        "random": lambda data: draw.randbytes(len(data)),
        "another operation": lambda data: data.replace(b'"op":"before"', b'"op":"before2"'),
        "no newline": lambda data: data[:100],
    }
    partly: dict[str, Damage] = {"no beginning": without(1), "a line removed": without(20)}
    partly |= {f"cut {number}": cut(draw) for number in range(3)}
    partly |= {f"flipped {number}": flipped(draw) for number in range(4)}
    disturb.disturb()
    before = snapshot.take()
    called("apply", *BENCH)
    called("restore")
    report["left_by_warm_up"] = differences(before)
    report["rounds"] = []
    quiet("apply", *BENCH)
    good = JOURNAL.read_bytes()
    for name, damage in lost.items():
        judged(report, name, before, good, damage(good), also=("status", "apply"))
    for name, make in (("fifo", os.mkfifo), ("folder", os.mkdir)):
        JOURNAL.unlink()
        make(JOURNAL)
        judged(report, name, before, good, None, also=("status", "apply"))
        (JOURNAL.unlink if name == "fifo" else JOURNAL.rmdir)()
        JOURNAL.write_bytes(good)
    ended(report, "after all of these", before)
    for name, damage in partly.items():
        quiet("apply", *BENCH)
        good = JOURNAL.read_bytes()
        judged(report, name, before, good, damage(good))
        JOURNAL.write_bytes(good)
        ended(report, name, before)
    quiet("apply", *BENCH)
    JOURNAL.write_bytes(JOURNAL.read_bytes()[:-30])
    report["damaged_by_command"] = quiet("restore")
    report["kept"] = quiet("restore", "--keep")
    report["left_by_kept"] = differences(before)
    script = f"truncate -s -30 {JOURNAL}"
    report["run"] = quiet("run", *BENCH, "--", "sh", "-c", script)
    report["left_by_run"] = differences(before)
    report["kept_by_run"] = quiet("restore", "--keep")


def judged(
    report: Report, name: str, before: snapshot.Snapshot, good: bytes, data: bytes | None, also: tuple[str, ...] = ()
) -> None:
    if data is not None:
        JOURNAL.write_bytes(data)
    round_: Report = {"name": name, "lost": lost_lines(good, data or b"")}
    round_ |= {command: quiet(command) for command in also}
    round_ |= {"restore": quiet("restore"), "left": differences(before)}
    round_["kept"] = JOURNAL.exists() and (data is None or JOURNAL.read_bytes() == data)
    report["rounds"].append(round_)
    print(
        f"{name}: restore {round_['restore']['code']}, {round_['lost']} lost, {len(round_['left'])} differ", flush=True
    )


def ended(report: Report, name: str, before: snapshot.Snapshot) -> None:
    """With the good journal in place again, everything is restored."""
    done = quiet("restore")
    report.setdefault("ended", {})[name] = {"code": done["code"], "left": differences(before), "out": done["out"]}


@contextlib.contextmanager
def small(kib: int) -> Iterator[None]:
    """/run/quiet on a file system of so many KiB."""
    JOURNAL.parent.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=755", "none", str(JOURNAL.parent)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(JOURNAL.parent)], check=True)


def filled() -> None:
    with contextlib.suppress(OSError), open(JOURNAL.parent / "filler", "wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()


def as_nobody() -> str | None:
    """The profile that a user without rights sees as applied, in a fork of this process: no other user may read our
    Python.
    """
    applied_state(Reader("/"))  # loads its dependencies
    out = Path(os.environ["LAB_OUT"], "nobody")
    with open(out, "w") as file:
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            state = applied_state(Reader("/"))
            file.write(state.profile if state else "nothing")
            file.flush()
            os._exit(0)
        os.waitpid(pid, 0)
    return out.read_text()


def spaces(report: Report) -> None:
    disturb.disturb()
    before = snapshot.take()
    called("apply", *BENCH)
    called("restore")
    report["left_by_warm_up"] = differences(before)
    report["sizes"] = {}
    for kib in SIZES_KIB:
        with small(kib):
            seen: Report = {"apply": quiet("apply", *BENCH), "left_by_apply": differences(before)}
            seen |= {"restore": quiet("restore"), "run": quiet("run", *BENCH, "--", "echo", "ran")}
            seen |= {"left": differences(before), "files": sorted(os.listdir(JOURNAL.parent))}
            report["sizes"][str(kib)] = seen
            print(f"{kib} KiB: apply {seen['apply']['code']}, run {seen['run']['code']}", flush=True)
    with small(2048):
        mask = os.umask(0o077)
        report["apply"] = quiet("apply", *BENCH)
        os.umask(mask)
        report["nobody"] = as_nobody()
        report["modes"] = {path.name: path.stat().st_mode & 0o777 for path in JOURNAL.parent.glob("*")}
        report["bytes"] = JOURNAL.stat().st_size
        filled()
        report["free"] = shutil.disk_usage(JOURNAL.parent).free
        report["restore"] = quiet("restore")
        report["left_by_restore"] = differences(before)
    with small(2048):
        for name in ("lock", "users"):
            (JOURNAL.parent / name).touch()
        filled()
        report["full"] = {"apply": quiet("apply", *BENCH), "run": quiet("run", *BENCH, "--", "echo", "ran")}
        report["left_by_full"] = differences(before)


def main() -> int:
    what, *numbers = sys.argv[1:]
    report: Report = {}
    try:
        damaged(report, *map(int, numbers)) if what == "damage" else spaces(report)
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

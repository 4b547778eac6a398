"""Runs in the guest: `quiet watch` detects changes to a quiet machine, and with --repair undoes them.

`python -m tests.lab.guest.watch SECONDS` writes $LAB_OUT/report.json; the time that it watches while nothing happens.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from tests.lab.guest import drive, snapshot

CPU = 3
BENCH = ("--profile", "bench", "--cpus", "2-3")
DRIVER = Path("/sys/bus/virtio/drivers/virtio_rng")
CPUS = Path("/sys/devices/system/cpu")
OUT = Path("/run/watch.jsonl")
SETTLE_S = 3.0
MOST_S, REPAIR_S, START_S, CALM_S = 30.0, 180.0, 120.0, 60.0
IDLE_PARTS, LOOPS, ROUNDS = 20, 30, 5_000
Report = dict[str, Any]


class Watch:
    """A `quiet watch` in a separate process, and its output."""

    def __init__(self, *options: str) -> None:
        OUT.write_text("")
        with open(OUT, "w") as out:
            self.pid = drive.forked("watch", "--json", *options, out=out.fileno(), err=2)
        self.wait(0, lambda line: line["event"] == "watching", START_S)

    def lines(self) -> list[Report]:
        return [json.loads(line) for line in OUT.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def wait(self, since: int, wanted: Callable[[Report], bool], seconds: float) -> Report | None:
        """The first such line after so many lines."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if found := next((line for line in self.lines()[since:] if wanted(line)), None):
                return found
            time.sleep(0.05)
        return None

    def cost(self) -> float:
        """Seconds of CPU time so far, exactly (Documentation/scheduler/sched-stats.rst)."""
        return self._schedstat()[0] / 1e9

    def awake(self) -> float:
        """Seconds so far in which it ran or waited for a CPU."""
        return sum(self._schedstat()[:2]) / 1e9

    def _schedstat(self) -> list[int]:
        return [int(word) for word in Path(f"/proc/{self.pid}/schedstat").read_text().split()]

    def calm(self) -> None:
        """Wait until it has nothing to do any more: in the emulator a full check takes seconds."""
        limit, cost, since = time.monotonic() + CALM_S, self.cost(), time.monotonic()
        while time.monotonic() < min(limit, since + SETTLE_S):
            time.sleep(0.2)
            if (now := self.cost()) != cost:
                cost, since = now, time.monotonic()

    def end(self, number: int) -> Report:
        os.kill(self.pid, number)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return {"code": code, "lines": self.lines()}


def write(path: Path | str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """A task that is busy on an isolated CPU; its partition has been given up before."""
    task = subprocess.Popen(["taskset", "-c", str(CPU), "sh", "-c", "while :; do :; done"])
    try:
        yield
    finally:
        task.kill()
        task.wait()


def rebind() -> None:
    """A device goes and comes, with an interrupt that is requested again."""
    (name,) = (path.name for path in DRIVER.glob("virtio*"))
    write(DRIVER / "unbind", name)
    time.sleep(0.3)
    write(DRIVER / "bind", name)


def widen() -> None:
    """The change of another program that spreads interrupts everywhere."""
    write("/proc/irq/default_smp_affinity", "f")
    rebind()


def offline() -> None:
    write(CPUS / f"cpu{CPU}/online", "0")


def online() -> None:
    write(CPUS / f"cpu{CPU}/online", "1")


def governor() -> None:
    write(CPUS / "cpufreq/policy2/scaling_governor", "powersave")


def partition() -> None:
    write("/sys/fs/cgroup/quiet/cpuset.cpus.partition", "member")


def rival() -> None:
    """A daemon that moves interrupts is back; the name is all that it needs here."""
    program = Path("/tmp/irqbalance")
    shutil.copy("/bin/sleep", program)
    subprocess.Popen([program, "100"])


# the disturbance, and the knob that is reported
DONE: dict[str, tuple[Callable[[], None], str]] = {
    "governor": (governor, "cpufreq.governor"),
    "interrupt": (widen, "irq"),
    "default": (lambda: write("/proc/irq/default_smp_affinity", "f"), "irq.default"),
    "rival": (rival, "irqbalance"),
    "offline": (offline, "cpus"),
    "partition": (partition, "cpuset"),
}


def plant(watch: Watch, event: str, names: tuple[str, ...]) -> Report:
    """The line reported for each, and how many seconds after the disturbance."""
    found: Report = {}
    for name in names:
        doing, knob = DONE[name]
        found[name] = heard(watch, doing, event, knob)
        print(f"{name}: {found[name]}", flush=True)
        watch.calm()
    return found


def heard(watch: Watch, doing: Callable[[], object], event: str, knob: str, label: str = "") -> Report:
    """The line that reports it, with the seconds until it: how many the watch was awake, and how many it ran."""
    since = len(watch.lines())
    doing()
    began, awake, cost = time.time(), watch.awake(), watch.cost()
    wanted = (event, knob, label)
    line = watch.wait(
        since, lambda line: (line["event"], line.get("knob"), label and line.get("label")) == wanted, MOST_S
    )
    if not line:
        return {"missed": watch.lines()[since:]}
    spent = {"awake": round(watch.awake() - awake, 2), "cost": round(watch.cost() - cost, 2)}
    return {"after": round(line["time"] - began, 2), **spent, **line}


def loop_s() -> float:
    """CPU time of a fixed piece of work. While other programs use the emulator's processor, a guest's takes longer."""
    began = time.thread_time()
    for _ in range(ROUNDS):
        pass
    return time.thread_time() - began


def _repaired(knob: str) -> Callable[[Report], bool]:
    return lambda line: line["event"] == "repaired" and line["knob"] == knob


def drifts(report: Report, idle_s: float) -> None:
    watch = Watch()
    report["first_look"] = watch.cost()
    watch.calm()
    before, since, loops = watch.cost(), len(watch.lines()), []
    for _ in range(IDLE_PARTS):
        loops += [loop_s() for _ in range(LOOPS)]
        time.sleep(idle_s / IDLE_PARTS)
    lines = [line for line in watch.lines()[since:] if line["event"] not in ("interrupted", "note")]
    slowed = fmean(loops) / min(loops)
    report["idle"] = {"cpu_s": watch.cost() - before, "seconds": idle_s, "slowed": slowed, "lines": lines}
    print(f"idle: {report['idle']}", flush=True)
    report["affinity"] = sorted(os.sched_getaffinity(watch.pid))
    status = Path(f"/proc/{watch.pid}/status").read_text()
    report["huge_pages"] = next(line.split()[1] for line in status.splitlines() if line.startswith("THP_enabled:"))
    report["reported"] = plant(watch, "drift", ("governor", "interrupt", "rival", "offline"))
    report["reported"]["online"] = heard(watch, online, "as wanted again", "cpus")
    watch.calm()
    report["reported"] |= plant(watch, "drift", ("partition",))
    with pinned():
        report["reported"]["task"] = heard(watch, lambda: None, "drift", "tasks", "sh")
    report["ended"] = watch.end(signal.SIGINT)


def repaired(report: Report) -> None:
    watch = Watch("--repair")
    watch.calm()
    since = len(watch.lines())
    names = ("governor", "default", "partition", "offline")
    for name in names:
        DONE[name][0]()
    report["repaired"] = {name: watch.wait(since, _repaired(DONE[name][1]), REPAIR_S) for name in names}
    report["now"] = {
        "governor": (CPUS / "cpufreq/policy2/scaling_governor").read_text().strip(),
        "default": Path("/proc/irq/default_smp_affinity").read_text().strip(),
        "online": (CPUS / "online").read_text().strip(),
        "partition": Path("/sys/fs/cgroup/quiet/cpuset.cpus.partition").read_text().strip(),
    }
    report["repair_ended"] = watch.end(signal.SIGTERM)


def main() -> int:
    report: Report = {}
    try:
        before = snapshot.take()
        report["apply"] = drive.quiet("apply", *BENCH)
        drifts(report, float(sys.argv[1]))
        report["apply_again"] = drive.quiet("apply", *BENCH)
        report["verify"] = drive.quiet("verify", "--duration", "0")
        repaired(report)
        report["verify_again"] = drive.quiet("verify", "--duration", "0")
        report["restore"] = drive.quiet("restore")
        report["left"] = drive.differences(before)
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

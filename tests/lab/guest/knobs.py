"""Runs in a guest: `python -m tests.lab.guest.knobs SCREEN...`, known causes on CPU 3 and a screening of the knobs.

Leaves plan.json, screen.json, mine.toml, mine.txt (what `quiet plan` says of it), page.html, and report.json: how the
commands ended, what a kill left behind, and what differs on the host at the end.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.lab.guest import plant, snapshot

CPU = 3
SO_TIMESTAMP = 29  # asm-generic/socket.h
OUT = Path(os.environ.get("LAB_OUT", "."))
BUDGET_S = "2400"
KILLED_AFTER_S = 30


def device(folder: Path) -> None:
    """A device's interrupt comes to the CPU: irq."""
    line = plant.busiest_interrupt(folder)
    Path(f"/proc/irq/{line}/smp_affinity_list").write_text(f"{CPU}\n")
    forever(lambda: plant.requests(folder, 1), 0.04)


def watchdog() -> None:
    """The soft-lockup detector's timer: watchdog.cpus."""
    Path("/proc/sys/kernel/watchdog_thresh").write_text("1\n")
    Path("/proc/sys/kernel/watchdog_cpumask").write_text("0-3\n")


def checks() -> None:
    """Machine checks are polled each second: mce.interval."""
    Path("/sys/devices/system/machinecheck/machinecheck0/check_interval").write_text("1\n")


def stamps() -> None:
    """Code is rewritten whenever the first socket asks for time stamps: static_keys.timestamps."""

    def ask() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMP, 1)

    forever(ask, 0.3)


def pinned() -> subprocess.Popen[bytes]:
    """A task that wakes on the CPU: cpuset or tasks, either one."""
    code = f"import os, time\nos.sched_setaffinity(0, {{{CPU}}})\nwhile True: time.sleep(0.05)"
    task = subprocess.Popen([sys.executable, "-c", code])
    while os.sched_getaffinity(task.pid) != {CPU}:
        time.sleep(0.1)
    return task


def forever(work: Callable[[], object], pause_s: float) -> None:
    def run() -> None:
        while True:
            work()
            time.sleep(pause_s)

    threading.Thread(target=run, daemon=True).start()


def cbench(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cbench", "screen", "knobs", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def main() -> int:
    """The words: those of the screening, such as --applications 30."""
    os.sched_setaffinity(0, {0, 1})
    device(OUT.parent)
    watchdog()
    checks()
    stamps()
    task = pinned()
    time.sleep(1)
    before = snapshot.take()
    common = ["--response", "interrupts", "--cpus", "2-3"]
    plan = cbench(*common, "--plan", "--json")
    (OUT / "plan.json").write_text(plan.communicate()[0])
    began = time.monotonic()
    first = cbench(*common, "-o", "knobs.db", "--budget", BUDGET_S, *sys.argv[1:])
    time.sleep(KILLED_AFTER_S)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    applied = subprocess.run(["quiet", "status"], capture_output=True, text=True, check=False).stdout
    words = ["--resume", "knobs.db", "--json", "--write-profile", "mine.toml", "--report", str(OUT / "page.html")]
    second = cbench(*words)
    said, errors = second.communicate()
    (OUT / "screen.json").write_text(said)
    took = time.monotonic() - began
    planned = subprocess.run(["quiet", "plan", "--profile", "./mine.toml"], capture_output=True, text=True, check=False)
    (OUT / "mine.txt").write_text(planned.stdout + planned.stderr)
    if Path("mine.toml").exists():
        (OUT / "mine.toml").write_text(Path("mine.toml").read_text())
    shown = cbench("--resume", "knobs.db")
    (OUT / "shown.txt").write_text(shown.communicate()[0])
    report = {
        "code": second.returncode,
        "said": errors,
        "killed": first.returncode,
        "after_kill": applied,
        "seconds": took,
        "planned": planned.returncode,
        "left": snapshot.compare(before, snapshot.take()),
    }
    (OUT / "report.json").write_text(json.dumps(report))
    task.kill()
    return 0


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main())

"""Runs in the guest: disturb a command in known ways while `quiet why` runs it.

`python -m tests.lab.guest.why [PART ...]` writes $LAB_OUT/report.json: what was planted and what was reported, by trace
and by counts, and what remains under `quiet run`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from quiet.cli import json_output
from quiet.noise.command_report import CommandReport
from quiet.settings.profile import load
from quiet.why.why import why
from tests.lab.guest import plant
from tests.lab.guest.drive import forked
from tests.lab.guest.noise import STOP_ME, TIMERS, stopped

CPU = 3
Report = dict[str, Any]
SPIN = """
import os
os.sched_setaffinity(0, {cpu})
open({begun!r}, "w").close()
def spin():
    while not os.path.exists({stop!r}):
        for _ in range(20000): pass
spin()
"""


class Disturbed:
    """A busy command on the CPU, and a thread of this process that disturbs it, which then ends it."""

    def __init__(self, disturb: Callable[[], Report]) -> None:
        self._folder = tempfile.mkdtemp()
        self._begun, self._stop = f"{self._folder}/begun", f"{self._folder}/stop"
        self.code = SPIN.format(cpu={CPU}, begun=self._begun, stop=self._stop)
        self._disturb = disturb
        self.done: Report = {}

    def observe(self, trace: bool) -> Report:
        def work() -> None:
            try:
                while not Path(self._begun).exists():
                    time.sleep(0.05)
                self.done.update(self._disturb())
            except Exception:
                self.done["broke"] = traceback.format_exc()
            finally:
                Path(self._stop).touch()

        thread = threading.Thread(target=work)
        thread.start()
        report: CommandReport = why([sys.executable, "-c", self.code], load("bench"), trace)
        thread.join()
        assert "broke" not in self.done, self.done["broke"]
        return {"planted": self.done, "report": json_output.to_object(report)}


def one_round(line: int, folder: Path, trace: bool) -> Report:
    task = plant.Task(CPU, 30)

    def apart() -> Report:
        done: Report = {"line": line, "task": task.pid}
        done["timer"], done["timer_at_most"] = plant.timer(CPU, TIMERS, 20)
        done["switches"] = task.run()
        done["works"] = plant.works(CPU, 30)
        plant.interrupts(CPU, line, folder, 15)
        done["packets"] = plant.packets(CPU, 100)
        with plant.on_cpu(0):  # counts charge a task's whole time to the CPU that it used last
            return done

    try:
        return Disturbed(apart).observe(trace)
    finally:
        task.end()


def within() -> None:
    """The command that disturbs itself: one thread is busy on the CPU, without Python's lock; another one disturbs."""
    ending = threading.Event()
    os.sched_setaffinity(0, set(range(CPU)))

    def busy() -> None:
        os.sched_setaffinity(0, {CPU})
        while not ending.is_set():
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 100_000)

    thread = threading.Thread(target=busy)
    thread.start()
    time.sleep(1)
    plant.shootdowns(50)
    plant.barriers(CPU, 50)
    print(STOP_ME, flush=True)
    stopped()
    ending.set()
    thread.join()


def shared() -> Report:
    code = "from tests.lab.guest.why import within; within()"
    before = plant.counted(CPU, "TLB", "interrupts")
    report = json_output.to_object(why([sys.executable, "-c", code], load("bench")))
    return {"planted": {"shootdowns": plant.counted(CPU, "TLB", "interrupts") - before}, "report": report}


BUSY = """
import os, time
from quiet.machine.affinity import join
join(frozenset({cpus!r}))
end = time.process_time() + 4
while time.process_time() < end: pass
"""


def under_run(command: Sequence[str], cpus: str) -> Report:
    """The report of `quiet run`."""
    file = Path(tempfile.mkdtemp(), "report.json")
    os.waitpid(forked("run", "--cpus", cpus, "--report", str(file), "--", *command, out=1, err=2), 0)
    found: Report = json.loads(file.read_text())
    return found


def predicted(folder: Path) -> Report:
    """What is expected to remain of the interruptions of a command on a busy host, and what then does."""
    ending = threading.Event()

    def write() -> None:
        while not ending.is_set():
            plant.requests(folder, 1)

    writer = threading.Thread(target=write)
    loops = []
    for _ in range(2 * (os.cpu_count() or 1)):
        pid = os.fork()
        if not pid:
            while True:
                for _ in range(10_000):
                    pass
                time.sleep(0.02)
        loops.append(pid)
    writer.start()
    try:
        command = (sys.executable, "-c", BUSY.format(cpus={CPU}))
        before = json_output.to_object(why(command, load("bench")))
        return {"before": before, "after": under_run(command, str(CPU))}
    finally:
        ending.set()
        writer.join()
        for pid in loops:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def all_kinds(folder: str) -> None:
    """The command: busy on the CPU while the outside disturbs it (until the file `apart`), and then itself."""
    ending = threading.Event()
    os.sched_setaffinity(0, set(range(CPU)))

    def busy() -> None:
        os.sched_setaffinity(0, {CPU})
        while not ending.is_set():
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 100_000)

    thread = threading.Thread(target=busy)
    thread.start()
    Path(folder, "begun").touch()
    while not Path(folder, "apart").exists():
        time.sleep(0.05)
    plant.shootdowns(50)
    plant.barriers(CPU, 50)
    print(STOP_ME, flush=True)
    stopped()
    ending.set()
    thread.join()


def foreseen(line: int, folder: Path) -> Report:
    """The same disturbances of a command under `quiet why`, and then under `quiet run`, which keeps some of them away.

    The interrupt is steered to the CPU, and the task pinned to it, before the profile is applied.
    """
    steering = Path(f"/proc/irq/{line}/smp_affinity_list")
    before = steering.read_text()
    steering.write_text(f"{CPU}\n")
    task = plant.Task(CPU, 30)
    rounds: Report = {}

    def disturb(where: str, done: Report) -> None:
        try:
            while not Path(where, "begun").exists():
                time.sleep(0.05)
            done |= {"line": line, "task": task.pid}
            done["timer"], done["timer_at_most"] = plant.timer(CPU, TIMERS, 20)
            done["switches"] = task.run()
            done["works"] = plant.works(CPU, 30)
            plant.requests(folder, 15)
            done["packets"] = plant.packets(CPU, 100)
        except Exception:
            done["broke"] = traceback.format_exc()
        finally:
            Path(where, "apart").touch()

    try:
        for name in ("why", "run"):
            where, done = tempfile.mkdtemp(), Report()
            code = f"from tests.lab.guest.why import all_kinds; all_kinds({where!r})"
            command = (sys.executable, "-c", code)
            thread = threading.Thread(target=disturb, args=(where, done))
            thread.start()
            shootdowns = plant.counted(CPU, "TLB", "interrupts")
            if name == "why":
                report = json_output.to_object(why(command, load("bench")))
            else:
                report = under_run(command, f"{CPU - 1}-{CPU}")
            thread.join()
            assert "broke" not in done, done["broke"]
            done["shootdowns"] = plant.counted(CPU, "TLB", "interrupts") - shootdowns
            rounds[name] = {"planted": done, "report": report}
    finally:
        task.end()
        steering.write_text(before)
    return rounds


def main() -> int:
    wanted = sys.argv[1:]
    found: Report = {}
    folder = Path(os.environ["LAB_OUT"]).parent
    file = Path(os.environ["LAB_OUT"], "report.json")
    try:
        line = plant.busiest_interrupt(folder)
        parts: dict[str, Callable[[], Report]] = {
            "trace": lambda: one_round(line, folder, True),
            "counts": lambda: one_round(line, folder, False),
            "predicted": lambda: predicted(folder),
            "shared": shared,
            "foreseen": lambda: foreseen(line, folder),
        }
        for name, part in parts.items():
            if wanted and name not in wanted:
                continue
            found[name] = part()
            print(f"{name}: {json.dumps(found[name])}", flush=True)
            file.write_text(json.dumps(found))
    except BaseException:  # the parts until then are worth having
        found["broke"] = traceback.format_exc()
        file.write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

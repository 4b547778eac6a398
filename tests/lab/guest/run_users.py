"""Runs in the guest after users.sh: `quiet run` by users, killed anywhere, twenty at once, and by a hostile one."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from quiet.host.queue import queue
from quiet.host.reader import Reader
from tests.lab.guest import snapshot

KILLS = int(os.environ.get("KILLS", "1"))  # of each kind
SECONDS = 120
SLEEP = "sleep 0.731"
SMALL, OTHER = "/etc/quiet/small.toml", "/etc/quiet/other.toml"
FEW = '[knobs]\ncpuset = "quiet"\ntasks = "quiet"\n"vm.stat_interval" = 99\n'
LINGERING = ("--quiet-report", "--profile", SMALL, "--linger")
EVIL = '[knobs]\n"vm.stat_interval" = 77\n'


def as_user(user: str, *command: str, **environment: str) -> list[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LC_ALL", "VIRTUAL_ENV", "QUIET_PROGRAM") if name in os.environ}
    values = {**kept, "HOME": f"/home/{user}", "USER": user, "LOGNAME": user, **environment}
    become = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
    return [*become, "env", "-i", *(f"{name}={value}" for name, value in values.items()), *command]


def step(command: Sequence[str], **options: Any) -> dict[str, Any]:
    began = time.monotonic()
    options = {"cwd": "/home/u", "timeout": SECONDS, **options}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    seconds = round(time.monotonic() - began, 3)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr, "seconds": seconds}


def run(*command: str, options: Sequence[str] = ("--quiet-report", "--profile", SMALL)) -> list[str]:
    return as_user("u", "quiet", "run", *options, "--", *command)


def processes(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if words.startswith(mark) or f" {mark}" in words.partition(" --")[0]:
                found.append(int(entry.name))
    return sorted(found)


def targets(what: str, front: int) -> list[int]:
    """The process of this kind while only one run is there. The helper is not sudo, which starts it, nor is it below
    the front for long; the guard is a fork of the helper.
    """
    if what == "front":
        return [front]
    if what == "command":
        return processes(SLEEP)[:1]
    found: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        found = [each for each in map(psutil.Process, processes("run-helper")) if each.name() != "sudo"][:1]
        if what == "guard":
            found = [child for helper in found for child in helper.children()]
    return [each.pid for each in found]


def settled(before: snapshot.Snapshot) -> list[str]:
    """The differences once nothing of quiet is left; the wait has a limit."""
    for _ in range(300):
        if not Path("/run/quiet/journal.jsonl").exists() and not processes("run-helper"):
            break
        time.sleep(0.1)
    return snapshot.compare(before, snapshot.take())


def end_lingering() -> None:
    for pid in processes("run-helper")[:1]:  # none, once its time is over
        os.kill(pid, signal.SIGTERM)


def kill_one(what: str, number: int, delay: float, before: snapshot.Snapshot) -> dict[str, Any]:
    """Start a run and another one that waits for it, and kill this process of the first after this many seconds."""
    first = subprocess.Popen(run("sh", "-c", f"{SLEEP}; :"), stderr=subprocess.DEVNULL, start_new_session=True)
    while not (found := targets(what, first.pid)) and first.poll() is None:
        time.sleep(0.01)
    aimed = []
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            aimed.append(os.pidfd_open(pid))
    following = subprocess.Popen(run("true"), stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(delay)
    killed = 0
    for each in aimed:  # found before the second run began
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(each, number)
            killed += first.poll() is None
        os.close(each)
    code, after = first.wait(SECONDS), following.wait(SECONDS)
    left = settled(before)
    alive = [str(pid) for pid in processes(SLEEP)]
    ends = {"code": code, "next": after, "left": left, "alive": alive}
    return {"what": what, "signal": number, "killed": killed, **ends}


def kills(before: snapshot.Snapshot, rounds: int, seed: int) -> list[dict[str, Any]]:
    """Kill each kind of process at this many random moments; a moment after the end of the run is drawn again."""
    draw, found = random.Random(seed), []
    whole = step(run("sh", "-c", f"{SLEEP}; :"))["seconds"]  # the moments are spread over a run
    kinds = [("front", 9), ("helper", 9), ("guard", 9), ("command", 9), ("front", 15), ("front", 2), ("front", 1)]
    for turn in range(rounds):
        timed(f"kills, round {turn + 1} of {rounds}")
        for what, number in kinds:
            for _ in range(10):
                found.append(kill_one(what, number, draw.random() * (0.7 if what == "command" else whole), before))
                timed(json.dumps(found[-1]))
                if found[-1]["left"]:
                    return found
                if found[-1]["killed"]:
                    break
    return found


def twenty() -> list[dict[str, Any]]:
    clock = "import time; print(time.monotonic_ns()); time.sleep(0.02); print(time.monotonic_ns())"
    running = [
        subprocess.Popen(
            run(sys.executable, "-S", "-c", clock), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(20)
    ]
    arrived: dict[int, tuple[float, str]] = {}  # by the front's process: the time and the name of its ticket
    while any(each.poll() is None for each in running):
        arrived |= {ticket.pid: (ticket.since, ticket.name) for ticket in queue(Reader())}
        time.sleep(0.05)
    found = []
    for each in running:
        out, err = each.communicate()
        begin, end = ([*out.split(), "0", "0"])[:2]
        times = {"from": int(begin), "to": int(end), "arrived": arrived.get(each.pid)}
        found.append({"code": each.returncode, "err": err, **times})
    return found


def hostile(before: snapshot.Snapshot) -> tuple[list[dict[str, Any]], list[str]]:
    plant()
    other = subprocess.Popen(as_user("v", "sleep", "infinity"))
    root = subprocess.Popen(["sleep", "infinity"])
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("/run/root.sock")
    os.chmod("/run/root.sock", 0o777)
    listening.listen()
    try:
        command = (sys.executable, "-m", "tests.lab.guest.hostile", str(root.pid), str(other.pid))
        done = step(as_user("u", *command, PYTHONPATH=os.getcwd()), cwd=os.getcwd(), timeout=4000)
        settled(before)
        step(run("true", options=(*LINGERING, "3600")))
        texts = [
            step(as_user(user, *command, SMALL, PYTHONPATH=os.getcwd()), cwd=os.getcwd(), timeout=4000)
            for user in ("v", "u")
        ]
        end_lingering()
    finally:
        died = [each.poll() for each in (root, other)]
        for each in (root, other):
            each.kill()
            each.wait()
        listening.close()
        os.unlink("/run/root.sock")
    attempts: list[dict[str, Any]] = []
    for text in (done, *texts):
        attempts += json.loads(text["out"]) if text["out"] else [{"gained": True, "broke": text["err"]}]
    if died != [None, None]:
        attempts.append({"kind": "a process of another user was ended", "gained": True})
    for name in ("open.toml", "link.toml", "fifo.toml"):
        Path("/etc/quiet", name).unlink(missing_ok=True)
    return attempts, settled(before)


def plant() -> None:
    """Profiles that must not be applied, and programs that must not be run, where the attempts point to."""
    home = Path("/home/u")
    (home / "evil.toml").write_text(EVIL)
    Path("/tmp/evil.toml").write_text(EVIL)
    programs = home / "py"
    programs.mkdir(exist_ok=True)
    for name in ("python", "systemctl", "sh", "ethtool", "evil.sh"):
        (programs / name).write_text("#!/bin/sh\ntouch /run/canary\n")
        (programs / name).chmod(0o755)
    for name in ("sitecustomize.py", "usercustomize.py", "evil.py", "json.py", "os.py", "encodings.py"):
        (programs / name).write_text("open('/run/canary', 'w')\n")
    quiet = Path("/etc/quiet")
    quiet.mkdir(exist_ok=True)
    (quiet / "open.toml").write_text(EVIL)
    (quiet / "open.toml").chmod(0o666)
    for name, target in (("link.toml", "/home/u/evil.toml"),):
        if not (quiet / name).is_symlink():
            (quiet / name).symlink_to(target)
    if not (quiet / "fifo.toml").exists():
        os.mkfifo(quiet / "fifo.toml")


def main() -> int:
    wanted = sys.argv[1:]
    os.environ["QUIET_PROGRAM"] = shutil.which("quiet") or ""
    Path("/home/u").chmod(0o755)
    Path(SMALL).parent.mkdir(exist_ok=True)
    Path(SMALL).write_text(FEW)
    Path(OTHER).write_text(FEW.replace("99", "98"))
    report: dict[str, Any] = {}
    step(["quiet", "run", "--quiet-report", "--profile", SMALL, "--", "true"])  # the directories are made
    before = snapshot.take()
    shell = 'id -u; pwd; echo $VIRTUAL_ENV; grep "^0::" /proc/self/cgroup; touch f'
    if not wanted or "basics" in wanted:
        timed("basics")
        report["as_caller"] = step(run("sh", "-c", shell))
        report["owner"] = os.stat("/home/u/f").st_uid
        report["without_rule"] = step(as_user("v", "quiet", "run", "--", "true"))
        sudo = {**os.environ, "SUDO_UID": "1000", "SUDO_GID": "1000", "SUDO_USER": "u"}
        report["under_sudo"] = step(["quiet", "run", "--", "sh", "-c", "id -u; echo $HOME"], env=sudo)
        report["as_root"] = step(["quiet", "run", "--as", "root", "--", "id", "-u"], env=sudo)
        report["exit_code"] = step(run("sh", "-c", "exit 7"))
        report["killed_by_itself"] = step(run("sh", "-c", "kill -9 $$"))
        report["pipe"] = step(run("cat"), input="through\n")
        burn = "import time\nwhile time.process_time() < 1: pass"
        limits = ("--report", "/home/u/report.json", "--max-interrupts", "0", "--profile", SMALL)
        report["reported"] = step(run(sys.executable, "-S", "-c", burn, options=limits))
        report["report"] = json.loads(Path("/home/u/report.json").read_text())
        lingering = (*LINGERING, "60")
        report["seconds"] = {"alone": [step(run("true"))["seconds"] for _ in range(3)]}
        step(run("true", options=lingering))
        again = [step(run("true", options=lingering)) for _ in range(3)]
        report["another_profile"] = step(run("true", options=("--quiet-report", "--profile", OTHER)))
        step(run("true", options=lingering))
        report["seconds"]["lingering"] = [each["seconds"] for each in again]
        report["seconds"]["sudo true"] = [step(["sudo", "-n", "true"])["seconds"] for _ in range(3)]
        report["lingers"] = {"applied_again": sum(" 0 changes" not in each["err"] for each in again)}
        end_lingering()
        report["left_by_linger"] = settled(before)
    if not wanted or "twenty" in wanted:
        timed("twenty")
        report["twenty"] = twenty()
    if not wanted or "kills" in wanted:
        timed("kills")
        report["kills"] = kills(before, KILLS, 1)
    if not wanted or "hostile" in wanted:
        timed("hostile")
        # a chain of processes, all too short-lived to be moved
        stray = "import os, time\nend = time.monotonic() + 5\nwhile time.monotonic() < end:\n if os.fork(): os._exit(0)"
        report["stray"] = step(run(sys.executable, "-S", "-c", stray))
        report["left_by_stray"] = settled(before)
        moving = "import os\nwhile True: os.sched_setaffinity(0, {0}); os.sched_setaffinity(0, {0, 1})"
        mover = subprocess.Popen(as_user("v", sys.executable, "-S", "-c", moving))
        report["beside_a_mover"] = [step(run("sleep", "0.5"))["code"] for _ in range(2)]
        mover.kill()
        mover.wait()
        report["left_beside_a_mover"] = settled(before)
        report["hostile"], report["left_by_hostile"] = hostile(before)
    print(json.dumps(report, indent=1))
    return 0


def timed(title: str) -> None:
    """For waiting processes."""
    print(f"{time.monotonic():.0f} s: {title}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Runs in a guest with systemd: services, timers, sockets and slices under a profile, each step recorded.

`python -m tests.lab.guest.services` writes $LAB_OUT/report.json for the tests outside to judge.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from tests.lab.guest import snapshot
from tests.lab.guest.drive import called, cut_short, quiet, quiet_json

Report = dict[str, Any]
TUNED = Path("/usr/local/sbin/tuned")
UNITS = Path("/usr/lib/systemd/system")
OWN = Path("/etc/systemd/system")
ASLEEP = "[Service]\nExecStart=/bin/sleep infinity\n"
WANTED = "[Install]\nWantedBy=multi-user.target\n"
TIMER = "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n"
BUS = "org.freedesktop.PackageKit"
FILES = {
    UNITS / "cron.service": ASLEEP + WANTED,
    OWN / "atd.service": ASLEEP + WANTED,  # a file in /etc goes before a mask in /run/systemd/system
    UNITS / "anacron.service": ASLEEP + WANTED,  # not enabled, not running
    UNITS / "apt-daily.timer": TIMER,
    UNITS / "apt-daily.service": ASLEEP,
    UNITS / "man-db.timer": TIMER,  # enabled, and stopped by hand
    UNITS / "man-db.service": ASLEEP,
    UNITS / "logrotate.timer": TIMER,  # masked by the administrator
    UNITS / "logrotate.service": ASLEEP,
    UNITS / "snapd.socket": "[Socket]\nListenStream=/run/snapd.socket\n[Install]\nWantedBy=sockets.target\n",
    UNITS / "snapd.service": ASLEEP + WANTED,
    UNITS / "packagekit.service": ASLEEP,
    UNITS / "smartmontools.service": ASLEEP + WANTED + "Alias=smartd.service\n",
    UNITS / "ksmtuned.service": ASLEEP + WANTED,  # another one needs it
    UNITS / "needy.service": "[Unit]\nRequires=ksmtuned.service\n" + ASLEEP,
    UNITS / "backup@.service": ASLEEP,
    UNITS / "tuned.service": f"[Service]\nExecStart={TUNED} infinity\n" + WANTED,  # by its process's name
    Path("/usr/share/dbus-1/system-services", f"{BUS}.service"): (
        f"[D-BUS Service]\nName={BUS}\nExec=/bin/false\nUser=root\nSystemdService=packagekit.service\n"
    ),
    Path("/etc/dbus-1/system.d/lab.conf"): (
        '<busconfig><policy context="default">'
        f'<allow send_destination="{BUS}"/><allow own="{BUS}"/></policy></busconfig>\n'
    ),
}
ENABLED = ("cron.service", "atd.service", "apt-daily.timer", "man-db.timer", "snapd.socket", "smartmontools.service")
STARTED = (
    "cron.service",
    "atd.service",
    "apt-daily.timer",
    "snapd.socket",
    "smartmontools.service",
    "needy.service",
    "tuned.service",
)
NAMES = (
    *sorted(path.name for path in FILES if path.parent in (UNITS, OWN) and "@" not in path.name),
    *("backup@daily.service", "smartd.service"),
)
PROFILE = """
name = "services"
[cpus]
isolated = "2"
[knobs]
services = "all"
rivals = "quiet"
slices = "{slices}"
cpuset = "quiet"
tasks = "quiet"
[services]
stop = ["backup@daily.service"]
"""
WHOLE, NARROW = Path("/root/whole.toml"), Path("/root/without-slices.toml")
CGROUP = Path("/sys/fs/cgroup")


def systemctl(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(["systemctl", *arguments], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"systemctl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def furnish() -> None:
    for path, text in FILES.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
    TUNED.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/sleep", TUNED)
    systemctl("daemon-reload")
    systemctl("enable", *ENABLED)
    systemctl("mask", "logrotate.timer")
    systemctl("start", *STARTED, "backup@daily.service")
    subprocess.run(["busctl", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "ReloadConfig"], check=False)
    WHOLE.write_text(PROFILE.format(slices="quiet"))
    NARROW.write_text(PROFILE.format(slices="leave"))


def units() -> dict[str, str]:
    """The state of every unit according to systemd, and the files behind it."""
    shown = systemctl("show", "--property=Id,LoadState,ActiveState,UnitFileState,NeedDaemonReload", *NAMES)
    found = dict(zip(NAMES, shown.strip().split("\n\n"), strict=True))
    for folder in ("/etc/systemd/system", "/run/systemd/system", "/run/systemd/system.control"):
        for path in sorted(Path(folder).rglob("*")):
            if ".mount" not in path.name and "lab" not in path.name and not path.name.startswith("run-"):
                text = os.readlink(path) if path.is_symlink() else "folder" if path.is_dir() else path.read_text()
                found[str(path)] = text
    return found


def state() -> Report:
    return {"units": units(), "rest": snapshot.take()}


def differences(before: Report) -> list[str]:
    now = state()
    lines = snapshot.compare(before["rest"], now["rest"])
    # a service that was stopped and started again is another process: its own cgroup is the same one
    keys = sorted(before["units"].keys() | now["units"].keys())
    changed = [key for key in keys if before["units"].get(key) != now["units"].get(key)]
    return lines + [f"{key}: was {before['units'].get(key)!r}, is {now['units'].get(key)!r}" for key in changed]


def active(*names: str) -> dict[str, str]:
    """The words of systemctl show, by unit."""
    shown = systemctl("show", "--property=ActiveState,LoadState", *names).strip().split("\n\n")
    return dict(zip(names, (" ".join(sorted(each.split())) for each in shown), strict=True))


def process(unit: str) -> list[str]:
    """The process of a service and its state (proc_pid_stat(5))."""
    pid = systemctl("show", "--property=MainPID", "--value", unit).strip()
    return [pid, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]]


def partition() -> dict[str, str]:
    files = {"partition": "quiet.slice/cpuset.cpus.partition", "controllers": "cgroup.subtree_control"}
    files |= {name: f"{name}/cpuset.cpus" for name in ("system.slice", "user.slice", "init.scope")}
    return {name: path.read_text().strip() if (path := CGROUP / file).exists() else "-" for name, file in files.items()}


def provoke() -> None:
    """An action that makes systemd check its cgroups again."""
    systemctl("daemon-reload")
    subprocess.run(["systemd-run", "--wait", "-q", "-p", "AllowedCPUs=0", "/bin/true"], check=False)
    subprocess.run(["systemd-run", "--wait", "-q", "-p", "CPUWeight=50", "/bin/true"], check=False)


def pull_triggers() -> None:
    """Everything that would start a stopped service again."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2)
        try:
            client.connect("/run/snapd.socket")
        except OSError as error:
            print(f"the socket: {error}", flush=True)
    subprocess.run(["busctl", "--timeout=3", "call", BUS, "/", BUS, "Any"], check=False)
    systemctl("start", "cron.service", "atd.service", check=False)
    time.sleep(0.5)  # what answers a trigger begins as a job of systemd's; how long that takes is not known
    while systemctl("list-jobs", "--no-legend", check=False).strip():
        time.sleep(0.1)


def controllers(report: Report) -> None:
    """Whether systemd removes the partition, without a setting on its slices and with one."""
    for name, profile in (("without", NARROW), ("with", WHOLE)):
        report[f"partition_{name}"] = [quiet("apply", "-p", str(profile))["code"], partition()]
        provoke()
        report[f"partition_{name}"].append(partition())
        if name == "with":
            systemctl("daemon-reexec")
            provoke()
            report["partition_reexec"] = partition()
            report["verify"] = quiet_json("verify", "-p", str(profile), "--duration", "0")
        report[f"restored_{name}"] = quiet("restore")


def whole(report: Report) -> None:
    pull_triggers()
    report["triggered_before"] = active("snapd.service", "packagekit.service")
    systemctl("stop", "packagekit.service")  # the other one has a connection waiting, and starts again at once
    systemctl("stop", "man-db.timer")
    before = state()
    report["left_by_state"] = differences(before)
    controllers(report)
    report["left_by_controllers"] = differences(before)
    report["plan"] = quiet_json("plan", "-p", str(WHOLE))
    report["left_by_plan"] = differences(before)
    report["apply"] = quiet_json("apply", "-p", str(WHOLE))
    report["applied"] = active(*NAMES)
    report["tuned"] = process("tuned.service")
    report["enabled"] = {name: systemctl("is-enabled", name, check=False).strip() for name in NAMES}
    report["plan_again"] = quiet_json("plan", "-p", str(WHOLE))
    pull_triggers()
    report["triggered"] = active(*NAMES)
    report["restore"] = quiet_json("restore")
    report["tuned_restored"] = process("tuned.service")
    report["left"] = differences(before)


def administrators(report: Report) -> None:
    """CPUs that an administrator has given a slice are respected, and restored."""
    systemctl("set-property", "--runtime", "user.slice", "AllowedCPUs=1-2")
    before = state()
    report["own_before"] = partition()
    report["own_apply"] = quiet("apply", "-p", str(WHOLE))
    report["own_applied"] = partition()
    report["own_restore"] = quiet_json("restore")
    report["own_after"] = partition()
    report["own_left"] = differences(before)
    systemctl("revert", "user.slice")


def killed(report: Report, rounds: int = 4) -> None:
    before = state()
    draw = random.Random(5)
    report["killed"] = []
    started = time.monotonic()
    every = cut_short("apply", None, profile=str(WHOLE))
    each_s = (time.monotonic() - started) / every
    called("restore")
    for number in range(rounds):
        command = "restore" if number % 3 == 2 else "apply"
        if command == "restore":
            called("apply", "-p", str(WHOLE))
        after = cut_short(command, draw.randrange(every), draw.random() * each_s, str(WHOLE))
        cut = differences(before)
        done = quiet_json("restore")
        left = differences(before)
        report["killed"].append({"command": command, "after": after, "cut": len(cut), "done": done, "left": left})
        print(f"{command} killed after {after} of {every} writes: {len(cut)} changed, left {left}", flush=True)


def main() -> int:
    report: Report = {}
    furnish()
    for part in (whole, administrators, killed):
        try:
            part(report)
        except Exception:  # the steps until then are worth having
            report["broke"] = traceback.format_exc()
        Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

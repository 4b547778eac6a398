"""Runs in a guest that boots by GRUB, once a boot: what `quiet` does across reboots, for the tests to judge outside.

Each boot leaves its steps in $LAB_OUT/boot-N.json. What has to be on the disk for that is put there in the first boot,
before the disk's first state is taken: `quiet` itself, and a unit that looks at the machine ahead of quiet's own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from tests.lab import disk_state, disturb, snapshot
from tests.lab.drive import differences, quiet, quiet_json

OUT = Path(os.environ.get("LAB_OUT", "/tmp"))
SITE = Path("/usr/lib/python3/dist-packages")
UNITS = Path("/etc/systemd/system")
BEFORE = Path("/run/before.json")
LOOKS_FIRST = f"""\
[Unit]
Description=The lab looks at the machine
Before=quiet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 -P -B /srv/snapshot.py
StandardOutput=truncate:{BEFORE}
"""
# An emulated CPU is away whenever the emulator is: only interrupts say how quiet it is.
SHORT = ("verify", "--duration", "3", "--max-lost", "100%", "--max-gap", "10s", "--max-interrupts", "20")
Report = dict[str, Any]


def run(*command: str) -> Report:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def furnish(report: Report) -> None:
    """Put on the disk what the later boots need, and have the boot loader write its own menu."""
    (SITE / "checkout.pth").unlink()
    shutil.copytree("quiet", SITE / "quiet", ignore=shutil.ignore_patterns("__pycache__", "*.c", "*.o"))
    report["compiled"] = run("python3", "-m", "compileall", "-q", str(SITE / "quiet"))
    shutil.copy("tests/lab/snapshot.py", "/srv")
    (UNITS / "lab-before.service").write_text(LOOKS_FIRST)
    (UNITS / "multi-user.target.wants/lab-before.service").symlink_to(UNITS / "lab-before.service")
    report["update_grub"] = run("update-grub")


def first_state() -> disk_state.State:
    found: disk_state.State = json.loads((OUT / "state.json").read_text())
    return found


def changed(report: Report, name: str) -> None:
    started = time.monotonic()
    report[name] = disk_state.compare(first_state(), disk_state.take())
    report["state_seconds"] = time.monotonic() - started


def round_trip(profile: str) -> Report:
    """As drive.round_trip, where systemd is the first process."""
    options = ("--profile", profile)
    found: Report = {}
    before = snapshot.take()
    found["plan"] = quiet_json("plan", *options)
    found["apply"] = quiet("apply", *options)
    found["changed"] = differences(before)
    found["plan_again"] = quiet_json("plan", *options)
    found["verify"] = quiet_json("verify", "--duration", "0")
    found["status"] = quiet_json("status")
    found["restore"] = quiet("restore")
    found["left"] = differences(before)
    return found


def one(report: Report) -> None:
    """The first state; the run-time round trip; then the service, and the command line for the next boot."""
    furnish(report)
    (OUT / "state.json").write_text(json.dumps(disk_state.take()))
    report["disturbed"] = disturb.disturb()
    for profile in ("bench", "strict"):
        report[profile] = round_trip(profile)
    changed(report, "changed_by_round_trips")
    report["install"] = quiet_json("install-service", "--profile", "bench")
    changed(report, "changed")


def two(report: Report) -> None:
    """The unit has applied the profile; it is stopped and taken away."""
    report["status"] = quiet_json("status")
    report["verify"] = quiet_json("verify", "--duration", "0")
    report["short"] = quiet_json(*SHORT)
    report["unit"] = run("systemctl", "show", "quiet.service", "-p", "ActiveState,SubState,Result,UnitFileState")
    report["stop"] = run("systemctl", "stop", "quiet.service")
    report["left"] = snapshot.compare(json.loads(BEFORE.read_text()), snapshot.take())
    report["status_stopped"] = quiet_json("status")
    report["remove"] = quiet_json("remove-service")
    report["unit_removed"] = run("systemctl", "show", "quiet.service", "-p", "LoadState,ActiveState,Result")
    changed(report, "changed")


STEPS = [one, two]


def main() -> int:
    number = int(os.environ["LAB_BOOT"])
    last = number >= len(STEPS)
    report: Report = {"command_line": Path("/proc/cmdline").read_text().strip()}
    started = time.monotonic()
    try:
        report["came_up"] = run("systemctl", "is-system-running", "--wait")
        report["waited"] = time.monotonic() - started
        report["uptime"] = Path("/proc/uptime").read_text().split()[0]
        STEPS[number - 1](report)
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
        last = True
    report["seconds"] = time.monotonic() - started
    (OUT / f"boot-{number}.json").write_text(json.dumps(report, indent=1))
    if last:
        return 0
    subprocess.run(["systemctl", "reboot"], check=True)
    time.sleep(600)  # systemd ends this
    return 1


if __name__ == "__main__":
    sys.exit(main())

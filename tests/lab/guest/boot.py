"""Runs in a guest that GRUB boots, once per boot: what `quiet` does across reboots, for the tests to judge outside.

`installed`: with the profile's command line and its service, and after their removal; `once`: by kexec, and after it.

Each boot leaves its steps in $LAB_OUT/boot-N.json. What has to be on the disk for that is put there in the first boot,
before the disk's first state is taken: `quiet` itself, and a unit that looks at the machine ahead of quiet's own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from tests.lab.guest import disk_state, disturb, snapshot
from tests.lab.guest.drive import quiet_json, trip

OUT = Path(os.environ.get("LAB_OUT", "/tmp"))
SITE = Path("/usr/lib/python3/dist-packages")
UNITS = Path("/etc/systemd/system")
# Changes by others: groups of services come and go with these, and irqbalance places interrupts only after the
# look at the start of the boot. That ours come back is seen in the round trip of the third boot.
OTHERS = re.compile(r"/sys/fs/cgroup/system\.slice/[^/]+\.(service|socket|mount)/.*absent|/proc/irq/\d+/smp_affinity")
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


class Report(dict[str, Any]):
    """The observations, step by step; each is printed at once, for the process that waits outside."""

    def __setitem__(self, name: str, found: Any) -> None:
        super().__setitem__(name, found)
        print(f"boot {os.environ['LAB_BOOT']}, {Path('/proc/uptime').read_text().split()[0]} s: {name}", flush=True)


def run(*command: str) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def furnish(report: Report) -> None:
    """Put on the disk what the later boots need, and have the boot loader write its own menu."""
    shutil.copytree("quiet", SITE / "quiet", ignore=shutil.ignore_patterns("*.c", "*.o"))
    report["compiled"] = run("python3", "-m", "compileall", "-q", str(SITE / "quiet"))  # what is not already
    shutil.copy("tests/lab/guest/snapshot.py", "/srv")
    (UNITS / "lab-before.service").write_text(LOOKS_FIRST)
    (UNITS / "multi-user.target.wants/lab-before.service").symlink_to(UNITS / "lab-before.service")
    report["update_grub"] = run("update-grub")


def first_state() -> disk_state.State:
    found: disk_state.State = json.loads((OUT / "state.json").read_text())
    return found


def changed(report: Report, name: str) -> None:
    started = time.monotonic()
    report[name] = disk_state.compare(first_state(), disk_state.take(disk=disk_state.DISK))
    report["state_seconds"] = time.monotonic() - started


def one(report: Report) -> None:
    """The first state; then the service, and the command line for the next boot."""
    furnish(report)
    (OUT / "state.json").write_text(json.dumps(disk_state.take(disk=disk_state.DISK)))
    report["install"] = quiet_json("install-service", "--profile", "bench")
    report["boot_plan"] = quiet_json("boot", "plan", "--profile", "bench")
    report["boot_apply"] = quiet_json("boot", "apply", "--profile", "bench")
    changed(report, "changed")


def two(report: Report) -> None:
    """The running kernel has the words, the unit has applied the profile. It is stopped, and all is taken away."""
    report["status"] = quiet_json("status")
    report["plan"] = quiet_json("plan", "--profile", "bench")
    report["verify"] = quiet_json("verify", "--duration", "0")
    report["short"] = quiet_json(*SHORT)
    report["unit"] = run("systemctl", "show", "quiet.service", "-p", "ActiveState,SubState,Result,UnitFileState")
    report["stop"] = run("systemctl", "stop", "quiet.service")
    left = snapshot.compare(json.loads(BEFORE.read_text()), snapshot.take())
    report["left"] = [line for line in left if not OTHERS.match(line)]
    report["status_stopped"] = quiet_json("status")
    report["start"] = run("systemctl", "start", "quiet.service")
    report["status_started"] = quiet_json("status")
    report["remove"] = quiet_json("remove-service")
    report["status_removed"] = quiet_json("status")
    report["unit_removed"] = run("systemctl", "show", "quiet.service", "-p", "LoadState,ActiveState,Result")
    report["boot_remove"] = quiet_json("boot", "remove")


def three(report: Report) -> None:
    """As it was first. Last, the round trip at run time, from a state in which every setting differs from its
    default.
    """
    changed(report, "changed")
    # irqbalance looks after ten seconds, which may be before the last comparison: an hour is after it.
    drop_in = Path("/run/systemd/system/irqbalance.service.d/interval.conf")
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nEnvironment=IRQBALANCE_ARGS=--interval=3600\n")
    report["interval"] = run("systemctl", "daemon-reload"), run("systemctl", "restart", "irqbalance.service")
    report["disturbed"] = disturb.disturb()
    report["strict"] = trip("strict")


def before_once(report: Report) -> None:
    """The first state. The next start is one by kexec: `quiet boot once` ends this boot itself."""
    furnish(report)
    (OUT / "state.json").write_text(json.dumps(disk_state.take(disk=disk_state.DISK)))


def once(report: Report) -> None:
    """The kernel that kexec has started."""
    changed(report, "changed")
    report["plan"] = quiet_json("plan", "--profile", "bench")


def after_once(report: Report) -> None:
    """The boot after it."""
    changed(report, "changed")


STEPS = {"installed": [one, two, three], "once": [before_once, once, after_once]}
LEAVE = {before_once: ["quiet", "boot", "once", "--profile", "bench"]}


def main() -> int:
    number, steps = int(os.environ["LAB_BOOT"]), STEPS[sys.argv[1]]
    step, last = steps[number - 1], number >= len(steps)
    report = Report(command_line=Path("/proc/cmdline").read_text().strip())
    (SITE / "checkout.pth").unlink()  # the lab's, made at each boot; this process has read it
    started = time.monotonic()
    try:
        report["came_up"] = run("systemctl", "is-system-running", "--wait")
        report["failed_units"] = run("systemctl", "--failed", "--no-legend", "--plain")
        report["waited"] = time.monotonic() - started
        report["uptime"] = Path("/proc/uptime").read_text().split()[0]
        step(report)
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
        last = True
    report["seconds"] = time.monotonic() - started
    (OUT / f"boot-{number}.json").write_text(json.dumps(report, indent=1))
    if last:
        return 0
    leave = LEAVE.get(step, ["systemctl", "reboot"])
    (OUT / f"leave-{number}.json").write_text(json.dumps(run(*leave)))
    time.sleep(600)  # systemd ends this
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""Runs in each guest of a fleet, once per boot: a host that ssh reaches, until the file END says that all is over.

The first boot installs the programs, has the boot loader write its own menu, and takes the state of the disk before
anybody logs in. The last one compares. The programs are on the disk, because the unit that resumes a study starts
before the lab shows the checkout.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.lab.guest import disk_state

OUT = Path(os.environ.get("LAB_OUT", "/tmp"))
END = Path("/run/lab-end")
SITE = Path("/usr/lib/python3/dist-packages")
PROGRAMS = Path("/srv/bin")
KEYS = Path("/run/lab-ssh")
CONFIG = f"""\
HostKey {KEYS}/host
PidFile none
UsePAM no
UseDNS no
AuthorizedKeysFile {KEYS}/key.pub
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
"""
# Of QEMU's user network, which forwards a port of the host to it.
NETWORK = (
    "ip link set lo up",
    "ip link set eth0 up",
    "ip address add 10.0.2.15/24 dev eth0",
    "ip route add default via 10.0.2.2",
)


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def install() -> None:
    for package in ("quiet", "cbench"):
        shutil.copytree(package, SITE / package, ignore=shutil.ignore_patterns("*.c", "*.h", "*.o"))
        PROGRAMS.mkdir(exist_ok=True)
        shutil.copy(f".venv/bin/{package}", PROGRAMS)


def serve() -> None:
    """Start sshd as a separate service."""
    for command in NETWORK:
        run(*command.split())
    KEYS.mkdir()
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    shutil.copy(Path(os.environ["LAB_IN"]) / "key.pub", KEYS)
    (KEYS / "config").write_text(CONFIG)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(KEYS / "host"))
    run("systemd-run", "--quiet", "--unit=lab-ssh", "/usr/sbin/sshd", "-D", "-e", "-f", str(KEYS / "config"))


def note_units(known: set[str]) -> None:
    """Units of cbench that have a control group at this moment, as systemd names them."""
    here = {each.name for each in Path("/sys/fs/cgroup/system.slice").glob("cbench-*.service")}
    if new := here - known:
        known |= new
        with open(OUT / "units", "a") as file:
            file.writelines(f"{os.environ['LAB_BOOT']} {name}\n" for name in sorted(new))


def main() -> int:
    number = os.environ["LAB_BOOT"]
    if number == "1":
        install()
        run("update-grub")
        (OUT / "state.json").write_text(json.dumps(disk_state.take(disk=disk_state.DISK)))
    with open(OUT / "command-lines", "a") as file:
        file.write(Path("/proc/cmdline").read_text())
    serve()
    print(f"up {number}", flush=True)
    units: set[str] = set()
    while not END.exists():
        note_units(units)
        time.sleep(0.2)
    before = json.loads((OUT / "state.json").read_text())
    changed = disk_state.compare(before, disk_state.take(disk=disk_state.DISK))
    (OUT / "changed.json").write_text(json.dumps(changed))
    return 0


if __name__ == "__main__":
    sys.exit(main())

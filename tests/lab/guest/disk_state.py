"""Every file of the disk that a guest has booted from: `take()` before and after, `compare` reports differences.

Mode, owner and content (of a link where it points to, of a directory that it is there), and the sectors ahead of the
partition, where the boot loader lies. Left out is what a running system writes by itself. Times are not compared: the
boot loader's menu is rewritten by its own program. But where programs and modules lie, which takes an emulated
processor minutes to read, nobody may write at all: there the time of the last change stands for the content.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

State = dict[str, str]

# Logs, temporary files, the random seed and clock of systemd, and where the lab shows this checkout.
OWN = ("/var/log", "/var/tmp", "/tmp", "/run", "/var/lib/systemd", "/lost+found", "/root/.cache")
UNWRITTEN = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
AHEAD = 1 << 20  # of the first partition
DISK = "/dev/vda"


def take(top: str = "/", disk: str = "") -> State:
    device = os.lstat(top).st_dev
    found: State = {}
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if _kept(os.path.join(folder, name), device)]
        for name in [*folders, *names]:
            path = os.path.join(folder, name)
            if _kept(path, device):
                found[path] = _one(path, os.path.relpath(path, top).split("/")[0] in UNWRITTEN)
    if disk:
        with open(disk, "rb") as file:
            found[f"the first MiB of {disk}"] = hashlib.sha256(file.read(AHEAD)).hexdigest()
    return found


def compare(before: State, after: State) -> list[str]:
    return [
        f"{path}: was {before.get(path, 'absent')}, is {after.get(path, 'absent')}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


def _kept(path: str, device: int) -> bool:
    try:
        return path not in OWN and os.lstat(path).st_dev == device
    except FileNotFoundError:  # it went just now
        return False


def _one(path: str, unwritten: bool) -> str:
    facts = os.lstat(path)
    content = ""
    if stat.S_ISLNK(facts.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(facts.st_mode) and unwritten:
        content = f"{facts.st_ino} {facts.st_ctime_ns}"
    elif stat.S_ISREG(facts.st_mode):
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return f"{stat.filemode(facts.st_mode)} {facts.st_uid}:{facts.st_gid} {content}"

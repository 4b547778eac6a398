"""A host with a resctrl file system whose writes obey the kernel's rules (filesystems/resctrl.rst).

Only what can be seen from outside: invalid masks, overlap with exclusive groups, CPUs that change groups,
groups that return their resources, and the reason for the last refusal.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from quiet import cpulist
from quiet.targets.resctrl import ROOT
from tests.quiet.kernels import Kernel
from tests.trees import CPU, machine, plant

Schemata = dict[str, dict[int, int]]  # resource -> domain -> ways


def parse(text: str) -> Schemata:
    """The ways of each resource and domain of a schemata file; MB is left out."""
    found: Schemata = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition(":")
        if name and name != "MB":
            found[name] = {int(d): int(mask, 16) for d, _, mask in (part.partition("=") for part in rest.split(";"))}
    return found


def printed(schemata: Schemata) -> str:
    """As the kernel prints it, padded."""
    lines = []
    for name, domains in schemata.items():
        lines.append(f"{name:>6}:" + ";".join(f"{d}={mask:05x}" for d, mask in sorted(domains.items())))
    return "\n".join(["    MB:0=100;1=100", *lines])


def neighbours(mask: int) -> bool:
    """Whether the ways of a mask are one run."""
    return "01" not in f"{mask:b}"


class Resctrl(Kernel):
    """Two caches of level 3 for CPUs 0-1 and 2-3, with `ways` ways; devices share the two highest."""

    def __init__(self, root: Path, cdp: bool = False, closids: int = 4, ways: int = 11) -> None:
        files = machine(cpus=4, cgroup=0) | {"sys/fs/resctrl/": "", "proc/cpuinfo": "x\nflags : cat_l3"}
        for cpu in range(4):
            base = f"{CPU}/cpu{cpu}/cache/index3/"
            files |= {base + "level": "3", base + "id": str(cpu // 2), base + "type": "Unified"}
            files[base + "shared_cpu_list"] = "0-1" if cpu < 2 else "2-3"
        super().__init__(plant(root, files))
        self.resources = ("L3CODE", "L3DATA") if cdp else ("L3",)
        self.full = (1 << ways) - 1
        self.shareable = self.full & ~(self.full >> 2)
        self.fewest, self.closids = 2, closids

    def file(self, path: str) -> Path:
        """A file below the mount, by its path there."""
        return Path(f"{self.root}{ROOT}{path}")

    def refuse(self, number: int, words: str) -> None:
        """Say no, and why."""
        self.file("/info/last_cmd_status").write_text(words + "\n")
        raise OSError(number, "refused")

    def mount(self, kind: str, path: str) -> None:
        """The tree comes with the mount, and everything belongs to the default group."""
        assert (kind, path) == ("resctrl", ROOT)
        mounts = Path(self.root + "/proc/mounts")
        mounts.write_text(mounts.read_text() + f"resctrl {ROOT} resctrl rw,relatime 0 0\n")
        files = {"schemata": printed({n: {0: self.full, 1: self.full} for n in self.resources}), "mode": "shareable"}
        files |= {"cpus_list": "0-3", "info/last_cmd_status": "ok", "mon_groups/": ""}
        for name in self.resources:
            files |= {f"info/{name}/cbm_mask": f"{self.full:x}", f"info/{name}/min_cbm_bits": str(self.fewest)}
            files[f"info/{name}/shareable_bits"] = f"{self.shareable:x}"
        plant(self.file(""), files)

    def umount(self, path: str) -> None:
        """Everything in it goes."""
        mounts = Path(self.root + "/proc/mounts")
        mounts.write_text("".join(x for x in mounts.read_text().splitlines(True) if f" {path} " not in x))
        for child in self.file("").iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()

    def groups(self) -> list[str]:
        """All groups, "" the default one, as the paths below the mount."""
        found = [p.name for p in self.file("").iterdir() if p.name != "info" and (p / "schemata").exists()]
        return ["", *(f"/{name}" for name in sorted(found))]

    def mkdir(self, path: str) -> None:
        """A new group has every way except those of exclusive groups."""
        group = path.removeprefix(ROOT)
        if len(self.groups()) >= self.closids:
            self.refuse(errno.ENOSPC, "Out of CLOSIDs")
        alone: Schemata = {}
        for other in self.groups():
            if (self.text(f"{ROOT}{other}/mode") or "") == "exclusive":
                alone = parse(self.text(f"{ROOT}{other}/schemata") or "")
        free = {n: {d: self.full & ~alone.get(n, {}).get(d, 0) for d in (0, 1)} for n in self.resources}
        files = {"schemata": printed(free), "mode": "shareable", "cpus_list": "", "mon_groups/": ""}
        plant(self.file(group), files)

    def rmdir(self, path: str) -> None:
        """A group's CPUs go back to the default group."""
        group = path.removeprefix(ROOT)
        self.move(cpulist.parse(self.text(f"{path}/cpus_list") or ""), "")
        shutil.rmtree(self.file(group))

    def move(self, cpus: cpulist.CpuSet, group: str) -> None:
        """CPUs belong to one group at a time."""
        for other in self.groups():
            owned = cpulist.parse(self.text(f"{ROOT}{other}/cpus_list") or "")
            owned = owned | cpus if other == group else owned - cpus
            self.file(f"{other}/cpus_list").write_text(cpulist.format(owned) + "\n")

    def write(self, path: str, value: str) -> None:
        """As the kernel takes it, or not."""
        if not path.startswith(ROOT + "/"):
            super().write(path, value)
            return
        group, _, name = path.removeprefix(ROOT).rpartition("/")
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        if name == "cpus_list":
            self.move(cpulist.parse(value), group)
        elif name == "mode":
            self.set_mode(group, value)
        else:
            self.set_schemata(group, value)
        self.file("/info/last_cmd_status").write_text("ok\n")
        self.written.append((path, value))

    def set_mode(self, group: str, value: str) -> None:
        """Exclusive is only who shares with nobody, devices included, in any cache."""
        mine = parse(self.text(f"{ROOT}{group}/schemata") or "")
        for name, domains in mine.items():
            for domain, mask in domains.items():
                if value == "exclusive" and mask & (self.taken(group, domain) | self.shareable):
                    self.refuse(errno.EINVAL, f"Schemata overlaps {name}")
        self.file(f"{group}/mode").write_text(value + "\n")

    def taken(self, group: str, domain: int, exclusive: bool = False) -> int:
        """The ways of other groups in a cache, of code and data together; or of exclusive ones alone."""
        found = 0
        for other in self.groups():
            mode = self.text(f"{ROOT}{other}/mode")
            if other != group and (mode == "exclusive" or not exclusive):
                for domains in parse(self.text(f"{ROOT}{other}/schemata") or "").values():
                    found |= domains[domain]
        return found

    def set_schemata(self, group: str, value: str) -> None:
        """One resource at a time; what is not named stays."""
        now = parse(self.text(f"{ROOT}{group}/schemata") or "")
        alone = self.text(f"{ROOT}{group}/mode") == "exclusive"
        for name, domains in parse(value).items():
            for domain, mask in domains.items():
                if mask & ~self.full or not neighbours(mask) or mask.bit_count() < self.fewest:
                    self.refuse(errno.EINVAL, f"Need {self.fewest} neighbouring bits in mask {mask:x}")
                if mask & self.taken(group, domain, exclusive=not alone):
                    self.refuse(errno.EINVAL, "Overlaps with exclusive group")
                now[name][domain] = mask
        self.file(f"{group}/schemata").write_text(printed(now) + "\n")

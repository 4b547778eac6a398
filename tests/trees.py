"""Machines made of files: small trees of /sys and /proc for a Reader's root."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CPU = "sys/devices/system/cpu"


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below a root; a path that ends with a slash is a folder. Returns the root."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
    return root


def machine(cpus: int = 4, threads: int = 1, nodes: int = 1, irqs: int = 0, cgroup: int = 2) -> dict[str, str]:
    """The files of an even machine: CPU n's sibling is n + cpus/threads, nodes take the cores in order."""
    cores = cpus // threads
    files = {
        f"{CPU}/online": f"0-{cpus - 1}",
        f"{CPU}/possible": f"0-{cpus - 1}",
        f"{CPU}/present": f"0-{cpus - 1}",
        f"{CPU}/isolated": "",
        "proc/cmdline": "root=/dev/vda quiet",
        "proc/mounts": "proc /proc proc rw 0 0",
        "proc/sys/kernel/random/boot_id": "0b0b",
    }
    if cgroup == 2:
        files["proc/mounts"] = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0"
        files["sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io memory pids"
        files["sys/fs/cgroup/cgroup.subtree_control"] = "cpu io memory pids"
    for cpu in range(cpus):
        mates = ",".join(str(cpu % cores + cores * thread) for thread in range(threads))
        files[f"{CPU}/cpu{cpu}/topology/core_cpus_list"] = mates
        if cpu:
            files[f"{CPU}/cpu{cpu}/online"] = "1"
    per_node = cores // nodes
    for node in range(nodes):
        first = node * per_node
        spans = [f"{first + cores * t}-{first + per_node - 1 + cores * t}" for t in range(threads)]
        files[f"sys/devices/system/node/node{node}/cpulist"] = ",".join(spans)
    for number in range(irqs):
        files[f"proc/irq/{number}/smp_affinity_list"] = f"0-{cpus - 1}"
        files[f"proc/irq/{number}/effective_affinity_list"] = str(number % cpus)
        files[f"sys/kernel/irq/{number}/actions"] = f"nvme0q{number}"
    return files


def cpufreq(policies: int, driver: str, **settings: str) -> dict[str, str]:
    """One cpufreq policy a CPU, with a driver's usual files; settings replace or add files of each policy."""
    files = {}
    for number in range(policies):
        values = {
            "scaling_driver": driver,
            "affected_cpus": str(number),
            "cpuinfo_max_freq": "3000000",
            "cpuinfo_min_freq": "800000",
            "scaling_max_freq": "3000000",
            "scaling_min_freq": "800000",
            "scaling_governor": "schedutil",
            "scaling_available_governors": "performance powersave schedutil",
            **settings,
        }
        files.update({f"{CPU}/cpufreq/policy{number}/{name}": text for name, text in values.items()})
    return files

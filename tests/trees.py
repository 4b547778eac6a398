"""Machines made of files: small trees of /sys and /proc for a Reader's root."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

CPU = "sys/devices/system/cpu"
PF_KTHREAD, PF_NO_SETAFFINITY = 0x00200000, 0x04000000


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below a root; a path that ends with a slash is a directory. Returns the root."""
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
        f"{CPU}/nohz_full": "(null)",
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


def nic(
    name: str = "eth0", rx: int = 4, tx: int = 4, index: int = 2, irqs: int = 40, device: bool = True, **answers: str
) -> dict[str, str]:
    """A network interface with its queues; `answers`: its driver's replies. Queue n has the interrupt irqs + n."""
    base = f"sys/class/net/{name}"
    files = {f"{base}/ifindex": str(index), f"{base}/threaded": "0"}
    files |= {f"{base}/napi_defer_hard_irqs": "0", f"{base}/gro_flush_timeout": "0"}
    files |= {f"{base}/queues/rx-{n}/rps_cpus": "00" for n in range(rx)}
    files |= {f"{base}/queues/tx-{n}/xps_cpus": "00" for n in range(tx)}
    if device:
        files[f"{base}/device/uevent"] = "DRIVER=synthetic"
        answers = {"interrupts": " ".join(str(irqs + n) for n in range(rx))} | answers
    files |= {f"run/quiet-recorded/net/{name}/{what}": text for what, text in answers.items()}
    for queue in range(rx if device else 0):
        files[f"proc/irq/{irqs + queue}/smp_affinity_list"] = str(queue)
        files[f"sys/kernel/irq/{irqs + queue}/actions"] = f"{name}-TxRx-{queue}"
    return files


def task(tid: int, comm: str, cpus: str, kernel: bool = False, bound: bool = False) -> dict[str, str]:
    """The files of one thread that leads its own process; `bound` threads are pinned by the kernel itself."""
    flags = PF_KTHREAD * kernel | PF_NO_SETAFFINITY * bound
    rest = ["S", "2", "0", "0", "0", "-1", str(flags), *["0"] * 12, str(1000 + tid), *["0"] * 32]
    base = f"proc/{tid}/task/{tid}"
    status = f"Name:\t{comm}\nTgid:\t{tid}\nPPid:\t2\nCpus_allowed:\tf\nCpus_allowed_list:\t{cpus}\nMems_allowed:\t1"
    stat = f"{tid} ({comm}) {' '.join(rest)}"
    return {f"{base}/status": status, f"{base}/stat": stat, f"proc/{tid}/status": status, f"proc/{tid}/stat": stat}


def hybrid() -> dict[str, str]:
    """Two fast cores of two threads (CPUs 0-3) and four slow cores (4-7), as on a desktop processor."""
    files = machine(cpus=8)
    for cpu in range(4):
        files[f"{CPU}/cpu{cpu}/topology/core_cpus_list"] = "0-1" if cpu < 2 else "2-3"
    return files | {"sys/devices/cpu_core/cpus": "0-3", "sys/devices/cpu_atom/cpus": "4-7"}


def sparse() -> dict[str, str]:
    """Two nodes whose CPUs are numbered with holes, half of them unplugged: 1, 4, 5 | 10, 11, 14 run."""
    files = {name: text for name, text in machine(cpus=16).items() if "/node" not in name}
    files |= {f"{CPU}/online": "1,4-5,10-11,14", f"{CPU}/possible": "0-15", f"{CPU}/present": "1-5,10-15"}
    files |= {f"{CPU}/cpu{cpu}/online": str(int(cpu in (1, 4, 5, 10, 11, 14))) for cpu in range(1, 16)}
    return files | {
        "sys/devices/system/node/node0/cpulist": "1-5",
        "sys/devices/system/node/node3/cpulist": "10-15",
    }


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a root with its bytes, without quiet's own state in run/quiet."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if "/run/quiet" not in folder:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, root)] = file.read()
    return found

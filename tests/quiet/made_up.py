"""Synthetic machines: any topology, any settings, any part of them missing or unreadable, and kernels that refuse.

Whoever draws is a `random.Random`: of a seed, for thousands of machines that can each be made again, or Hypothesis's,
which finds a smaller one for what fails. The settings of knobs come from the files of cases/, so a new knob is here as
soon as it has its cases.
"""

from __future__ import annotations

import errno
import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random

from quiet import cpulist
from quiet.knobs.registry import KNOBS
from quiet.settings.profile import Profile, check
from tests.quiet.memory import Law, Memory
from tests.trees import CPU, cpufreq, task

NUMBERS = {
    "proc/sys/kernel/timer_migration": ("0", "1"),
    "proc/sys/kernel/nmi_watchdog": ("0", "1"),
    "proc/sys/kernel/watchdog_cpumask": ("0", "0-1", "0-31"),
    "proc/sys/kernel/numa_balancing": ("0", "1", "2"),
    "proc/sys/kernel/sched_rt_runtime_us": ("-1", "950000"),
    "proc/sys/kernel/randomize_va_space": ("0", "1", "2"),
    "proc/sys/kernel/perf_event_max_sample_rate": ("1", "25000", "100000"),
    "proc/sys/kernel/perf_cpu_time_max_percent": ("0", "1", "25", "100"),
    "proc/sys/vm/stat_interval": ("1", "60", "120", "", "often"),
    "sys/kernel/mm/ksm/run": ("0", "1", "2"),
    "sys/kernel/mm/transparent_hugepage/enabled": ("[always] madvise never", "always madvise [never]", "always"),
    "sys/kernel/mm/transparent_hugepage/defrag": ("always defer [defer+madvise] madvise never", "never"),
    "sys/kernel/mm/transparent_hugepage/khugepaged/defrag": ("0", "1"),
    "sys/devices/system/cpu/intel_pstate/no_turbo": ("0", "1"),
    "sys/devices/system/cpu/intel_pstate/min_perf_pct": ("8", "100"),
    "sys/devices/system/cpu/cpufreq/boost": ("0", "1"),
    "sys/devices/system/cpu/smt/control": ("on", "off", "forceoff", "notsupported", "notimplemented"),
}
REFUSALS = (errno.EPERM, errno.EIO, errno.EINVAL, errno.EBUSY, errno.EACCES, errno.ENODEV, errno.EOPNOTSUPP, 524)
# no kernel is without these, and a task has all of its files or none
KEPT = re.compile(rf"{CPU}/online$|proc/sys/kernel/random/|proc/\d+/")
# of a case, what belongs to this machine's own topology is not taken over
OWN = (f"{CPU}/cpu", f"{CPU}/online", f"{CPU}/possible", f"{CPU}/present", f"{CPU}/isolated", "proc/mounts", "sys/fs/")


@cache
def settings() -> tuple[Mapping[str, str], ...]:
    """The files of every case that are not of its topology."""
    found = []
    for path in sorted((Path(__file__).parent / "knobs" / "cases").glob("*.toml")):
        files = tomllib.loads(path.read_text()).get("files", {})
        found.append({name: text for name, text in files.items() if not name.startswith(OWN)})
    return tuple(files for files in found if files)


def some(random: Random, items: frozenset[int] | list[int], least: int = 1) -> frozenset[int]:
    """Some of them, `least` at least."""
    ordered = sorted(items)
    return frozenset(random.sample(ordered, random.randint(min(least, len(ordered)), len(ordered))))


def numbers(random: Random) -> list[int]:
    """The CPUs' numbers: mostly few and in order, now and then with holes, beyond a mask's word, or past 1,024."""
    count = random.choice([1, 2, 3, 4, 4, 6, 8, 8, 12, 16])
    shape = random.randrange(12)
    if shape == 0:
        return sorted(random.sample(range(70), count))
    if shape == 1:
        return [64 * n for n in range(count)]
    if shape == 2:
        return [1030 + n for n in range(count)]
    return list(range(count))


def topology(random: Random, cpus: list[int]) -> dict[str, str]:
    """Cores, nodes, core types, offline CPUs and CPUs isolated at boot; any of it may be missing."""
    online = some(random, cpus) if random.random() < 0.2 else frozenset(cpus)
    files = {
        f"{CPU}/online": cpulist.format(online),
        f"{CPU}/possible": random.choice([cpulist.format(cpus), f"0-{max(cpus) + random.choice([0, 0, 8])}"]),
        f"{CPU}/present": cpulist.format(cpus),
        f"{CPU}/isolated": cpulist.format(some(random, cpus, 0)) if random.random() < 0.2 else "",
    }
    if random.random() < 0.3:
        files[f"{CPU}/nohz_full"] = random.choice([cpulist.format(some(random, cpus, 0)), "(null)"])
    threads = random.choice([1, 1, 2, 2, 2, 4, 8])
    near = random.random() < 0.5  # a core's threads are neighbours, or far apart
    cores = max(1, len(cpus) // threads)
    core = {cpu: n // threads if near else n % cores for n, cpu in enumerate(cpus)}
    siblings = random.choice(
        ["core_cpus_list", "core_cpus_list", "thread_siblings_list", "thread_siblings", "core_cpus"]
    )
    for cpu in cpus:
        mates = {other for other in cpus if core[other] == core[cpu]}
        written = cpulist.format(mates) if siblings.endswith("_list") else cpulist.format_mask(mates)
        # an offline CPU has no topology
        if cpu in online or random.random() < 0.5:
            files[f"{CPU}/cpu{cpu}/topology/{siblings}"] = written
        files[f"{CPU}/cpu{cpu}/uevent"] = ""
        if cpu != cpus[0] or random.random() < 0.2 or cpu not in online:
            files[f"{CPU}/cpu{cpu}/online"] = str(int(cpu in online))
    return files | nodes(random, cpus) | kinds(random, cpus)


def nodes(random: Random, cpus: list[int]) -> dict[str, str]:
    """NUMA nodes: none, one, several with gaps in their numbers, some with memory only; they may cut cores in two."""
    count = random.choice([0, 1, 1, 2, 2, 4])
    place = [random.randrange(count) for _ in cpus] if count and random.random() < 0.3 else []
    files = {}
    for node in range(count):
        members = [c for n, c in enumerate(cpus) if (place[n] if place else n * count // len(cpus)) == node]
        name = f"sys/devices/system/node/node{node * random.choice([1, 1, 3])}"
        if random.random() < 0.8:
            files[f"{name}/cpulist"] = cpulist.format(members)
        else:
            files[f"{name}/cpumap"] = cpulist.format_mask(members)
    if random.random() < 0.1:
        files["sys/devices/system/node/node9/cpulist"] = ""  # memory only
    return files


def kinds(random: Random, cpus: list[int]) -> dict[str, str]:
    """Core types: none, as Intel says it, by capacity, or by frequency."""
    shape = random.randrange(8)
    if shape == 0:
        return {"sys/devices/cpu_atom/cpus": cpulist.format(some(random, cpus, 0)), "sys/devices/cpu_core/cpus": "0"}
    if shape == 1:
        return {f"{CPU}/cpu{cpu}/cpu_capacity": str(random.choice([1024, 446, 160])) for cpu in cpus}
    if shape == 2:
        return {f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq": str(random.choice([5100000, 3800000, 0])) for cpu in cpus}
    return {}


def interrupts(random: Random, cpus: list[int]) -> dict[str, str]:
    """Interrupts with any mask, some without one, some that fire elsewhere than they may."""
    files = {}
    for number in random.sample(range(200), random.randrange(6)):
        files[f"proc/irq/{number}/smp_affinity_list"] = cpulist.format(some(random, cpus))
        if random.random() < 0.5:
            files[f"proc/irq/{number}/effective_affinity_list"] = random.choice(["", str(random.choice(cpus))])
        files[f"sys/kernel/irq/{number}/actions"] = random.choice(["", "nvme0q1", "eth0,eth1"])
    for name in ("proc/irq/default_smp_affinity", "sys/devices/virtual/workqueue/cpumask"):
        files[name] = cpulist.format_mask(some(random, cpus))
    if random.random() < 0.3:
        files["sys/devices/virtual/workqueue/cpumask_requested"] = cpulist.format_mask(some(random, cpus))
    files["sys/devices/virtual/workqueue/writeback/cpumask"] = cpulist.format_mask(some(random, cpus))
    return files


def tasks(random: Random, cpus: list[int]) -> dict[str, str]:
    """Threads of both kinds, some bound, each somewhere."""
    files = {}
    for tid in random.sample(range(2, 99), random.randrange(5)):
        kernel = random.random() < 0.5
        comm = (
            random.choice(["sshd", "irqbalance", "a (b) c"]) if not kernel else random.choice(["rcuop/1", "kworker/u8"])
        )
        files |= task(tid, comm, cpulist.format(some(random, cpus)), kernel, kernel and random.random() < 0.5)
        files[f"proc/{tid}/cpuset"] = "/"
    return files


def cgroups(random: Random, cpus: list[int]) -> dict[str, str]:
    """No hierarchy, the first version or the second; now and then a place that only the container's host may write."""
    version = random.choice([0, 1, 2, 2])
    mounts = ["proc /proc proc rw 0 0", "sysfs /sys sysfs rw 0 0"]
    files = {}
    if version == 2:
        mounts.append("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0")
        files["sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io"
        files["sys/fs/cgroup/cgroup.subtree_control"] = random.choice(["cpu io", "cpuset cpu"])
        files["sys/fs/cgroup/cgroup.procs"] = ""
    elif version == 1:
        mounts.append("cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0")
        files["sys/fs/cgroup/cpuset/cpuset.cpus"] = cpulist.format(cpus)
        files["sys/fs/cgroup/cpuset/cpuset.mems"] = "0"
        files["sys/fs/cgroup/cpuset/cpuset.sched_load_balance"] = "1"
        files["sys/fs/cgroup/cpuset/tasks"] = ""
    shape = random.randrange(30)
    if shape == 0:
        mounts.append("proc /proc/sys proc ro 0 0")
    elif shape == 1:
        mounts += ["proc /proc/sys proc ro 0 0", "sysfs /sys sysfs ro 0 0"]
    elif shape == 2:
        files["proc/self/uid_map"] = "0 1000 1"
    return files | {"proc/mounts": "\n".join(mounts)}


def frequencies(random: Random, cpus: list[int]) -> dict[str, str]:
    """No driver, or any; policies of one CPU, or shared ones."""
    if random.random() < 0.4:
        return {}
    driver = random.choice(
        ["acpi-cpufreq", "intel_pstate", "intel_cpufreq", "amd-pstate-epp", "cppc_cpufreq", "cpufreq-dt"]
    )
    files = {
        name.replace("policy0", f"policy{cpu}"): text
        for cpu in cpus
        for name, text in cpufreq(1, driver, energy_performance_preference="balance_power").items()
    }
    width = random.choice([1, 1, 2, 4])
    for n in range(0, len(cpus), width):
        for cpu in cpus[n + 1 : n + width]:
            files = {name: text for name, text in files.items() if f"/policy{cpu}/" not in name}
        files[f"{CPU}/cpufreq/policy{cpus[n]}/affected_cpus"] = " ".join(map(str, cpus[n : n + width]))
        if random.random() < 0.3:
            files[f"{CPU}/cpufreq/policy{cpus[n]}/base_frequency"] = "2100000"
        if random.random() < 0.3:
            files[f"{CPU}/cpufreq/policy{cpus[n]}/boost"] = random.choice("01")
    return files


def files(random: Random) -> tuple[dict[str, str], list[int]]:
    """A machine's files and its CPUs."""
    cpus = numbers(random)
    found = {"proc/cmdline": "ro quiet", "proc/sys/kernel/random/boot_id": "0b0b"}
    for group in random.sample(settings(), random.randrange(4)):
        found |= group
    for name, choices in NUMBERS.items():
        if random.random() < 0.7:
            found[name] = random.choice(choices)
    for part in (frequencies, tasks, interrupts, topology, cgroups):
        found |= part(random, cpus)
    lost = random.choice([0.0, 0.0, 0.0, 0.02, 0.2])
    found = {name: text for name, text in found.items() if KEPT.match(name) or random.random() >= lost}
    asked = "sys/devices/virtual/workqueue/cpumask_requested"
    if asked in found:  # with no partition all that was asked for is in force, of the CPUs that there are
        wanted, possible = cpulist.parse_mask(found[asked]), cpulist.parse(found.get(f"{CPU}/possible", ""))
        found["sys/devices/virtual/workqueue/cpumask"] = cpulist.format_mask(wanted & possible or wanted)
    return found, cpus


def stubborn(random: Random, host: Memory) -> None:
    """Give the host its own laws: refusals by path, values that the hardware rounds, a file that vanishes."""
    paths = [path for path in host.files if path.startswith(("/sys", "/proc"))]
    refused = {path: random.choice(REFUSALS) for path in random.sample(paths, random.randrange(min(9, len(paths) + 1)))}
    leaving = random.choice(paths) if random.random() < 0.05 else None
    when = random.randrange(20)

    def law(kernel: Memory, path: str, value: str) -> str:
        if kernel.writes == when and leaving and leaving != path and _device(leaving):
            kernel.drop(leaving)
        if path in refused:
            raise OSError(refused[path], os.strerror(refused[path]))
        if path.endswith("_freq") and value.isdecimal():
            return str(min(int(value) // 100000 * 100000, 2000000))
        return value

    host.laws.append(law)
    host.verdict = random.choice(["isolated", "isolated", "isolated invalid (Cpu list in cpuset.cpus not exclusive)"])


def _device(path: str) -> bool:
    """Whether this may go with its device or its task."""
    return path.startswith(("/proc/irq/", f"/{CPU}/cpufreq/policy"))


def meddling(random: Random, touched: set[str]) -> Law:
    """Another program that writes in between."""
    when = random.randrange(1, 40)

    def law(kernel: Memory, path: str, value: str) -> str:
        if kernel.writes == when:
            touched.update(meddle(random, kernel, 1))
        return value

    return law


def meddle(random: Random, host: Memory, most: int) -> set[str]:
    """Another program changes some files: their paths."""
    names = [name for name in NUMBERS if f"/{name}" in host.files and "smt/control" not in name]
    names += [
        path[1:] for path in host.files if path.endswith("smp_affinity_list") or ("/policy" in path and "_freq" in path)
    ]
    chosen = random.sample(names, min(len(names), random.randint(0, most)))
    for name in chosen:
        other = ("1200000", "2500000") if name.endswith("_freq") else ("0", "0-1")
        host.files[f"/{name}"] = random.choice(NUMBERS.get(name, other))
    return {f"/{name}" for name in chosen}


def profiles(random: Random, cpus: list[int]) -> Profile:
    """Any choice for any knob, on CPUs that are chosen or named."""
    chosen: dict[str, object] = {}
    for knob in KNOBS:
        if random.random() < 0.7:
            numbers = [random.choice([1, 90])] if knob.numeric else []
            chosen[knob.name] = random.choice([*knob.choices, *numbers, *(["0-1"] if knob.lists else [])])
    sets = {"isolated": "auto", "housekeeping": "auto", "max_cores": random.randint(1, 5)}
    if random.random() < 0.5:
        isolated = some(random, cpus[random.choice([0, 1, 1]) :] or cpus)
        sets["isolated"] = cpulist.format(isolated)
        if set(cpus) - isolated and random.random() < 0.3:
            sets["housekeeping"] = cpulist.format(some(random, frozenset(cpus) - isolated))
    return check({"name": "drawn", "cpus": sets, "knobs": chosen}, "profile drawn", "drawn")

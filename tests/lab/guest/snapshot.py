"""Everything that a quieting tool might change on this machine, read byte for byte, as one JSON object.

On purpose it knows nothing of the tool under test: it has its own list of files and its own reader, so that a
mistake there cannot hide itself here. `python snapshot.py > before.json` takes one; `compare(before, after)`
lists what differs, one line each. What the kernel itself moves around is kept apart, under "informational".

It is taken many times by an emulated processor, on which a path's object costs as much as reading the file: paths are
plain texts here, and each directory is listed once.
"""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from quiet import cpulist

Snapshot = dict[str, Any]

FILES = (
    "/proc/irq/default_smp_affinity",
    "/proc/irq/*/smp_affinity",
    "/proc/irq/*/smp_affinity_list",
    "/sys/devices/virtual/workqueue/cpumask*",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/devices/virtual/workqueue/*/affinity_*",
    "/sys/devices/virtual/workqueue/*/nice",
    "/sys/devices/system/cpu/cpu*/online",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/cpufreq/policy*/boost",
    "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    "/sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq",
    "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq",
    "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
    "/sys/devices/system/cpu/intel_pstate/*",
    "/sys/devices/system/cpu/amd_pstate/*",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/power/energy_perf_bias",
    "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpuidle/current_governor",
    "/sys/devices/system/cpu/intel_uncore_frequency/*/m*_freq_khz",
    "/sys/devices/system/machinecheck/machinecheck*/check_interval",
    "/sys/devices/system/machinecheck/machinecheck*/cmci_disabled",
    "/sys/devices/system/machinecheck/machinecheck*/ignore_ce",
    "/sys/module/pcie_aspm/parameters/policy",
    "/sys/firmware/acpi/platform_profile",
    "/sys/class/scsi_host/host*/link_power_management_policy",
    "/sys/class/devfreq/*/governor",
    "/sys/class/devfreq/*/m*_freq",
    "/dev/cpu_dma_latency",  # the combined requests of all processes that hold it open
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
    "/sys/kernel/mm/transparent_hugepage/hugepages-*/*enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/alloc_sleep_millisecs",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_*",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/ksm/sleep_millisecs",
    "/sys/kernel/mm/ksm/pages_to_scan",
    "/sys/kernel/mm/ksm/merge_across_nodes",
    "/sys/kernel/mm/ksm/use_zero_pages",
    "/sys/kernel/mm/lru_gen/enabled",
    "/sys/kernel/debug/sched/features",
    "/sys/kernel/debug/sched/*_server/cpu*/*",
    "/proc/sys/kernel/kptr_restrict",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/perf_cpu_time_max_percent",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/sched_*",
    "/proc/sys/kernel/soft_watchdog",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/watchdog",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/kernel/watchdog_thresh",
    "/proc/sys/kernel/bpf_stats_enabled",
    "/proc/sys/kernel/hung_task_timeout_secs",
    "/proc/sys/kernel/printk",
    "/proc/sys/kernel/split_lock_mitigate",
    "/proc/sys/kernel/stack_tracer_enabled",
    "/proc/sys/kernel/task_delayacct",
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/vm/laptop_mode",
    "/proc/sys/vm/watermark_boost_factor",
    "/proc/sys/vm/zone_reclaim_mode",
    "/proc/swaps",
    "/sys/kernel/rcu_*",
    "/sys/module/rcupdate/parameters/rcu_task_ipi_delay",
    "/sys/module/workqueue/parameters/*",
    "/sys/module/kfence/parameters/sample_interval",
    "/sys/module/edac_core/parameters/edac_mc_poll_msec",
    "/sys/kernel/mm/damon/admin/kdamonds/*/state",
    "/sys/module/damon_*/parameters/enabled",
    "/sys/kernel/mm/numa/demotion_enabled",
    "/sys/devices/system/node/node*/hugepages/*/nr_hugepages",
    "/sys/devices/system/clocksource/clocksource*/current_clocksource",
    "/sys/bus/event_source/devices/*/perf_event_mux_interval_ms",
    "/sys/class/graphics/fbcon/cursor_blink",
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/sys/vm/dirty_*",
    "/proc/sys/vm/nr_hugepages",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/swappiness",
    "/sys/kernel/tracing/tracing_on",
    "/sys/kernel/tracing/current_tracer",
    "/sys/kernel/tracing/trace_clock",
    "/sys/kernel/tracing/events/enable",
    "/sys/bus/workqueue/devices/writeback/cpumask",
)
# The kernel moves an interrupt when it next fires, and never shrinks a trace buffer that was once used.
CLOCKS = "/sys/devices/system/clocksource/clocksource0/"
AVAILABLE = CLOCKS + "available_clocksource"
INFORMATIONAL_FILES = ("/proc/irq/*/effective_affinity_list", "/sys/kernel/tracing/buffer_size_kb", AVAILABLE)
CGROUP_FILES = (
    "cgroup.subtree_control",
    "cpuset.cpus",
    "cpuset.cpus.partition",
    "cpuset.cpus.exclusive",
    "cpuset.mems",
    "cpuset.cpu_exclusive",
    "cpuset.sched_load_balance",
    "memory.swap.max",
)
CGROUPS = "/sys/fs/cgroup"
DIRECTORIES = ("/sys/kernel/tracing/instances/*", "/sys/fs/resctrl/*")
POOLS = ("/sys/devices/virtual/workqueue/cpumask", "/sys/devices/virtual/workqueue/*/cpumask")
PF_KTHREAD = 0x00200000
PF_NO_SETAFFINITY = 0x04000000


def take(root: str = "/") -> Snapshot:
    folders = Folders(root)
    tasks, informational_tasks = _tasks(folders)
    return {
        "files": _files(folders, FILES),
        "cgroups": _cgroups(folders),
        "directories": _directories(folders),
        "tasks": tasks,
        "informational": {"files": _files(folders, INFORMATIONAL_FILES), "tasks": informational_tasks},
    }


class Folders:
    """The directories under a root, each listed once. Paths are given and returned as seen from the root."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")
        self._names: dict[str, list[str]] = {}

    def here(self, path: str) -> str:
        return self._root + path

    def names(self, path: str) -> list[str]:
        if path not in self._names:
            try:
                self._names[path] = os.listdir(self.here(path))
            except OSError:  # none, or no directory
                self._names[path] = []
        return self._names[path]

    def matching(self, pattern: str) -> Iterator[str]:
        """Paths that may be there: the last part is looked for only where it has a wildcard."""
        found = [""]
        for part in pattern.strip("/").split("/"):
            if "*" in part or "[" in part:
                matches = re.compile(fnmatch.translate(part)).match
                found = [f"{path}/{name}" for path in found for name in self.names(path) if matches(name)]
            else:
                found = [f"{path}/{part}" for path in found]
        return iter(found)


def compare(before: Snapshot, after: Snapshot, *, informational: bool = False) -> list[str]:
    """The differences, without tasks that started or ended by themselves.

    A clock source that the kernel itself has withdrawn, as other work on the emulator's host delayed it, is left out.
    """
    offered = [each.get("informational", {}).get("files", {}).get(AVAILABLE) for each in (before, after)]
    withdrawn = {CLOCKS + "current_clocksource"} if offered[0] != offered[1] else set()
    if informational:
        before, after = before["informational"], after["informational"]
    lines = []
    for section in ("files", "cgroups", "directories"):
        old, new = before.get(section, {}), after.get(section, {})
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name) and name not in withdrawn:
                lines.append(f"{name}: was {_shown(old, name)}, is {_shown(new, name)}")
    for name in sorted(before["tasks"].keys() & after["tasks"].keys()):
        old, new = before["tasks"][name], after["tasks"][name]
        lines += [f"task {name}: {key} was {old[key]}, is {new[key]}" for key in old if old[key] != new[key]]
    return lines


def _shown(values: dict[str, str], name: str) -> str:
    return repr(values[name]) if name in values else "absent"


def _bytes(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        pieces = []
        while piece := os.read(fd, 1 << 16):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)


def _read(path: str) -> str | None:
    """Its content; None if it is not a file."""
    try:
        return _bytes(path).decode(errors="replace")
    except OSError as error:  # a file that refuses to be read is a state, too
        return None if error.errno in NO_FILE else f"<{error.strerror}>"


def _files(folders: Folders, patterns: tuple[str, ...]) -> dict[str, str]:
    read = {path: _read(folders.here(path)) for pattern in patterns for path in folders.matching(pattern)}
    return {path: text for path, text in read.items() if text is not None}


def _cgroups(folders: Folders) -> dict[str, str]:
    """Every group (its directory's name is a value of its own), and what is set in each."""
    found: dict[str, str] = {}
    for path, _, names in os.walk(folders.here(CGROUPS)):
        group = path[len(folders.here("")) :]
        found[f"{group}/"] = "a group"
        for name in names:
            if name in CGROUP_FILES and (text := _read(f"{path}/{name}")) is not None:
                found[f"{group}/{name}"] = text
    return found


def _directories(folders: Folders) -> dict[str, str]:
    """Kernel objects that exist as directories: trace instances and resctrl groups of other programs."""
    found = [path for each in DIRECTORIES for path in folders.matching(each)]
    return {f"{path}/": "" for path in found if os.path.isdir(folders.here(path))}


def _tasks(folders: Folders) -> tuple[dict[str, Any], dict[str, Any]]:
    tasks: dict[str, Any] = {}
    informational: dict[str, Any] = {}
    possible = (_read(folders.here("/sys/devices/system/cpu/possible")) or "").strip()
    masks = [_read(folders.here(path)) for pattern in POOLS for path in folders.matching(pattern)]
    pools = [cpulist.parse_mask(mask) for mask in masks if mask and mask.strip()]
    for folder in folders.matching("/proc/[0-9]*/task/[0-9]*"):
        here = folders.here(folder)
        try:
            stat = _bytes(f"{here}/stat").decode()
            status = _bytes(f"{here}/status").decode()
            group = _bytes(f"{here}/cgroup").decode()
        except OSError:
            continue  # it ended during the check
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        fields = stat[stat.rindex(")") + 2 :].split()
        state, flags, start = fields[0], int(fields[6]), fields[19]
        at = status.index("\nCpus_allowed_list:") + len("\nCpus_allowed_list:")
        allowed = status[at : status.index("\n", at)].strip()
        kernel_thread = bool(flags & PF_KTHREAD)
        # A worker renames itself by what it works on, and its mask follows the pool that it serves just now;
        # an interrupt's thread follows its interrupt when that next fires.
        worker = kernel_thread and name.startswith("kworker/")
        moved_by_kernel = kernel_thread and name.startswith(("kworker/", "irq/"))
        # A workqueue's rescuer is on the CPUs of the pool that it last helped (kernel/workqueue.c,
        # worker_attach_to_pool) until a cpuset next changes, then on all, and no user can set it. Left without some
        # CPUs would be another thing, and so would a thread of one CPU ("name/3") that has left it.
        rescuer = kernel_thread and flags & PF_NO_SETAFFINITY and "/" not in name
        if rescuer and (allowed == possible or allowed.isdigit() or cpulist.parse(allowed) in pools):
            allowed = "all, or that of one pool"
        entry = {
            "allowed": allowed,
            "cgroup": group,
            "stopped": state == "T",
            "policy": [*fields[15:17], *fields[37:39]],
        }
        number = folder.rpartition("/")[2]
        key = f"{number}@{start} {'kworker' if worker else name}"
        (informational if moved_by_kernel else tasks)[key] = entry
    return tasks, informational


if __name__ == "__main__":
    json.dump(take(*sys.argv[1:2]), sys.stdout, indent=1, sort_keys=True)
    print()

"""Runs in the guest: bring the host into an unusual state, so that restoring defaults would be noticed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

CPU = Path("/sys/devices/system/cpu")
LIMIT_US = 200  # of the idle states, as another program holds it
SETTINGS = {
    "/proc/sys/kernel/perf_event_max_sample_rate": "70000",
    "/proc/sys/kernel/randomize_va_space": "1",
    "/proc/sys/kernel/sched_rt_runtime_us": "900000",
    "/proc/sys/vm/stat_interval": "3",
    "/sys/devices/system/machinecheck/machinecheck0/check_interval": "100",
    "/proc/sys/kernel/bpf_stats_enabled": "1",
    "/proc/sys/kernel/hung_task_timeout_secs": "77",
    "/proc/sys/kernel/printk": "5 3 2 6",
    "/proc/sys/kernel/sched_schedstats": "1",
    "/proc/sys/kernel/task_delayacct": "1",
    "/proc/sys/vm/compaction_proactiveness": "33",
    # one of the two pairs in bytes, which makes the other unit 0
    "/proc/sys/vm/dirty_bytes": "268435456",
    "/proc/sys/vm/dirty_background_ratio": "7",
    "/proc/sys/vm/dirty_expire_centisecs": "2000",
    "/proc/sys/vm/dirty_writeback_centisecs": "700",
    "/proc/sys/vm/laptop_mode": "2",
    "/proc/sys/vm/swappiness": "77",
    "/proc/sys/vm/watermark_boost_factor": "12000",
    "/proc/sys/vm/zone_reclaim_mode": "1",
    "/sys/kernel/mm/numa/demotion_enabled": "true",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs": "9000",
    "/sys/kernel/rcu_expedited": "1",
    "/sys/module/rcupdate/parameters/rcu_task_ipi_delay": "3",
    "/sys/module/workqueue/parameters/watchdog_thresh": "20",
    "/sys/bus/event_source/devices/software/perf_event_mux_interval_ms": "9",
    "/sys/devices/system/machinecheck/machinecheck0/cmci_disabled": "1",
    "/sys/module/pcie_aspm/parameters/policy": "powersave",
    f"{CPU}/cpu0/cpuidle/state0/disable": "1",
    f"{CPU}/cpu1/power/pm_qos_resume_latency_us": "30",
    f"{CPU}/cpu3/power/pm_qos_resume_latency_us": "50",
    "/sys/kernel/mm/ksm/run": "1",
    "/sys/kernel/mm/transparent_hugepage/defrag": "defer",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none": "500",
    f"{CPU}/cpufreq/policy0/scaling_governor": "powersave",
    f"{CPU}/cpufreq/policy1/scaling_max_freq": "2000000",
    f"{CPU}/cpufreq/policy2/scaling_min_freq": "2000000",
    f"{CPU}/cpufreq/policy3/scaling_governor": "ondemand",
    "/sys/devices/virtual/workqueue/writeback/cpumask": "5",
    "/sys/devices/virtual/workqueue/cpumask": "7",
    "/proc/irq/default_smp_affinity": "e",
}


def sleeper(cpus: set[int] | None = None) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(["sleep", "100000"])
    if cpus:
        os.sched_setaffinity(process.pid, cpus)
    return process


def write(path: str, text: str, done: dict[str, str]) -> None:
    if Path(path).exists():
        try:
            Path(path).write_text(text + "\n")
            done[path] = text
        except OSError as error:
            done[path] = f"refused: {error.strerror}"


def swap_on(done: dict[str, str]) -> None:
    """Swap to a disk in memory, where the kernel has one."""
    steps = ("modprobe brd rd_nr=1 rd_size=16384", "mkswap /dev/ram0", "swapon -p 5 /dev/ram0")
    if all(subprocess.run(step.split(), capture_output=True, check=False).returncode == 0 for step in steps):
        done["/proc/swaps"] = "/dev/ram0"


def device_interrupts() -> list[int]:
    """The interrupts of the emulated PCI devices: each can be sent to any CPU."""
    lines = Path("/proc/interrupts").read_text().splitlines()
    return [int(found[1]) for line in lines if "MSI" in line and (found := re.match(r" *(\d+):", line))]


def disturb() -> dict[str, str]:
    """Everything that a user may have set by hand; returns what was set and what the kernel refused.

    The last CPUs are those that will be isolated on every machine here, so this is done to them most of all.
    """
    done: dict[str, str] = {}
    for path, text in SETTINGS.items():
        write(path, text, done)
    swap_on(done)
    first, second, *_ = device_interrupts()
    last = (os.cpu_count() or 1) - 1
    write(f"/proc/irq/{first}/smp_affinity_list", f"{last}", done)
    write(f"/proc/irq/{second}/smp_affinity_list", f"0,{last}", done)
    for cpus in ({0, last}, {last}, {last - 1, last}, None):
        sleeper(cpus)
    with open("/dev/cpu_dma_latency", "wb") as device:  # another program's limit, which must stay unchanged
        device.write(LIMIT_US.to_bytes(4, sys.byteorder))
        device.flush()
        subprocess.Popen(["sleep", "100000"], stdout=device)
    stopped = sleeper({1, last})
    stopped.send_signal(signal.SIGSTOP)
    for group in (Path("/sys/fs/cgroup/users/one"), Path("/sys/fs/cgroup/cpuset/users")):
        if (group.parent if group.name == "users" else group.parents[1] / "cgroup.procs").exists():
            group.mkdir(parents=True, exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems") if group.name == "users" else ():
                text = (group.parent / name).read_text().strip()
                write(str(group / name), text, done)
            write(str(group / "cgroup.procs"), str(sleeper().pid), done)
    time.sleep(0.5)  # until the signal has stopped the process
    return done

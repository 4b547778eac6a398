"""Runs in the guest: eight causes that interrupt a CPU, each removed by one knob, and knobs that remove nothing.

Each cause is a small process that runs until the end, with the setting that lets it reach the CPU. Where systemd is
the init, the daemons are services, as their knobs have them.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests.lab.guest import provoke
from tests.lab.guest.provoke import Loads

CPU, HOUSEKEEPING = 3, "0-1"
UNITS, PROGRAMS = Path("/usr/lib/systemd/system"), Path("/srv/causes")
TRACING = Path("/sys/kernel/tracing")
PLANTED, PATIENCE_S = TRACING / "instances/planted", 60
PINNED = "import time\nwhile True: time.sleep(0.05)"
# A software event of the CPU (perf_event_open(2)): who reads or switches it from another CPU interrupts this one.
EVENT = f"""
import ctypes, fcntl, os, struct, time
attr = struct.pack("IIQ", 1, 112, 9).ljust(112, b"\\0")
fd = ctypes.CDLL(None).syscall(298, attr, -1, {CPU}, -1, 0)
assert fd >= 0
while True:
    time.sleep(0.1)
"""
# A profiler of the whole machine: 20 samples a second of the CPU's clock. It opens its event again each second, as the
# limit applies to new events.
SAMPLES = f"""
import ctypes, os, struct, time
attr = struct.pack("IIQQQQQ", 1, 112, 0, 20, 1, 0, 1 << 10).ljust(112, b"\\0")
libc = ctypes.CDLL(None)
while True:
    fd = libc.syscall(298, attr, -1, {CPU}, -1, 0)
    time.sleep(1)
    if fd >= 0: os.close(fd)
"""
READS = EVENT + "    os.read(fd, 8)\n"
SWITCHES = EVENT + "    fcntl.ioctl(fd, 0x2401); fcntl.ioctl(fd, 0x2400)\n"
RESIZES = f"""
import os, time
directory = "{PLANTED}"
os.makedirs(directory, exist_ok=True)
while True:
    for size in ("64", "128"):
        with open(directory + "/per_cpu/cpu{CPU}/buffer_size_kb", "w") as file: file.write(size)
        time.sleep(0.1)
"""


def pinned(loads: Loads) -> None:
    loads.loop(PINNED, {loads.cpu})


def samples(loads: Loads) -> None:
    loads.loop(SAMPLES)


def daemon(name: str, code: str) -> Callable[[Loads], None]:
    """A program of this name that runs the code; a service where systemd is."""

    def load(loads: Loads) -> None:
        PROGRAMS.mkdir(parents=True, exist_ok=True)
        program = PROGRAMS / name
        program.write_text(f"#!{sys.executable} -S\n{code}")
        program.chmod(0o755)
        if not has_systemd():
            loads.program(program)
            return
        (UNITS / f"{name}.service").write_text(f"[Service]\nExecStart={program}\nCPUAffinity=0\n")
        subprocess.run(["systemctl", "daemon-reload"], check=True)
        subprocess.run(["systemctl", "start", f"{name}.service"], check=True)

    return load


def has_systemd() -> bool:
    return Path("/run/systemd/system").is_dir()


COMMON: Mapping[str, Callable[[Loads], None]] = {
    "irq": provoke.device,
    "tasks": pinned,
    "workqueue": provoke.works,
    "perf.sample_rate": samples,
    "watchdog.cpus": provoke.watchdogs,
    "thermald": daemon("thermald", READS),
    "rivals": daemon("tuned", SWITCHES),
}
CAUSES = {**COMMON, "irqbalance": daemon("irqbalance", RESIZES)}
CAUSES_OF_A_HOST = {**COMMON, "services": daemon("packagekit", RESIZES)}
"""By the one knob that removes each."""

_SYS, _VM, _MM = "/proc/sys/kernel/", "/proc/sys/vm/", "/sys/kernel/mm/"
BEFORE = {
    "/proc/irq/default_smp_affinity": "f",
    "/proc/sys/net/core/rps_default_mask": "8",
    "/proc/sys/net/core/rps_sock_flow_entries": "4096",
    "/proc/sys/net/core/busy_poll": "50",
    f"{_SYS}timer_migration": "0",
    f"{_SYS}sched_schedstats": "1",
    f"{_SYS}task_delayacct": "1",
    f"{_SYS}bpf_stats_enabled": "1",
    f"{_VM}zone_reclaim_mode": "1",
    f"{_VM}laptop_mode": "2",
    f"{_VM}dirty_background_ratio": "5",
    f"{_MM}numa/demotion_enabled": "true",
    f"{_MM}ksm/run": "1",
    f"{_MM}transparent_hugepage/enabled": "always",
    f"{_MM}transparent_hugepage/defrag": "always",
    f"{_MM}transparent_hugepage/shmem_enabled": "always",
    "/sys/kernel/rcu_expedited": "1",
    "/sys/module/kfence/parameters/sample_interval": "500",
    "/sys/module/pcie_aspm/parameters/policy": "powersave",
    "/sys/devices/system/cpu/cpuidle/current_governor": "menu",
}
"""What gives the knobs below something to change, where the kernel has it."""

INERT: Mapping[str, str | int] = {
    **dict.fromkeys(("irq.default", "net.rps_default", "net.rfs", "net.busy_poll"), "quiet"),
    **dict.fromkeys(("timer_migration", "watchdog.hung_tasks", "watchdog.workqueue", "kfence", "edac.poll"), "quiet"),
    **dict.fromkeys(("sched.autogroup", "perf.mux_interval", "perf.cpu_time"), "quiet"),
    **dict.fromkeys(("accounting.sched", "accounting.delays", "accounting.bpf", "rt_throttling"), "quiet"),
    **dict.fromkeys(("thp", "thp.shmem", "thp.defrag", "thp.khugepaged", "thp.scan", "ksm"), "quiet"),
    **dict.fromkeys(("vm.compaction", "vm.compact_unevictable", "vm.watermark_boost", "vm.zone_reclaim"), "quiet"),
    **dict.fromkeys(("vm.demotion", "writeback.interval", "writeback.expire", "writeback.background"), "quiet"),
    **dict.fromkeys(("writeback.limit", "writeback.laptop_mode", "swap.swappiness", "console.loglevel"), "quiet"),
    **dict.fromkeys(("rcu.expedited", "rcu.normal", "rcu.tasks_ipi"), "quiet"),
    **dict.fromkeys(("mce.interval", "mce.cmci", "mce.ignore", "idle.cpus", "power.pcie"), "quiet"),
    "vm.stat_interval": 120,
    "workqueue.scope": "system",
    "idle.governor": "teo",
    "aslr": "sysctl",
}
"""Knobs that keep nothing from the CPU here. It is nohz_full and outside every scheduling domain since the boot."""
MOST_INERT = 40


def prepare() -> None:
    """Give the inert knobs something to change."""
    if not (TRACING / "events").exists():
        subprocess.run(["mount", "-t", "tracefs", "nodev", str(TRACING)], check=True)
    for path, text in BEFORE.items():
        with contextlib.suppress(OSError):
            if Path(path).exists():
                provoke.put(path, text)


def profile(knobs: Iterable[str]) -> str:
    """A profile of these knobs."""
    choices: dict[str, str | int] = {**dict.fromkeys((*CAUSES, *CAUSES_OF_A_HOST), "quiet"), **INERT}
    head = f'name = "causes"\n[cpus]\nisolated = "{CPU}"\nhousekeeping = "{HOUSEKEEPING}"\n[knobs]\n'
    return head + "".join(f'"{name}" = {json.dumps(choices[name])}\n' for name in knobs)


def start(loads: Loads, causes: Mapping[str, Callable[[Loads], None]]) -> None:
    """Start the causes, and wait until the one that leaves something has begun. An impossible cause is an error."""
    for name, load in causes.items():
        loads.start(name, load)
    assert not loads.left_out, loads.left_out
    limit = time.monotonic() + PATIENCE_S
    while not PLANTED.exists() and time.monotonic() < limit:
        time.sleep(0.1)
    assert PLANTED.exists(), "the cause that resizes a trace buffer did not begin"

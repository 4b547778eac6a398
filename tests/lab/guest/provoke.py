"""Runs in the guest: all disturbances that knobs remove, at once and aimed at one CPU, until the context ends.

Each load is a small process on CPU 0 that runs forever, with the settings that let it reach the CPU. A load that
this kernel cannot have is left out, with the reason.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.lab.guest import plant

PYTHON = sys.executable
RAM_DISK = Path("/tmp/ramdisk")
THP = Path("/sys/kernel/mm/transparent_hugepage")
MERGE = """
import mmap, time
page = mmap.mmap(-1, 16 << 20)
page.madvise(12)
page.write(b"same" * (4 << 20))
while True: time.sleep(60)
"""
HUGE = """
import mmap, time
while True:
    page = mmap.mmap(-1, 32 << 20)
    page.madvise(14)
    for at in range(0, 32 << 20, 8192): page[at] = 1
    time.sleep(1)
    page.close()
"""
PACKETS = """
import socket, time
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(("127.0.0.1", 0))
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    b.sendto(b"x", a.getsockname()); a.recv(10); time.sleep(0.05)
"""
TERMINAL = """
import os, pty, time
main, other = pty.openpty()
while True:
    os.write(main, b"x\\n"); os.read(other, 10); os.read(main, 10); time.sleep(0.05)
"""
TIMESTAMPS = """
import socket, time
while True:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, 29, 1); time.sleep(0.05)
    time.sleep(0.05)
"""
GRACE = """
import ctypes, time
libc = ctypes.CDLL(None)
while True:
    libc.syscall(324, 1, 0, 0); time.sleep(0.05)
"""
FILES = """
import os, time
n = 0
while True:
    n += 1
    with open("{folder}/plant%d" % (n % 8), "wb") as file: file.write(b"x" * 4096)
    time.sleep(0.1)
"""
MESSAGES = """
import time
while True:
    with open("/dev/kmsg", "w") as log: log.write("<6>provoked\\n")
    time.sleep(0.1)
"""


def put(path: Path | str, text: str) -> None:
    Path(path).write_text(text + "\n")


def kernel_thread(name: str) -> int:
    """Its id. LookupError where there is none."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "comm").read_text().strip() == name and not (folder / "cmdline").read_bytes():
                return int(folder.name)
    raise LookupError(f"no kernel thread {name}")


class Loads:
    """The processes that were started, and the omitted loads."""

    def __init__(self, cpu: int) -> None:
        self.cpu, self.mask = cpu, f"{1 << cpu:x}"
        self.left_out: dict[str, str] = {}
        self._running: list[subprocess.Popen[bytes]] = []

    def loop(self, code: str, cpus: set[int] | None = None) -> None:
        self._start([PYTHON, "-S", "-c", code], cpus or {0})

    def program(self, path: Path) -> None:
        """Start an executable file, whose name its process then has."""
        self._start([str(path)], {0})

    def _start(self, command: list[str], cpus: set[int]) -> None:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.sched_setaffinity(process.pid, cpus)
        self._running.append(process)

    def start(self, name: str, load: Callable[[Loads], None]) -> None:
        try:
            load(self)
        except (OSError, LookupError, subprocess.CalledProcessError) as error:
            self.left_out[name] = str(error)

    def end(self) -> None:
        for process in self._running:
            process.send_signal(signal.SIGKILL)
            process.wait()


def device(loads: Loads) -> None:
    folder = Path(os.environ["LAB_OUT"]).parent
    line = plant.busiest_interrupt(folder)
    put(f"/proc/irq/{line}/smp_affinity_list", str(loads.cpu))
    put("/proc/irq/default_smp_affinity", loads.mask)
    loads.loop(FILES.format(folder=folder))


def tasks(loads: Loads) -> None:
    loads.loop("import time\nwhile True: time.sleep(0.05)", {loads.cpu - 1, loads.cpu})
    loads.loop("import time\nwhile True: time.sleep(0.1)", {loads.cpu})


def packets(loads: Loads) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    put("/sys/class/net/lo/queues/rx-0/rps_cpus", loads.mask)
    loads.loop(PACKETS)


def works(loads: Loads) -> None:
    put("/sys/devices/virtual/workqueue/cpumask", loads.mask)
    loads.loop(TERMINAL)


def timestamps(loads: Loads) -> None:
    loads.loop(TIMESTAMPS)


def expedited(loads: Loads) -> None:
    put("/sys/kernel/rcu_expedited", "1")
    loads.loop(GRACE)


def ksm(loads: Loads) -> None:
    put("/sys/kernel/mm/ksm/sleep_millisecs", "20")
    put("/sys/kernel/mm/ksm/run", "1")
    os.sched_setaffinity(kernel_thread("ksmd"), {loads.cpu})
    loads.loop(MERGE)


def huge_pages(loads: Loads) -> None:
    put(THP / "enabled", "always")
    put(THP / "khugepaged/scan_sleep_millisecs", "50")
    put(THP / "khugepaged/alloc_sleep_millisecs", "50")
    os.sched_setaffinity(kernel_thread("khugepaged"), {loads.cpu})
    loads.loop(HUGE)


def statistics(loads: Loads) -> None:
    put("/proc/sys/vm/stat_interval", "1")
    put("/proc/sys/vm/compaction_proactiveness", "100")


def machine_checks(loads: Loads) -> None:
    put("/sys/devices/system/machinecheck/machinecheck0/check_interval", "1")


def watchdogs(loads: Loads) -> None:
    put("/proc/sys/kernel/watchdog_thresh", "1")
    put("/proc/sys/kernel/watchdog_cpumask", f"0-{loads.cpu}")


def allocations(loads: Loads) -> None:
    put("/sys/module/kfence/parameters/sample_interval", "100")


def messages(loads: Loads) -> None:
    put("/proc/sys/kernel/printk", "8 4 1 8")
    loads.loop(MESSAGES)


def writeback(loads: Loads) -> None:
    for step in ("modprobe brd rd_nr=1 rd_size=65536", "mkfs.ext4 -q /dev/ram0", f"mkdir -p {RAM_DISK}"):
        subprocess.run(step.split(), check=True, capture_output=True)
    subprocess.run(["mount", "/dev/ram0", str(RAM_DISK)], check=True, capture_output=True)
    put("/proc/sys/vm/dirty_writeback_centisecs", "20")
    put("/proc/sys/vm/dirty_expire_centisecs", "20")
    put("/sys/devices/virtual/workqueue/writeback/cpumask", loads.mask)
    loads.loop(FILES.format(folder=RAM_DISK))


LOADS = {
    "a device's interrupts": device,
    "tasks that wake on the CPU": tasks,
    "packets sent on by RPS": packets,
    "unbound works": works,
    "time stamps of sockets": timestamps,
    "expedited grace periods": expedited,
    "merging of pages": ksm,
    "khugepaged": huge_pages,
    "memory statistics each second, proactive compaction": statistics,
    "machine checks polled each second": machine_checks,
    "a watchdog of 1 s": watchdogs,
    "KFENCE each 100 ms": allocations,
    "messages to the console": messages,
    "dirty pages each 200 ms": writeback,
}


@contextlib.contextmanager
def provoked(cpu: int) -> Iterator[Loads]:
    """Everything that can be provoked here, aimed at the CPU."""
    loads = Loads(cpu)
    try:
        for name, load in LOADS.items():
            loads.start(name, load)
        time.sleep(2)
        yield loads
    finally:
        loads.end()

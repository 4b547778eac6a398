"""Runs in the guest: disturbances of a CPU, each of a known kind and number."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
TRACING = Path("/sys/kernel/tracing/instances/plant")
TASK = "planted-task"
PR_SET_NAME = 15
PATIENCE_S = 60
SYS_READ, SYS_MEMBARRIER = 0, 324
REGISTER_PRIVATE_EXPEDITED, PRIVATE_EXPEDITED = 1 << 4, 1 << 3
SYS_PERF_EVENT_OPEN, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK = 298, 1, 0
PERF_EVENT_IOC_DISABLE = 0x2401
RING_HEAD, SAMPLE_BYTES = 1024, 8  # data_head in perf_event_mmap_page; a sample that holds nothing


class _Attr(ctypes.Structure):
    """perf_event_attr, as far as it is used here."""

    _fields_ = [("type", ctypes.c_uint32), ("size", ctypes.c_uint32)]
    _fields_ += [(name, ctypes.c_uint64) for name in ("config", "period", "sample_type", "read_format", "flags")]
    _fields_ += [("rest", ctypes.c_uint8 * 72)]


def check(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def on_cpu(cpu: int) -> Iterator[None]:
    """The calling thread runs there inside this context."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def timer(cpu: int, count: int, interval_ms: int) -> tuple[int, int]:
    """The kernel timer of a profiler's clock, on the CPU, until it has taken this many samples.

    The profiler's samples give the least number of firings (not every firing takes one), the time gives the greatest.
    The time alone would not be enough: a host that takes the CPU away merges firings into one. Nor would a task's own
    timer: on a nohz_full CPU the kernel starts it elsewhere.
    """
    attr = _Attr(PERF_TYPE_SOFTWARE, ctypes.sizeof(_Attr), PERF_COUNT_SW_CPU_CLOCK, interval_ms * 1_000_000)
    began = time.monotonic()
    fd = LIBC.syscall(SYS_PERF_EVENT_OPEN, ctypes.byref(attr), -1, cpu, -1, 0)
    check(fd)
    with mmap.mmap(fd, 9 * mmap.PAGESIZE) as ring:
        while samples(ring) < count and time.monotonic() < began + PATIENCE_S:
            time.sleep(interval_ms / 1e3)
        check(LIBC.ioctl(fd, PERF_EVENT_IOC_DISABLE, 0))
        os.close(fd)
        passed = time.monotonic() - began
        return samples(ring), int(passed * 1e3 / interval_ms) + 1


def samples(ring: mmap.mmap) -> int:
    """How many the kernel has written."""
    (written,) = struct.unpack_from("Q", ring, RING_HEAD)
    return int(written) // SAMPLE_BYTES


class Task:
    """A process pinned to the CPU that wakes a number of times, 100 ms apart, on request."""

    def __init__(self, cpu: int, wakes: int) -> None:
        self._done, done = os.pipe()
        hear, self._say = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            LIBC.prctl(PR_SET_NAME, TASK.encode(), 0, 0, 0)
            os.sched_setaffinity(0, {cpu})
            while os.read(hear, 1) == b"g":
                for _ in range(wakes):
                    time.sleep(0.1)
                os.write(done, b"d")
            os._exit(0)
        while Path(f"/proc/{self.pid}/comm").read_text().strip() != TASK:
            time.sleep(0.05)

    def _asleep(self) -> int:
        """How often it has left the CPU so far, once it waits for a request."""
        folder = Path(f"/proc/{self.pid}")
        # "running" until it has left the CPU; its state is that of a sleeper a little earlier
        while (folder / "syscall").read_text().split()[0] != str(SYS_READ):
            time.sleep(0.05)
        fields = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines())
        return sum(int(fields[name]) for name in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"))

    def run(self) -> int:
        """How often it had the CPU."""
        before = self._asleep()
        os.write(self._say, b"g")
        os.read(self._done, 1)
        return self._asleep() - before

    def end(self) -> None:
        os.write(self._say, b"e")
        os.waitpid(self.pid, 0)


def works(cpu: int, count: int) -> int:
    """Works queued on the CPU: one for each change of its trace buffer's size."""
    TRACING.mkdir()
    try:
        for number in range(count):
            (TRACING / f"per_cpu/cpu{cpu}/buffer_size_kb").write_text(f"{64 + 64 * (number % 2)}\n")
    finally:
        TRACING.rmdir()
    return count


def busiest_interrupt(folder: Path) -> int:
    """The device interrupt that grows most while files are written to a directory."""

    def counts() -> dict[int, int]:
        rows = [re.match(r" *(\d+): +(.*)", line) for line in Path("/proc/interrupts").read_text().splitlines()]
        return {
            int(row[1]): sum(int(word) for word in row[2].split()[: os.cpu_count()])
            for row in rows
            if row and "MSI" in row[2]
        }

    before = counts()
    requests(folder, 5)
    after = counts()
    return max(after, key=lambda number: after[number] - before.get(number, 0))


def requests(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / "plant").write_bytes(b"%d" % number)


def interrupts(cpu: int, line: int, folder: Path, count: int) -> None:
    """Requests to a device whose interrupt is steered to the CPU."""
    steering = Path(f"/proc/irq/{line}/smp_affinity_list")
    before = steering.read_text()
    steering.write_text(f"{cpu}\n")
    try:
        requests(folder, count)
    finally:
        steering.write_text(before)


def counted(cpu: int, name: str, file: str) -> int:
    """A row's number for the CPU, in /proc/interrupts or /proc/softirqs, while all CPUs are online."""
    rows = (line.split() for line in Path(f"/proc/{file}").read_text().splitlines())
    return next(int(row[1 + cpu]) for row in rows if row and row[0] == f"{name}:")


def packets(cpu: int, count: int) -> int:
    """Packets that are sent, and so received, on the CPU, if this process may be there.

    Returns how often the CPU received some: two packets may come in at once.
    """
    before = counted(cpu, "NET_RX", "softirqs")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, socket.socket(type=socket.SOCK_DGRAM) as sender:
        receiver.bind(("127.0.0.1", 0))
        with contextlib.ExitStack() as place:
            with contextlib.suppress(OSError):  # the CPU is another cgroup's: then from where this process may be
                place.enter_context(on_cpu(cpu))
            for _ in range(count):
                sender.sendto(b"x", receiver.getsockname())
                time.sleep(0.01)
    return counted(cpu, "NET_RX", "softirqs") - before


def shootdowns(count: int) -> int:
    """Pages given back by this process, which has a thread on the CPU."""
    for _ in range(count):
        with mmap.mmap(-1, mmap.PAGESIZE) as page:
            page[0] = 1
        time.sleep(0.01)
    return count


def barriers(cpu: int, count: int) -> tuple[int, int]:
    """Memory barriers for all threads of this process, until so many of them have interrupted the CPU.

    Returns the number of these barriers, and of all. The kernel sends none to a CPU on which another task runs at that
    moment. It counts TLB shootdowns as calls too, so a barrier beside one is not counted among the former.
    """
    check(LIBC.syscall(SYS_MEMBARRIER, REGISTER_PRIVATE_EXPEDITED, 0, 0))
    felt, sent, limit = 0, 0, time.monotonic() + PATIENCE_S
    while felt < count and time.monotonic() < limit:
        calls, shootdowns = (counted(cpu, name, "interrupts") for name in ("CAL", "TLB"))
        check(LIBC.syscall(SYS_MEMBARRIER, PRIVATE_EXPEDITED, 0, 0))
        sent += 1
        more = counted(cpu, "CAL", "interrupts") > calls
        felt += more and counted(cpu, "TLB", "interrupts") == shootdowns
        time.sleep(0.01)
    return felt, sent

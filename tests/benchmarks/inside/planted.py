"""The planted disturbance of one CPU: everything that the kernel can do to it, as often as is written here.

A child process, started before anything is measured, waits for a signal, disturbs, and ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

WAKE_UPS, RESIZES, CALLS, ACCESSES, BACKTRACES = 100, 50, 50, 50, 3
EVERY_S = 0.1
TRACING = Path("/sys/kernel/tracing")
PLANTED = (
    f"{WAKE_UPS} wake-ups of a task, {RESIZES} works of a kworker, {CALLS} function calls from another CPU, "
    f"{ACCESSES} accesses to a device whose interrupt is there, {BACKTRACES} non-maskable interrupts"
)


def _device_interrupts() -> list[int]:
    lines = Path("/proc/interrupts").read_text().splitlines()
    return [int(found[1]) for line in lines if "MSI" in line and (found := re.match(r" *(\d+):", line))]


def aim_devices(cpu: int) -> None:
    """All interrupts of devices go to the CPU: whichever carries the files, the accesses to them interrupt it."""
    for number in _device_interrupts():
        with contextlib.suppress(OSError):
            Path(f"/proc/irq/{number}/smp_affinity_list").write_text(f"{cpu}\n")


def _wake_up(cpu: int) -> int:
    child = os.fork()
    if not child:
        os.sched_setaffinity(0, {cpu})
        for _ in range(WAKE_UPS):
            time.sleep(EVERY_S)
        os._exit(0)
    return child


def disturb(cpu: int, share: Path) -> None:
    """Takes as long as the wake-ups do. `share`: a directory of the host that the guest sees uncached."""
    waking = _wake_up(cpu)
    instance = TRACING / "instances/planted"
    instance.mkdir()
    try:
        for number in range(RESIZES):
            (instance / f"per_cpu/cpu{cpu}/buffer_size_kb").write_text(f"{64 + 64 * (number % 2)}\n")
            time.sleep(EVERY_S / 4)
    finally:
        instance.rmdir()
    with open(f"/dev/cpu/{cpu}/msr", "rb", buffering=0) as registers:
        for _ in range(CALLS):
            os.pread(registers.fileno(), 8, 0x10)  # its time stamp counter: any register would do
            time.sleep(EVERY_S / 10)
    for number in range(ACCESSES):
        (share / f"absent-{number}").exists()
        time.sleep(EVERY_S / 10)
    for _ in range(BACKTRACES):
        Path("/proc/sysrq-trigger").write_text("l")
        time.sleep(EVERY_S)
    os.waitpid(waking, 0)


class Waiting:
    """A process that disturbs on request. It sleeps on another CPU before anything is measured."""

    def __init__(self, cpu: int, share: Path) -> None:
        self._told, self._telling = os.pipe()
        self._took, taken = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            code = 1
            try:
                os.close(self._telling)
                os.sched_setaffinity(0, {0})
                if os.read(self._told, 1):
                    started = time.monotonic()
                    disturb(cpu, share)
                    os.write(taken, f"{time.monotonic() - started:.1f}".encode())
                code = 0
            finally:
                os._exit(code)
        os.close(self._told)
        os.close(taken)
        self._gone = False

    def go(self) -> None:
        """Disturb now; called again, it does nothing."""
        if not self._gone:
            self._gone = True
            os.write(self._telling, b"x")

    def took(self) -> float | None:
        """How many seconds it took, waited for; None when it was not done whole."""
        os.close(self._telling)
        os.waitpid(self._pid, 0)
        with open(self._took, "rb") as file:
            said = file.read()
        return float(said) if said else None

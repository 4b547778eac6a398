"""Read the processor's count of system management interrupts (SMIs), in which firmware runs, on each CPU.

Sources: Intel SDM volume 4, MSR_SMI_COUNT; the kernel's PMU `msr` (arch/x86/events/msr.c), which reads the same
register without the module msr and under lockdown; AMD PPR, PMCx02B (LsSmiRx), which exists since Zen.

Since Linux 5.17, the counters of Intel's core PMU stop in an SMI (FREEZE_ON_SMI): cycles exclude SMIs, but the time
stamp counter includes them.
"""

from __future__ import annotations

import contextlib
import re
import struct

from quiet.cpulist import CpuSet
from quiet.host import perf
from quiet.host.perf import PerfCounter
from quiet.host.reader import Reader

MSR_SMI_COUNT = 0x34
_MSR_PMU = "/sys/bus/event_source/devices/msr"
_LS_SMI_RX = 0x2B
_ZEN = 0x17  # the first family that has the event
NO_COUNT = "no count of SMIs can be read (Intel: MSR 0x34 or the PMU msr; AMD Zen: its PMU; both need root)"


class SmiCounter:
    """A context manager that reads the SMI counts of some CPUs. `source`: their source, or why there are none."""

    def __init__(self, reader: Reader, cpus: CpuSet, core: bool = True) -> None:
        """`core`: also use a counter of the core's PMU, which is then unavailable to other programs."""
        self._reader, self._cpus, self._core = reader, cpus, core
        self._counters: dict[int, PerfCounter] = {}
        self.source = "MSR_SMI_COUNT"
        if self._registers():
            return
        for source, kind, config in self._events():
            with contextlib.suppress(OSError):
                self._open(kind, config)
                self.source = source
                return
        self.source = f"not known: {NO_COUNT}"

    def __enter__(self) -> SmiCounter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> dict[int, int]:
        """The current count of each CPU that has a counter. Reading a count interrupts its CPU."""
        if self._counters:
            return {cpu: round(counter.read()) for cpu, counter in self._counters.items()}
        return self._registers()

    def close(self) -> None:
        """Stop counting."""
        for counter in self._counters.values():
            counter.close()
        self._counters.clear()

    def _registers(self) -> dict[int, int]:
        raw = {cpu: self._reader.at(f"/dev/cpu/{cpu}/msr", MSR_SMI_COUNT, 8) for cpu in self._cpus}
        return {cpu: struct.unpack("<Q", value)[0] for cpu, value in raw.items() if value is not None}

    def _events(self) -> list[tuple[str, int, int]]:
        """The source, type and config of each perf event that counts SMIs on this processor."""
        number = self._reader.text(f"{_MSR_PMU}/type") or ""
        event = (self._reader.text(f"{_MSR_PMU}/events/smi") or "").partition("=")[2]
        found = [("PMU msr/smi/", int(number), int(event, 0))] if number.isdecimal() and event else []
        lines = (self._reader.text("/proc/cpuinfo") or "") if self._core else ""
        family = re.search(r"^cpu family\s*: (\d+)$", lines, re.MULTILINE)
        amd = re.search(r"^vendor_id\s*: (AuthenticAMD|HygonGenuine)$", lines, re.MULTILINE)
        if (
            amd
            and family
            and int(family[1]) >= _ZEN
            and not re.search(r"^flags\s*:.* hypervisor\b", lines, re.MULTILINE)
        ):
            found.append(("PMU event ls_smi_rx", perf.RAW, _LS_SMI_RX))
        return found

    def _open(self, kind: int, config: int) -> None:
        try:
            for cpu in sorted(self._cpus):
                self._counters[cpu] = PerfCounter(kind, config, cpu=cpu)
        except OSError:
            self.close()
            raise

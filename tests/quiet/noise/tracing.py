"""A kernel's tracing as files: its events' formats, the pages that it writes, and a directory where instances can be
made.

Source of the pages: include/linux/ring_buffer.h. Of the formats: include/trace/events/*.h and
arch/x86/include/asm/trace/{irq_vectors,exceptions}.h; their layout is what a C compiler makes of the declarations.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from quiet.host.host import Host
from tests.trees import plant

MOUNT = "sys/kernel/tracing"
PAGE = os.sysconf("SC_PAGE_SIZE")
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
_COMMON = ("unsigned short common_type", "unsigned char common_flags", "unsigned char common_preempt_count")
_SIZES = {"char": 1, "short": 2, "int": 4, "pid_t": 4}
_ITEM = re.compile(r"(?P<type>.*?)(?P<name>\w+)(?:\[(?P<many>\d+)\])?")
VECTORS = ("local_timer", "reschedule", "call_function", "call_function_single", "irq_work")
DECLARED = {
    "irq/irq_handler_entry": ("int irq", "__data_loc char[] name"),
    "irq/irq_handler_exit": ("int irq", "int ret"),
    "irq/softirq_entry": ("unsigned int vec",),
    "irq/softirq_exit": ("unsigned int vec",),
    "sched/sched_switch": (
        *("char prev_comm[16]", "pid_t prev_pid", "int prev_prio", "long prev_state"),
        *("char next_comm[16]", "pid_t next_pid", "int next_prio"),
    ),
    "timer/hrtimer_expire_entry": ("void * hrtimer", "s64 now", "void * function"),
    "timer/hrtimer_expire_exit": ("void * hrtimer",),
    "timer/timer_expire_entry": ("void * timer", "unsigned long now", "void * function", "unsigned long baseclk"),
    "timer/timer_expire_exit": ("void * timer",),
    "timer/tick_stop": ("int success", "int dependency"),
    "timer_migration/tmigr_handle_remote_cpu": ("void * parent", "unsigned int cpu", "u64 wakeup"),
    "workqueue/workqueue_execute_start": ("void * work", "void * function"),
    "workqueue/workqueue_execute_end": ("void * work", "void * function"),
    "csd/csd_queue_cpu": ("unsigned int cpu", "void * callsite", "void * func", "void * csd"),
    "csd/csd_function_entry": ("void * func", "void * csd"),
    "csd/csd_function_exit": ("void * func", "void * csd"),
    "ipi/ipi_send_cpu": ("unsigned int cpu", "void * callsite", "void * callback"),
    "ipi/ipi_send_cpumask": ("__data_loc cpumask_t cpumask", "void * callsite", "void * callback"),
    "ipi/ipi_raise": ("__data_loc unsigned long[] target_cpus", "const char * reason"),
    "ipi/ipi_entry": ("const char * reason",),
    "ipi/ipi_exit": ("const char * reason",),
    "nmi/nmi_handler": ("void * handler", "s64 delta_ns", "int handled"),
    "exceptions/page_fault_user": ("unsigned long address", "unsigned long ip", "unsigned long error_code"),
    "tlb/tlb_flush": ("int reason", "unsigned long pages"),
    **{f"irq_vectors/{name}_{action}": ("int vector",) for name in VECTORS for action in ("entry", "exit")},
}
NUMBERS = {event: 100 + number for number, event in enumerate(DECLARED)}
ARM = ("ipi/ipi_raise", "ipi/ipi_entry", "ipi/ipi_exit")
SINCE_6_4 = ("csd/csd_queue_cpu", "csd/csd_function_entry", "csd/csd_function_exit", "ipi/ipi_send_cpu")
X86 = frozenset(DECLARED) - {*ARM}
SINCE_6_9 = "timer_migration/tmigr_handle_remote_cpu"
X86_6_1 = X86 - {*SINCE_6_4, SINCE_6_9, "ipi/ipi_send_cpumask"}
ARM_6_12 = frozenset(event for event in DECLARED if not event.startswith(("irq_vectors/", "exceptions/", "tlb/")))


class Item(NamedTuple):
    """Something in a page: what it is, its time (a difference, or absolute), and its data."""

    what: str
    time: int
    data: bytes = b""


def word(kind: int, delta: int) -> bytes:
    """A header: five bits of kind and 27 of time, from the low end or the high one as the machine is."""
    return struct.pack("=I", kind | delta << 5 if sys.byteorder == "little" else kind << 27 | delta)


def written(item: Item) -> bytes:
    """An item's bytes in a page."""
    if item.what == "data":
        return word(len(item.data) // 4, item.time) + item.data
    if item.what == "long":
        return word(0, item.time) + struct.pack("=I", len(item.data) + 4) + item.data
    if item.what == "discarded":
        return word(PADDING, item.time) + struct.pack("=I", len(item.data) + 4) + item.data
    kind = TIME_STAMP if item.what == "stamp" else TIME_EXTEND
    return word(kind, item.time & 0x7FFFFFF) + struct.pack("=I", item.time >> 27)


def page(stamp: int, items: Sequence[Item], flags: int = 0, rest: bytes = b"") -> bytes:
    """A page that begins at a time."""
    body = b"".join(map(written, items)) + rest
    assert len(body) <= PAGE - 16
    return struct.pack("=QQ", stamp, len(body) | flags) + body.ljust(PAGE - 16, b"\xaa")


class _Place(NamedTuple):
    """A field: where it lies, and what it is."""

    type: str
    name: str
    many: int  # 0: no array in place
    offset: int
    size: int

    @property
    def signed(self) -> bool:
        return self.type in ("int", "pid_t", "long", "s64")


def _laid_out(event: str) -> list[_Place]:
    places, at = [], 0
    for text in (*_COMMON, "int common_pid", *DECLARED[event]):
        found = _ITEM.fullmatch(text)
        assert found
        kind, many = found["type"].strip(), int(found["many"] or 0)
        one = 4 if "__data_loc" in kind else 8 if "*" in kind else _SIZES.get(kind.split()[-1], 8)
        at += -at % one
        places.append(_Place(kind, found["name"], many, at, one * (many or 1)))
        at += places[-1].size
    return places


def format_of(event: str) -> str:
    """The event's `format` file."""
    lines = [f"name: {event.rpartition('/')[2]}", f"ID: {NUMBERS[event]}", "format:"]
    for place in _laid_out(event):
        name = f"{place.name}[{place.many}]" if place.many else place.name
        where = f"offset:{place.offset};\tsize:{place.size};\tsigned:{int(place.signed)};"
        lines.append(f"\tfield:{place.type} {name};\t{where}")
        lines += [""] * (place.name == "common_pid")
    return "\n".join([*lines, "", 'print fmt: "", REC'])


class Traced(NamedTuple):
    """An event as the kernel writes it: when, in which task, and its fields' values (0 for those not given)."""

    time: int
    event: str
    pid: int
    values: dict[str, int | str | bytes]


def traced(time: int, event: str, pid: int = 10, **values: int | str | bytes) -> Traced:
    """An event; by default in the detector's own task."""
    return Traced(time, event, pid, values)


def record(item: Traced) -> bytes:
    """The event's data."""
    places = _laid_out(item.event)
    assert set(item.values) <= {place.name for place in places}
    raw = bytearray(places[-1].offset + places[-1].size)
    behind = b""
    for place in places:
        known = {"common_type": NUMBERS[item.event], "common_pid": item.pid}
        value = known.get(place.name, item.values.get(place.name, 0))
        if isinstance(value, str):
            value = value.encode() + b"\0"
        if isinstance(value, bytes) and not place.many:
            length, at = len(value), len(raw) + len(behind)
            behind += value
            value = length << 16 | at
        data = (
            value if isinstance(value, bytes) else (value % (1 << 8 * place.size)).to_bytes(place.size, sys.byteorder)
        )
        raw[place.offset : place.offset + place.size] = data.ljust(place.size, b"\0")
    whole = bytes(raw) + behind
    return whole + bytes(-len(whole) % 4)


def pages(items: Sequence[Traced], each: int = 20) -> bytes:
    """The events in order, so many on a page."""
    out = b""
    for first in range(0, len(items), each):
        some = items[first : first + each]
        last = some[0].time
        laid = []
        for item in some:
            data = record(item)
            laid.append(Item("data" if len(data) <= 112 else "long", item.time - last, data))
            last = item.time
        out += page(some[0].time, laid)
    return out


class Tracefs(Host):
    """A tree whose directory of instances does what the kernel's does: a new one has its files, and goes with them."""

    clocks = "[local] global counter uptime perf mono mono_raw boot x86-tsc"
    broken = ""
    events = frozenset({"irq/irq_handler_entry", "sched/sched_switch"})
    cpus = 4

    def mkdir(self, path: str) -> None:
        super().mkdir(path)
        new = self.root + path
        files = {"trace_clock": self.clocks, "tracing_on": "1", "tracing_cpumask": "f", "options/overwrite": "1"}
        for name in self.events:
            files |= {
                f"events/{name}/enable": "0",
                f"events/{name}/filter": "none",
                f"events/{name}/format": format_of(name),
            }
        for cpu in range(self.cpus):
            files |= {f"per_cpu/cpu{cpu}/buffer_size_kb": "7", f"per_cpu/cpu{cpu}/stats": "overrun: 0"}
        files.pop(self.broken, None)
        plant(Path(new), files)
        for cpu in range(self.cpus):
            Path(new, f"per_cpu/cpu{cpu}/trace_pipe_raw").write_bytes(b"")

    def rmdir(self, path: str) -> None:
        shutil.rmtree(self.root + path)

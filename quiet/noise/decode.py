"""Decode the raw pages of a trace instance into events in the detector's ticks, with kernel names for addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from quiet.host.reader import Reader
from quiet.noise.call_nesting import NMI, SWITCH, TraceEvent
from quiet.noise.events import TLB_REMOTE_SEND_IPI, EventType, Values
from quiet.noise.formats import Value
from quiet.noise.names import FUNCTION, FUNCTION_CALLS, RESCHEDULE, RESCHEDULES, SHOOTDOWN, Sent
from quiet.noise.tracefs import Instance

SINGLE = "generic_smp_call_function_single_interrupt"  # stands for any queued function
FOREIGN = "this process has its own PID namespace, so the trace shows other PIDs; run it in the host's PID namespace"
SENDING = (
    EventType("csd", "csd_queue_cpu", ("cpu", "func"), lambda *_: None),
    EventType("ipi", "ipi_send_cpu", ("cpu", "callback"), lambda *_: None),
    EventType("ipi", "ipi_send_cpumask", ("cpumask", "callback"), lambda *_: None),
    EventType("ipi", "ipi_raise", ("target_cpus", "reason"), lambda *_: None),
    EventType("tlb", "tlb_flush", ("reason",), lambda *_: None, f"reason == {TLB_REMOTE_SEND_IPI}"),
)


class Symbols:
    """The names of the kernel's functions and strings by address. /proc/kallsyms is read only once."""

    def __init__(self, host: Reader, mount: str) -> None:
        self._host, self._mount = host, mount
        self._known: dict[int, str] = {}
        self._functions: bytes | None = None
        self._strings: dict[int, str] | None = None

    def __call__(self, address: int) -> str:
        """The symbol at an address; the address itself if the kernel hides the names."""
        address &= (1 << 64) - 1
        if address not in self._known:
            self._known[address] = self._function(address) or self._string(address) or f"{address:#x}"
        return self._known[address]

    def _function(self, address: int) -> str:
        if self._functions is None:
            self._functions = b"\n" + (self._host.text("/proc/kallsyms") or "").encode()
        at = self._functions.find(b"\n%016x " % address)
        if at < 0:
            return ""
        line = self._functions[at + 1 : self._functions.find(b"\n", at + 1) % (1 << 62)].decode()
        return line.split()[2]

    def _string(self, address: int) -> str:
        if self._strings is None:
            text = self._host.text(f"{self._mount}/printk_formats") or ""
            self._strings = {int(a, 16): b for a, b in re.findall(r'^0x([0-9a-f]+) : "(.*)"$', text, re.MULTILINE)}
        return self._strings.get(address, "")


def comms(host: Reader, mount: str) -> Callable[[int], str]:
    """A function that returns the name of the task with a given PID, "" if unknown.

    The name is read from /proc or, for ended tasks, from the trace's saved_cmdlines.
    """
    known: dict[int, str] = {0: "idle"}
    noted: dict[int, str] = {}

    def comm(pid: int) -> str:
        if pid not in known:
            if not noted:
                lines = (host.text(f"{mount}/saved_cmdlines") or "").splitlines()
                pairs = (line.partition(" ") for line in lines)
                noted.update({int(number): name for number, _, name in pairs if number.isdecimal()})
            known[pid] = host.text(f"/proc/{pid}/comm") or noted.get(pid, "")
        return known[pid]

    return comm


def titles(comm: Callable[[int], str]) -> Callable[[int], str]:
    """A function that formats the task with a given PID as "name (PID)", and PID 0 as "idle"."""
    return lambda pid: f"{comm(pid) or 'task'} ({pid})" if pid else "idle"


def events(
    trace: Instance, cpu: int, symbol: Symbols, convert: Callable[[int], int], ticks: Callable[[float], int]
) -> list[TraceEvent]:
    """The events of one CPU in order.

    `convert` converts time stamps, and `ticks` converts nanoseconds, to the detector's ticks.
    """
    decoded = (kind.make(convert(stamp), pid, values, symbol) for stamp, kind, pid, values in trace.records(cpu))
    return [event._replace(key=ticks(event.key)) if event.kind == NMI else event for event in decoded if event]


def foreign(events: Sequence[TraceEvent], own: int) -> bool:
    """Whether tasks were switched on the CPU, but never `own`: then the trace has the PIDs of another namespace."""
    return any(event.action == SWITCH for event in events) and not any(
        own in (event.pid, event.other) for event in events
    )


def sent(
    trace: Instance,
    cpus: frozenset[int],
    convert: Callable[[int], int],
    task: Callable[[int], str],
    symbol: Symbols,
) -> list[Sent]:
    """The interrupts that CPUs sent, decoded from the traces of all CPUs.

    `cpus`: the receiving CPUs of interest; `task` returns the name of the task with a given PID.
    """
    sendings = []
    has_ipi = any(kind.system == "ipi" for kind, _ in trace.kinds.values())
    for cpu in sorted(trace.cpus):
        queued: dict[Value, str] = {}  # per target, the function that its next interrupt runs
        for stamp, kind, pid, values in trace.records(cpu):
            if has_ipi and kind.name == "tlb_flush":
                continue  # the event has no target
            if kind.name == "csd_queue_cpu":
                queued[values[0]] = symbol(values[1]) if isinstance(values[1], int) else ""
            elif targets := _targets(kind, values, cpus):
                only, why = _purpose(kind, values, symbol)
                why = queued.pop(values[0], why) if why in ("", SINGLE) else why
                sendings.append(Sent(convert(stamp), cpu, targets, task(pid), only, "" if why == SINGLE else why))
    return sendings


def _purpose(kind: EventType, values: Values, symbol: Symbols) -> tuple[str, str]:
    """The purpose of an IPI, and the function that it calls; each is "" if the event does not name it."""
    if kind.name == "tlb_flush":
        return SHOOTDOWN, ""
    address = values[1] if isinstance(values[1], int) else 0
    if kind.name == "ipi_raise":  # on arm, the address of a string
        text = symbol(address)
        return RESCHEDULE if text in RESCHEDULES else FUNCTION if text in FUNCTION_CALLS else "", ""
    return (FUNCTION, symbol(address)) if address else (RESCHEDULE, "")  # only a function call has a callback


def _targets(kind: EventType, values: Values, cpus: frozenset[int]) -> frozenset[int]:
    value = values[0]
    if kind.name == "ipi_send_cpu":
        return frozenset({value}) if isinstance(value, int) else frozenset()
    if kind.name == "tlb_flush":
        return cpus if value == TLB_REMOTE_SEND_IPI else frozenset()  # the event does not name the target
    if isinstance(value, bytes):
        mask = int.from_bytes(value, "little")
        return frozenset(number for number in cpus if mask >> number & 1)
    return frozenset()

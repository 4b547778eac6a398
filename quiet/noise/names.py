"""Derive the causes of interruptions from traced shares, IPIs and counts, and define their names in reports."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from quiet.noise.attribute import (
    FIRMWARE,
    HOST,
    HYPERVISOR,
    IDLE,
    IRQS_OFF,
    NOT_SMI,
    OTHER_CPU,
    OUTSIDE,
    SCHEDULER,
    STALL,
    UNKNOWN,
    USER_RETURN,
    Cause,
)
from quiet.noise.call_nesting import (
    CALL,
    FAULT,
    HRTIMER,
    IRQ,
    NMI,
    OWN_TIMERS,
    PULLED,
    SOFTIRQ,
    THREAD,
    TIMER,
    VECTOR,
    WORK,
    Share,
)
from quiet.noise.counters import LABELS, NOT_INTERRUPTS, TIMERS

SHOOTDOWN = "TLB shootdown"
VECTORS = {
    "local_timer": "local timer",
    "tick": "local timer: tick",
    "reschedule": "IPI: reschedule",
    "call_function": "IPI: function call",
    "call_function_single": "IPI: function call",
    "irq_work": "irq work",
    # arm64 and riscv describe the purpose of an IPI as text
    "Rescheduling interrupts": "IPI: reschedule",
    "Function call interrupts": "IPI: function call",
    "Timer broadcast interrupts": "IPI: timer broadcast",
    "IRQ work interrupts": "irq work",
    "x86_platform_ipi": "IPI: platform",
    "error_apic": "APIC error interrupt",
    "spurious_apic": "spurious interrupt",
    "thermal_apic": "thermal interrupt",
    "threshold_apic": "machine check threshold interrupt",
    "deferred_error_apic": "deferred error interrupt",
}
RESCHEDULE, FUNCTION = "reschedule", "function"  # the purposes of an IPI
RESCHEDULES = ("reschedule", "Rescheduling interrupts")
FUNCTION_CALLS = ("call_function", "call_function_single", "Function call interrupts")
CALLS = {
    "flush_tlb_func": SHOOTDOWN,
    "do_flush_tlb_all": "TLB shootdown (all)",
    "do_kernel_range_flush": "TLB shootdown (kernel range)",
    "ipi_mb": "membarrier",
    "ipi_sync_core": "membarrier (sync core)",
    "ipi_rseq": "membarrier (rseq)",
    "do_sync_core": "code patching",
    "rcu_exp_handler": "expedited RCU",
    "sched_ttwu_pending": "wake-up of a task",
}
HOSTS = {
    HYPERVISOR: "host took the CPU",
    FIRMWARE: "firmware (SMI, counted by the processor)",
    NOT_SMI: "untraced, not an SMI",
    OUTSIDE: "untraced, not known whether an SMI",
}
SOFTIRQ_LINE = "softirq "  # prefix for the label of a line of /proc/softirqs
LOCAL_TIMER = Cause(VECTOR, "local_timer")
_COUNTED = {label: name for name, label in reversed(LABELS.items())}
SENT_BEFORE_NS = 10_000_000  # an IPI arrives within this time, unless the hypervisor delays it


class Sent(NamedTuple):
    """An interrupt that a task sent to other CPUs; `time` in ticks."""

    time: int
    cpu: int
    targets: frozenset[int]
    task: str  # "name (pid)"
    only: str = ""  # RESCHEDULE, FUNCTION or SHOOTDOWN; "" if the kernel does not report it
    why: str = ""  # the kernel's name of the function that the IPI requests


class Senders:
    """The interrupts that were sent to one CPU; finds the sender of an interrupt that arrived there."""

    def __init__(self, sent: Iterable[Sent], cpu: int, reach: int) -> None:
        """`reach`: the maximum time from sending an IPI to its arrival, in ticks."""
        self._sent: dict[str, list[Sent]] = {}
        for each in sorted(sent):
            if cpu in each.targets and each.cpu != cpu:
                self._sent.setdefault(each.only, []).append(each)
        self._reach = reach

    def find(self, time: int, purposes: Iterable[str], function: str = "") -> Sent | None:
        """The last IPI sent before `time` for one of these purposes or for an unknown purpose; None if there is none.

        IPIs sent more than `reach` before `time`, or for another `function` ("": any), do not match. IPIs whose target
        the kernel does not report (SHOOTDOWN) match only if all their senders have the same name.
        """
        best: Sent | None = None
        for only in ("", *purposes):
            known = self._sent.get(only, [])
            at = bisect.bisect_right(known, time, key=lambda each: each.time) - 1
            near: list[Sent] = []
            while at >= 0 and time - known[at].time <= self._reach and (only == SHOOTDOWN or not near):
                if not function or CALLS.get(known[at].why, known[at].why) in ("", function):
                    near.append(known[at])
                at -= 1
            if only == SHOOTDOWN and len({each.task.rpartition(" (")[0] for each in near}) > 1:
                continue
            if near and (best is None or near[0].time > best.time):
                best = near[0]
        return best


def _purposes(share: Share) -> tuple[str, ...]:
    """The possible purposes of an IPI, derived from its effect; empty if the effect does not show any."""
    if share.kind == CALL or share.name in FUNCTION_CALLS:
        return (FUNCTION, SHOOTDOWN) if CALLS.get(share.name, share.name) == SHOOTDOWN else (FUNCTION,)
    return (RESCHEDULE,) if share.name in RESCHEDULES else ()


def namer(senders: Senders, comms: Callable[[int], str]) -> Callable[[Share], Cause]:
    """A function that returns a share's cause. `comms` returns the name of the task with a given PID."""

    def name(share: Share) -> Cause:
        if share.kind == CALL or (share.kind == VECTOR and VECTORS.get(share.name, "").startswith("IPI")):
            function = CALLS.get(share.name, share.name)
            sent = senders.find(share.begin, _purposes(share), function if share.kind == CALL else "")
            by = f"CPU {sent.cpu}, {sent.task}" if sent else ""
            if share.kind == VECTOR and share.name in FUNCTION_CALLS and sent and sent.why:
                return Cause(CALL, CALLS.get(sent.why, sent.why), by)
            return Cause(share.kind, function, by)
        if share.kind == WORK:
            # the text after the worker's number is its current work, not the traced work
            return Cause(WORK, share.name, re.split("[-+]", comms(share.pid))[0])
        if share.kind == TIMER and share.pulled != OWN_TIMERS:
            return Cause(PULLED, share.name, f"CPU {share.pulled}")
        if share.kind == THREAD:
            return Cause(THREAD, share.name, str(share.pid))
        return Cause(share.kind, share.name)

    return name


def line_causes(grown: Mapping[str, float], purposes: Mapping[str, str]) -> Iterator[tuple[Cause, float]]:
    """Yield the causes of a CPU's interrupts and their counts, from counts by line ("LOC", "131", "softirq RCU").

    `purposes`: the purpose of each line. All timers are LOCAL_TIMER, because the counts do not separate ticks from
    other timers.
    """
    shot = min(grown.get("TLB", 0), grown.get("CAL", 0))  # CAL includes TLB
    for line, count in grown.items():
        text = purposes.get(line, "")
        if line in NOT_INTERRUPTS:
            continue
        if line.startswith(SOFTIRQ_LINE):
            yield Cause(SOFTIRQ, line.removeprefix(SOFTIRQ_LINE)), count
        elif line == "NMI":
            yield Cause(NMI, "not named"), count
        elif line == "CAL":
            yield Cause(CALL, SHOOTDOWN), shot
            yield Cause(VECTOR, "call_function_single"), count - shot
        elif text in TIMERS:
            yield LOCAL_TIMER, count
        elif line.isdecimal():
            yield Cause(IRQ, f"{line} {text}"), count
        else:
            yield Cause(VECTOR, _COUNTED.get(line, text or line)), count


def inside(cause: Cause) -> str:
    """The label of the code that ran while the host took the CPU; "" for other kinds of causes, or if no code ran."""
    kind, _, name = cause.by.partition(" ") if cause.kind == HOST else ("", "", "")
    return label(Cause(kind, name)) if kind else ""


def label(cause: Cause) -> str:
    """The text to display for a cause."""
    kind, name, by = cause
    if kind == HOST and by:
        return f"{label(Cause(HOST, name))} inside {inside(cause)}"
    sender = f" from {by}" if by else ""
    texts = {
        HRTIMER: f"local timer: {name}",
        TIMER: f"softirq TIMER: {name}",
        PULLED: f"timer of {by or 'another CPU'}, pulled here: {name}",
        WORK: f"{by or 'kworker'} {name}",
        IRQ: f"IRQ {name}",
        SOFTIRQ: f"softirq {name}",
        CALL: f"IPI: {name}{sender}",
        VECTOR: f"{VECTORS.get(name, name)}{sender}",
        THREAD: f"task {name} ({by})" if by else name,
        NMI: f"NMI: {name}",
        FAULT: "page fault of the detector",
        HOST: HOSTS.get(name, name),
        STALL: name,
        UNKNOWN: f"unattributed: {name}",
        IDLE: f"idle state {name}",
        IRQS_OFF: f"interrupts off in {name}",
        OTHER_CPU: f"timer on CPU {name}",
        SCHEDULER: "the wake-up itself (timer interrupt, scheduler)",
        USER_RETURN: "return to user space",
    }
    # a task's name can contain any bytes
    return "".join(letter if letter.isprintable() else "?" for letter in texts.get(kind, name))

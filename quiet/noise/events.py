"""Define the kernel events to trace and how each one changes the frames (see call_nesting.py).

Sources: include/trace/events/*.h and arch/x86/include/asm/trace/{irq_vectors,exceptions}.h. Events that a kernel lacks
are omitted: ipi:ipi_send_cpu requires Linux 6.4, csd:* requires 6.5, timer_migration:* requires 6.9, irq_vectors:*
exists on x86 only, ipi:ipi_entry on arm only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quiet.noise.call_nesting import (
    BEGIN,
    CALL,
    END,
    FAULT,
    HRTIMER,
    IRQ,
    NMI,
    NOTE,
    POINT,
    PULL,
    SOFTIRQ,
    SWITCH,
    THREAD,
    TIMER,
    VECTOR,
    WORK,
    TraceEvent,
)
from quiet.noise.formats import Value
from quiet.noise.names import SHOOTDOWN

SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
# enum tlb_flush_reason, include/linux/mm_types.h
TLB_REMOTE_SHOOTDOWN, TLB_REMOTE_SEND_IPI = 1, 4
# enum tick_dep_bits, include/linux/tick.h
TICK_KEPT = "tick kept"
TICK_NEEDED = {
    1: "a task's CPU timer or limit needs it",
    2: "a perf event needs it",
    4: "the scheduler needs it (more than one task or SCHED_RR task here, a deadline task, since Linux 6.6 a "
    "cgroup's CPU limit (cpu.max), since 6.12 a sched_ext scheduler)",
    8: "the kernel's clock is not stable",
    16: "RCU needs it",
    32: "an expedited RCU grace period needs it",
}

Values = tuple[Value, ...]
Symbol = Callable[[int], str]  # the name of a kernel function or of a kernel string at an address


class EventType(NamedTuple):
    """One type of event: its name in the kernel, the fields to read, and the conversion.

    `make` gets the time in ticks, the PID, the values of the fields (None if the kernel's event lacks the field) and a
    Symbol; it returns None to drop the event.
    """

    system: str
    name: str
    fields: tuple[str, ...]
    make: Callable[[int, int, Values, Symbol], TraceEvent | None]
    filter: str = ""  # the kernel's event filter


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""


def _frame(action: str, kind: str, name: str | Callable[[Values, Symbol], str] = "") -> Callable[..., TraceEvent]:
    """The conversion of an event that begins or ends a frame. The event's first field identifies the frame.

    `name` may be a function of the fields.
    """

    def make(time: int, pid: int, values: Values, symbol: Symbol) -> TraceEvent:
        text = name if isinstance(name, str) else name(values, symbol)
        return TraceEvent(time, action, kind, text, pid, _number(values[0]))

    return make


def _called(values: Values, symbol: Symbol) -> str:
    return symbol(_number(values[-1]))


def _softirq(values: Values, _symbol: Symbol) -> str:
    number = _number(values[0])
    return SOFTIRQS[number] if number < len(SOFTIRQS) else str(number)


def _irq(values: Values, _symbol: Symbol) -> str:
    return f"{_number(values[0])} {_text(values[1])}"


def _switch(time: int, pid: int, values: Values, _symbol: Symbol) -> TraceEvent:
    return TraceEvent(time, SWITCH, THREAD, _text(values[1]), pid, other=_number(values[0]))


def _nmi(time: int, pid: int, values: Values, symbol: Symbol) -> TraceEvent | None:
    """Convert the event of an NMI handler; None if the handler did not handle the NMI.

    The kernel calls all handlers, with an event for each.
    """
    return TraceEvent(time, POINT, NMI, symbol(_number(values[0])), pid, _number(values[1])) if values[2] else None


def _fault(time: int, pid: int, values: Values, symbol: Symbol) -> TraceEvent:
    return TraceEvent(time, POINT, FAULT, "page fault", pid)


def _tlb(time: int, pid: int, values: Values, _symbol: Symbol) -> TraceEvent | None:
    """Convert the event of a remote TLB flush to a CALL frame; None for other flushes.

    Only kernels that do not name the function of a call interrupt need this event.
    """
    return TraceEvent(time, POINT, CALL, SHOOTDOWN, pid) if values[0] == TLB_REMOTE_SHOOTDOWN else None


def _pull(time: int, pid: int, values: Values, _symbol: Symbol) -> TraceEvent:
    """Convert the event that names another CPU whose timers this CPU runs next; the events of these timers follow."""
    return TraceEvent(time, PULL, SOFTIRQ, "", pid, _number(values[0]))


def _tick_stop(time: int, pid: int, values: Values, _symbol: Symbol) -> TraceEvent | None:
    if values[0] != 0:
        return None
    reason = TICK_NEEDED.get(_number(values[1]), str(values[1]))
    return TraceEvent(time, NOTE, TICK_KEPT, reason, pid)


ON_THE_CPU = (
    EventType("irq", "irq_handler_entry", ("irq", "name"), _frame(BEGIN, IRQ, _irq)),
    EventType("irq", "irq_handler_exit", ("irq",), _frame(END, IRQ)),
    EventType("irq", "softirq_entry", ("vec",), _frame(BEGIN, SOFTIRQ, _softirq)),
    EventType("irq", "softirq_exit", ("vec",), _frame(END, SOFTIRQ, _softirq)),
    EventType("sched", "sched_switch", ("next_pid", "next_comm"), _switch),
    EventType("timer", "hrtimer_expire_entry", ("hrtimer", "function"), _frame(BEGIN, HRTIMER, _called)),
    EventType("timer", "hrtimer_expire_exit", ("hrtimer",), _frame(END, HRTIMER)),
    EventType("timer", "timer_expire_entry", ("timer", "function"), _frame(BEGIN, TIMER, _called)),
    EventType("timer", "timer_expire_exit", ("timer",), _frame(END, TIMER)),
    EventType("timer_migration", "tmigr_handle_remote_cpu", ("cpu",), _pull),
    EventType("workqueue", "workqueue_execute_start", ("work", "function"), _frame(BEGIN, WORK, _called)),
    EventType("workqueue", "workqueue_execute_end", ("work",), _frame(END, WORK)),
    EventType("csd", "csd_function_entry", ("csd", "func"), _frame(BEGIN, CALL, _called)),
    EventType("csd", "csd_function_exit", ("csd",), _frame(END, CALL)),
    EventType("ipi", "ipi_entry", ("reason",), _frame(BEGIN, VECTOR, _called)),
    EventType("ipi", "ipi_exit", ("reason",), _frame(END, VECTOR)),
    EventType("nmi", "nmi_handler", ("handler", "delta_ns", "handled"), _nmi),
    EventType("exceptions", "page_fault_user", ("address",), _fault),
    EventType("tlb", "tlb_flush", ("reason",), _tlb, f"reason == {TLB_REMOTE_SHOOTDOWN}"),
    EventType("timer", "tick_stop", ("success", "dependency"), _tick_stop),
)


def vectors(names: Sequence[str]) -> list[EventType]:
    """The event types of irq_vectors/, from the names of its events, which are pairs "x_entry" and "x_exit"."""
    actions = {"entry": BEGIN, "exit": END}
    kinds = []
    for name in names:
        vector, _, action = name.rpartition("_")
        if vector and action in actions:
            kinds.append(EventType("irq_vectors", name, ("vector",), _frame(actions[action], VECTOR, vector)))
    return kinds

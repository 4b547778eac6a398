"""Written traces are decoded as events, senders and names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import decode, events
from quiet.noise.call_nesting import BEGIN, END, NMI, POINT, SWITCH, TraceEvent
from quiet.noise.decode import Symbols, comms
from quiet.noise.names import FUNCTION, Sent
from tests.quiet.noise.decoding import (
    BASH,
    CALLBACK,
    CPUS,
    DETECTOR,
    FUNCTIONS,
    HERE,
    REASON,
    Kernel,
    decoded,
    put,
    senders,
    vector,
)
from tests.quiet.noise.tracing import MOUNT, Traced, Tracefs, traced
from tests.trees import plant


@pytest.mark.parametrize("reason", [0, 2, 3, 4, 5])
def test_a_flush_for_another_reason_is_not_a_shootdown_from_elsewhere(kernel: Kernel, reason: int) -> None:
    assert decoded(kernel, traced(1_500, "tlb/tlb_flush", reason=reason)) == []
    # it has no target: where the kernel reports the sending itself, it adds nothing
    assert senders(kernel, traced(1_500, "tlb/tlb_flush", BASH, reason=reason)) == []


def test_an_nmis_length_arrives_in_nanoseconds_and_is_converted_to_ticks(kernel: Kernel) -> None:
    handler = FUNCTIONS["perf_event_nmi_handler"]
    found = decoded(kernel, traced(9_000, "nmi/nmi_handler", handler=handler, delta_ns=700, handled=1), per_ns=3)
    assert found == [TraceEvent(9_000, POINT, NMI, "perf_event_nmi_handler", DETECTOR, 2_100)]


def test_events_that_an_older_kernel_lacks_are_omitted(older: Kernel) -> None:
    names = {kind.name for kind, _ in older.mine.kinds.values()}
    assert {"sched_switch", "tlb_flush", "call_function_entry"} <= names
    assert not names & {"csd_function_entry", "csd_function_exit", "ipi_entry", "ipi_exit"}
    assert {kind.name for kind, _ in older.theirs.kinds.values()} == {"tlb_flush"}
    found = decoded(older, *vector("call_function", 1_100, 2_000))
    assert [(event.action, event.name) for event in found] == [(BEGIN, "call_function"), (END, "call_function")]


def test_a_cpu_on_which_nothing_happened_has_no_events(kernel: Kernel) -> None:
    assert decoded(kernel) == []
    assert senders(kernel) == []


def test_an_unrequested_event_is_skipped(kernel: Kernel) -> None:
    known = traced(1_000, "irq/softirq_entry", vec=3)
    strange = traced(1_500, "csd/csd_queue_cpu", cpu=HERE)  # asked for on the senders' side alone
    assert [event.name for event in decoded(kernel, known, strange, known._replace(time=2_000))] == ["NET_RX", "NET_RX"]


def test_an_interrupt_for_several_cpus_was_sent_to_those_that_are_tested(kernel: Kernel) -> None:
    mask = (1 << 9 | 1 << HERE | 1).to_bytes(8, "little")
    item = traced(900, "ipi/ipi_send_cpumask", BASH, cpumask=mask, callback=CALLBACK)
    assert senders(kernel, item, cpus=frozenset({HERE, 9})) == [
        Sent(900, 0, frozenset({HERE, 9}), "bash (12)", FUNCTION)
    ]
    assert senders(kernel, item, cpus=frozenset({5})) == []


def test_a_queued_function_belongs_only_to_the_next_interrupt_to_that_cpu(kernel: Kernel) -> None:
    queue = traced(800, "csd/csd_queue_cpu", BASH, cpu=HERE, func=FUNCTIONS["rcu_barrier_handler"])
    sent = [
        traced(time, "ipi/ipi_send_cpu", BASH, cpu=cpu, callback=CALLBACK)
        for time, cpu in ((810, 0), (820, HERE), (830, HERE))
    ]
    found = senders(kernel, queue, *sent, cpus=CPUS)
    assert [(each.time, each.why) for each in found] == [(810, ""), (820, "rcu_barrier_handler"), (830, "")]


ACTIONS = st.lists(
    st.one_of(
        st.builds(lambda vec: ("irq/softirq_entry", {"vec": vec}), st.integers(0, 9)),
        st.builds(lambda vec: ("irq/softirq_exit", {"vec": vec}), st.integers(0, 9)),
        st.builds(
            lambda irq, name: ("irq/irq_handler_entry", {"irq": irq, "name": name}),
            st.integers(0, 500),
            st.text("abc-é ", max_size=200),
        ),
        st.builds(
            lambda pid, comm: ("sched/sched_switch", {"next_pid": pid, "next_comm": comm}),
            st.integers(0, 1 << 22),
            st.text("ab /:", min_size=1, max_size=15),
        ),
    ),
    max_size=30,
)


@given(ACTIONS, st.lists(st.integers(0, 1 << 26), min_size=30, max_size=30), st.integers(1, 12))
def test_every_event_comes_out_in_order_however_the_pages_are_cut(
    kernel: Kernel, actions: list[tuple[str, dict[str, int | str | bytes]]], later: list[int], each: int
) -> None:
    time, items, wanted = 1_000, list[Traced](), list[tuple[int, str, str, int]]()
    for (event, values), more in zip(actions, later, strict=False):
        time += more
        items.append(Traced(time, event, DETECTOR, values))
        if event.startswith("irq/softirq"):
            vec = values["vec"]
            assert isinstance(vec, int)
            wanted.append((time, BEGIN if event.endswith("entry") else END, events.SOFTIRQS[vec], vec))
        elif event.startswith("irq/irq"):
            assert isinstance(values["irq"], int)
            wanted.append((time, BEGIN, f"{values['irq']} {values['name']}", values["irq"]))
        else:
            wanted.append((time, SWITCH, str(values["next_comm"]), 0))
    found = decoded(kernel, *items, each=each)
    assert [(event.time, event.action, event.name, event.key) for event in found] == wanted
    assert [event.other for event in found if event.action == SWITCH] == [
        item.values["next_pid"] for item in items if item.event == "sched/sched_switch"
    ]


def test_time_stamps_are_converted(kernel: Kernel) -> None:
    put(kernel.mine, HERE, [traced(1_000, "irq/softirq_entry", vec=3)])
    (found,) = decode.events(kernel.mine, HERE, kernel.symbol, lambda stamp: stamp * 7 + 1, round)
    assert found.time == 7_001


def test_an_address_has_the_name_of_its_function_or_of_its_text(kernel: Kernel) -> None:
    symbol = kernel.symbol
    assert {name: symbol(address) for name, address in FUNCTIONS.items()} == {name: name for name in FUNCTIONS}
    assert symbol(FUNCTIONS["ipi_mb"] - (1 << 64)) == "ipi_mb"  # as a signed number
    assert symbol(0xFFFFFFFFC0000100) == "e1000_watchdog"
    assert symbol(REASON) == "Function call interrupts"
    assert symbol(0xFFFFFFFF81000001) == "0xffffffff81000001"


def test_where_the_kernel_hides_its_names_the_address_is_the_name(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/kallsyms": "0000000000000000 T tick_nohz_handler"})
    assert Symbols(Tracefs(str(tmp_path)), f"/{MOUNT}")(FUNCTIONS["ipi_mb"]) == f"{FUNCTIONS['ipi_mb']:#x}"
    (tmp_path / "proc/kallsyms").unlink()
    assert Symbols(Tracefs(str(tmp_path)), f"/{MOUNT}")(0x10) == "0x10"


def test_a_task_has_its_current_name_or_the_traced_one(kernel: Kernel) -> None:
    comm = comms(kernel.host, f"/{MOUNT}")
    assert [comm(pid) for pid in (0, BASH, 31, 41, 99)] == ["idle", "bash", "tmux: server", "Web Content", ""]


def test_a_trace_that_never_shows_the_own_task_numbers_tasks_differently(kernel: Kernel) -> None:
    switch = traced(1_000, "sched/sched_switch", 41, prev_pid=41, next_pid=DETECTOR, next_comm="quiet")
    strange = decoded(kernel, switch._replace(values={"next_pid": 7_010}))
    assert decode.foreign(strange, DETECTOR)
    assert not decode.foreign(decoded(kernel, switch), DETECTOR)
    assert not decode.foreign(decoded(kernel, traced(1_000, "irq/softirq_entry", 41, vec=3)), DETECTOR)
    assert not decode.foreign([], DETECTOR)

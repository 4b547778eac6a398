"""From the kernel's pages to causes: what is written into a trace comes out as what took the CPU, and whose doing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import decode, events
from quiet.noise.attribute import Account, Cause, Gap, account
from quiet.noise.call_nesting import (
    BEGIN,
    CALL,
    END,
    FAULT,
    HRTIMER,
    IRQ,
    NMI,
    POINT,
    PULLED,
    SOFTIRQ,
    SWITCH,
    THREAD,
    TIMER,
    VECTOR,
    WORK,
    TraceEvent,
    build,
)
from quiet.noise.decode import Symbols, comms
from quiet.noise.names import FUNCTION, SHOOTDOWN, Senders, Sent, namer
from quiet.noise.tracefs import Instance
from tests.quiet.noise.tracing import ARM_6_12, MOUNT, X86, X86_6_1, Traced, Tracefs, pages, traced
from tests.trees import plant

HERE, DETECTOR, WORKER, BASH = 1, 10, 20, 12
CPUS = frozenset({0, HERE})
FUNCTIONS = {
    name: 0xFFFFFFFF81000000 + 16 * number
    for number, name in enumerate(
        (
            *("tick_nohz_handler", "vmstat_update", "ipi_mb", "sched_ttwu_pending", "remote_function"),
            *("perf_event_nmi_handler", "process_timeout", "rcu_barrier_handler", decode.SINGLE),
        )
    )
}
CALLBACK = FUNCTIONS[decode.SINGLE]  # only the sending of a function call has one
REASON = 0xFFFFFFFF82000040
SYMBOLS = "\n".join(f"{address:016x} T {name}" for name, address in FUNCTIONS.items())
FILES = {
    "proc/kallsyms": f"{SYMBOLS}\nffffffffc0000100 t e1000_watchdog\t[e1000]",
    f"{MOUNT}/printk_formats": f'{REASON:#x} : "Function call interrupts"\n0xffffffff82000080 : "a \\"b\\" c"',
    f"{MOUNT}/saved_cmdlines": "31 tmux: server\n12 not this\n77 <...>",
    f"{MOUNT}/instances/": "",
    f"proc/{WORKER}/comm": "kworker/1:1-mm_percpu_wq",
    f"proc/{BASH}/comm": "bash",
    "proc/41/comm": "Web Content",
}


class Kernel(NamedTuple):
    """A kernel, and the two traces of a measurement: on the tested CPU, and of those who send to it."""

    host: Tracefs
    mine: Instance
    theirs: Instance
    symbol: Symbols


@contextmanager
def kernel_with(root: Path, known: frozenset[str]) -> Iterator[Kernel]:
    """One that has these events."""
    vectors = {f"{MOUNT}/events/{name}/": "" for name in known if name.startswith("irq_vectors/")}
    host = Tracefs(str(plant(root, {**FILES, **vectors})))
    host.events, host.cpus = known, 2
    kinds = [*events.ON_THE_CPU, *events.vectors(host.names(f"/{MOUNT}/events/irq_vectors"))]
    with (
        Instance(host, frozenset({HERE}), kinds, 64, "cpus") as mine,
        Instance(host, CPUS, decode.SENDING, 64, "senders") as theirs,
    ):
        yield Kernel(host, mine, theirs, Symbols(host, mine.mount))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel_with(tmp_path_factory.mktemp("x86"), X86) as made:
        yield made


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel_with(tmp_path_factory.mktemp("older"), X86_6_1) as made:
        yield made


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel_with(tmp_path_factory.mktemp("arm"), ARM_6_12) as made:
        yield made


def put(trace: Instance, cpu: int, items: Sequence[Traced], each: int = 20) -> None:
    Path(f"{trace.host.root}{trace.path}/per_cpu/cpu{cpu}/trace_pipe_raw").write_bytes(pages(items, each))


def decoded(kernel: Kernel, *items: Traced, per_ns: int = 1, each: int = 20) -> list[TraceEvent]:
    put(kernel.mine, HERE, items, each)
    return decode.events(kernel.mine, HERE, kernel.symbol, int, lambda ns: round(ns * per_ns))


def senders(kernel: Kernel, *items: Traced, cpus: frozenset[int] = frozenset({HERE})) -> list[Sent]:
    comm = comms(kernel.host, f"/{MOUNT}")
    put(kernel.theirs, 0, items)
    return decode.sent(kernel.theirs, cpus, int, lambda pid: f"{comm(pid)} ({pid})", kernel.symbol)


def explained(kernel: Kernel, gap: Gap, here: Sequence[Traced], there: Sequence[Traced] = ()) -> dict[Cause, int]:
    """Whose time a gap was, by the whole way from the pages on."""
    comm = comms(kernel.host, f"/{MOUNT}")
    found = senders(kernel, *there)
    frames = build(decoded(kernel, *here), 0, 1_000_000, frozenset({0, DETECTOR}))
    name = namer(Senders(found, HERE, 10_000), comm)
    done: Account = account([gap], frames, (0, 1_000_000), name, round, 1_000_000, virtual=False)
    return dict(done.explained[0].parts)


def vector(name: str, begin: int, end: int) -> tuple[Traced, Traced]:
    return traced(begin, f"irq_vectors/{name}_entry", vector=251), traced(end, f"irq_vectors/{name}_exit", vector=251)


def call(name: str, begin: int, end: int) -> tuple[Traced, Traced]:
    func = FUNCTIONS[name]
    return traced(begin, "csd/csd_function_entry", func=func, csd=7), traced(
        end, "csd/csd_function_exit", func=func, csd=7
    )


def nested(outer: tuple[Traced, Traced], *inner: Traced) -> list[Traced]:
    return [outer[0], *inner, outer[1]]


def test_a_tick_with_its_timer_and_its_softirq(kernel: Kernel) -> None:
    tick = nested(
        vector("local_timer", 1_100, 4_000),
        traced(1_200, "timer/hrtimer_expire_entry", hrtimer=0xF00, now=5, function=FUNCTIONS["tick_nohz_handler"]),
        traced(2_700, "timer/hrtimer_expire_exit", hrtimer=0xF00),
        traced(3_000, "irq/softirq_entry", vec=9),
        traced(3_800, "irq/softirq_exit", vec=9),
    )
    found = explained(kernel, Gap(1_000, 3_300), tick)
    assert found == {Cause(HRTIMER, "tick_nohz_handler"): 2_500, Cause(SOFTIRQ, "RCU"): 800}


def timer_softirq(begin: int, *inner: Traced) -> list[Traced]:
    """A softirq TIMER of 1,000 ns with this in it."""
    return [traced(begin, "irq/softirq_entry", vec=1), *inner, traced(begin + 1_000, "irq/softirq_exit", vec=1)]


def timer(begin: int, function: str) -> tuple[Traced, Traced]:
    """A timer of 200 ns."""
    return (
        traced(begin, "timer/timer_expire_entry", timer=0xA, now=5, function=FUNCTIONS[function]),
        traced(begin + 200, "timer/timer_expire_exit", timer=0xA),
    )


def pulled(time: int, cpu: int) -> Traced:
    return traced(time, "timer_migration/tmigr_handle_remote_cpu", parent=0xF0, cpu=cpu, wakeup=7)


def test_a_timer_of_another_cpu_is_named_with_that_cpu_and_one_of_this_cpu_is_not(kernel: Kernel) -> None:
    own, first, second = (timer(at, "process_timeout") for at in (1_200, 1_500, 1_800))
    softirq = timer_softirq(1_100, *own, pulled(1_450, 0), *first, pulled(1_750, 3), *second)
    found = explained(kernel, Gap(1_000, 1_200), softirq)
    assert found == {
        Cause(TIMER, "process_timeout"): 800,
        Cause(PULLED, "process_timeout", "CPU 0"): 200,
        Cause(PULLED, "process_timeout", "CPU 3"): 200,
    }


def test_a_softirq_after_one_that_pulled_timers_runs_its_own(kernel: Kernel) -> None:
    softirqs = timer_softirq(1_100, pulled(1_200, 0)) + timer_softirq(2_200, *timer(2_400, "process_timeout"))
    found = explained(kernel, Gap(1_000, 2_300), softirqs)
    assert {cause.kind for cause in found} == {SOFTIRQ, TIMER}


def test_a_kernel_before_the_timer_hierarchy_has_timers_of_its_own_cpu_only(older: Kernel) -> None:
    found = explained(older, Gap(1_000, 1_200), timer_softirq(1_100, *timer(1_200, "process_timeout")))
    assert set(found) == {Cause(TIMER, "process_timeout")}


def test_a_work_in_its_kworker(kernel: Kernel) -> None:
    function = FUNCTIONS["vmstat_update"]
    work = [
        traced(1_100, "sched/sched_switch", prev_pid=DETECTOR, next_pid=WORKER, next_comm="kworker/1:1"),
        traced(1_500, "workqueue/workqueue_execute_start", WORKER, work=0xA, function=function),
        traced(4_000, "workqueue/workqueue_execute_end", WORKER, work=0xA, function=function),
        traced(4_600, "sched/sched_switch", WORKER, prev_pid=WORKER, next_pid=DETECTOR, next_comm="quiet"),
    ]
    assert explained(kernel, Gap(1_000, 3_900), work) == {Cause(WORK, "vmstat_update", "kworker/1:1"): 3_900}


def test_a_function_that_another_cpu_sent(kernel: Kernel) -> None:
    here = nested(vector("call_function_single", 1_100, 2_000), *call("ipi_mb", 1_200, 1_900))
    there = [
        traced(900, "csd/csd_queue_cpu", BASH, cpu=HERE, func=FUNCTIONS["ipi_mb"], csd=7),
        traced(910, "ipi/ipi_send_cpu", BASH, cpu=HERE, callback=CALLBACK),
    ]
    assert explained(kernel, Gap(1_000, 1_200), here, there) == {Cause(CALL, "membarrier", "CPU 0, bash (12)"): 1_200}


def test_a_shootdown_where_the_kernel_names_no_function(older: Kernel) -> None:
    here = nested(vector("call_function", 1_100, 2_000), traced(1_500, "tlb/tlb_flush", reason=1, pages=3))
    there = [traced(900, "tlb/tlb_flush", BASH, reason=4, pages=3)]
    assert explained(older, Gap(1_000, 1_200), here, there) == {Cause(CALL, SHOOTDOWN, "CPU 0, bash (12)"): 1_200}
    other = list(vector("call_function", 1_100, 2_000))
    assert explained(older, Gap(1_000, 1_200), other, there) == {Cause(VECTOR, "call_function"): 1_200}


@pytest.mark.parametrize("reason", [0, 2, 3, 4, 5])
def test_a_flush_for_another_reason_is_no_shootdown_from_elsewhere(kernel: Kernel, reason: int) -> None:
    assert decoded(kernel, traced(1_500, "tlb/tlb_flush", reason=reason)) == []
    # it has no target: where the kernel reports the sending itself, it adds nothing
    assert senders(kernel, traced(1_500, "tlb/tlb_flush", BASH, reason=reason)) == []


def test_a_function_that_only_its_queueing_names_is_the_wake_up_of_a_task(kernel: Kernel) -> None:
    here = list(vector("call_function_single", 1_100, 2_000))
    there = [
        traced(900, "csd/csd_queue_cpu", 0, cpu=HERE, func=FUNCTIONS["sched_ttwu_pending"], csd=7),
        traced(910, "ipi/ipi_send_cpu", 0, cpu=HERE, callback=CALLBACK),
    ]
    assert explained(kernel, Gap(1_000, 1_200), here, there) == {
        Cause(CALL, "wake-up of a task", "CPU 0, idle (0)"): 1_200
    }


def test_a_task_whose_name_has_spaces(kernel: Kernel) -> None:
    here = [
        traced(1_100, "sched/sched_switch", prev_pid=DETECTOR, next_pid=41, next_comm="Web Content"),
        traced(3_000, "sched/sched_switch", 41, prev_pid=41, next_pid=DETECTOR, next_comm="quiet"),
    ]
    assert explained(kernel, Gap(1_000, 2_100), here) == {Cause(THREAD, "Web Content", "41"): 2_100}
    here = list(vector("reschedule", 1_100, 2_000))
    there = [traced(900, "ipi/ipi_send_cpu", 31, cpu=HERE)]
    assert explained(kernel, Gap(1_000, 1_100), here, there) == {
        Cause(VECTOR, "reschedule", "CPU 0, tmux: server (31)"): 1_100
    }


def test_a_page_fault_of_the_detector_is_its_own_and_another_tasks_is_that_tasks(kernel: Kernel) -> None:
    own = [traced(1_200, "exceptions/page_fault_user", DETECTOR, address=0x1000)]
    assert explained(kernel, Gap(1_000, 800), own) == {Cause(FAULT, "page fault"): 800}
    others = [
        traced(1_100, "sched/sched_switch", prev_pid=DETECTOR, next_pid=41, next_comm="Web Content"),
        traced(1_500, "exceptions/page_fault_user", 41, address=0x1000),
        traced(3_000, "sched/sched_switch", 41, prev_pid=41, next_pid=DETECTOR, next_comm="quiet"),
    ]
    assert explained(kernel, Gap(1_000, 2_100), others) == {Cause(THREAD, "Web Content", "41"): 2_100}


def test_a_devices_interrupt_has_its_number_and_its_name(kernel: Kernel) -> None:
    here = [
        traced(1_100, "irq/irq_handler_entry", irq=27, name="virtio0-input.0"),
        traced(2_000, "irq/irq_handler_exit", irq=27, ret=1),
    ]
    assert explained(kernel, Gap(1_000, 1_200), here) == {Cause(IRQ, "27 virtio0-input.0"): 1_200}


def test_an_nmis_length_arrives_in_nanoseconds_and_is_converted_to_ticks(kernel: Kernel) -> None:
    handler = FUNCTIONS["perf_event_nmi_handler"]
    found = decoded(kernel, traced(9_000, "nmi/nmi_handler", handler=handler, delta_ns=700, handled=1), per_ns=3)
    assert found == [TraceEvent(9_000, POINT, NMI, "perf_event_nmi_handler", DETECTOR, 2_100)]


def test_on_arm_an_ipi_is_called_by_what_it_is_for(arm: Kernel) -> None:
    ipi = traced(1_100, "ipi/ipi_entry", reason=REASON), traced(2_000, "ipi/ipi_exit", reason=REASON)
    here = nested(ipi, *call("remote_function", 1_200, 1_900))
    there = [traced(900, "ipi/ipi_raise", BASH, target_cpus=(1 << HERE).to_bytes(8, "little"), reason=REASON)]
    by = "CPU 0, bash (12)"
    assert explained(arm, Gap(1_000, 1_200), here, there) == {Cause(CALL, "remote_function", by): 1_200}
    assert explained(arm, Gap(1_000, 1_200), list(ipi), there) == {Cause(VECTOR, "Function call interrupts", by): 1_200}


def test_a_timer_of_the_wheel_runs_in_its_softirq(kernel: Kernel) -> None:
    softirq = traced(1_100, "irq/softirq_entry", vec=1), traced(2_000, "irq/softirq_exit", vec=1)
    timer = (
        traced(1_300, "timer/timer_expire_entry", timer=0xB, function=FUNCTIONS["process_timeout"]),
        traced(1_800, "timer/timer_expire_exit", timer=0xB),
    )
    assert explained(kernel, Gap(1_000, 1_200), nested(softirq, *timer)) == {Cause(TIMER, "process_timeout"): 1_200}


def test_why_the_tick_was_kept_is_known_and_takes_no_time(kernel: Kernel) -> None:
    kept = traced(1_500, "timer/tick_stop", success=0, dependency=4)
    (found,) = decoded(kernel, traced(1_400, "timer/tick_stop", success=1, dependency=0), kept)
    assert (found.kind, found.name) == (
        events.TICK_KEPT,
        events.TICK_NEEDED[4],
    )
    tick = nested(vector("local_timer", 1_100, 2_000), kept)
    assert explained(kernel, Gap(1_000, 1_200), tick) == {Cause(VECTOR, "local_timer"): 1_200}


def test_what_an_older_kernel_does_not_have_is_left_out(older: Kernel) -> None:
    names = {kind.name for kind, _ in older.mine.kinds.values()}
    assert {"sched_switch", "tlb_flush", "call_function_entry"} <= names
    assert not names & {"csd_function_entry", "csd_function_exit", "ipi_entry", "ipi_exit"}
    assert {kind.name for kind, _ in older.theirs.kinds.values()} == {"tlb_flush"}
    found = decoded(older, *vector("call_function", 1_100, 2_000))
    assert [(event.action, event.name) for event in found] == [(BEGIN, "call_function"), (END, "call_function")]


def test_a_cpu_on_which_nothing_happened_has_no_events(kernel: Kernel) -> None:
    assert decoded(kernel) == []
    assert senders(kernel) == []


def test_an_event_that_nobody_asked_for_is_passed_over(kernel: Kernel) -> None:
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


def test_what_was_queued_is_for_the_next_interrupt_to_that_cpu_alone(kernel: Kernel) -> None:
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


def test_a_task_is_called_as_it_is_now_or_as_it_was_when_it_was_traced(kernel: Kernel) -> None:
    comm = comms(kernel.host, f"/{MOUNT}")
    assert [comm(pid) for pid in (0, BASH, 31, 41, 99)] == ["idle", "bash", "tmux: server", "Web Content", ""]


def test_a_trace_that_never_shows_the_own_task_has_other_numbers_for_tasks(kernel: Kernel) -> None:
    switch = traced(1_000, "sched/sched_switch", 41, prev_pid=41, next_pid=DETECTOR, next_comm="quiet")
    strange = decoded(kernel, switch._replace(values={"next_pid": 7_010}))
    assert decode.foreign(strange, DETECTOR)
    assert not decode.foreign(decoded(kernel, switch), DETECTOR)
    assert not decode.foreign(decoded(kernel, traced(1_000, "irq/softirq_entry", 41, vec=3)), DETECTOR)
    assert not decode.foreign([], DETECTOR)

"""From the kernel's pages to causes: written traces are decoded as causes and their originators."""

from __future__ import annotations

from collections.abc import Sequence

from quiet.noise import events
from quiet.noise.attribute import Account, Cause, Gap, account
from quiet.noise.call_nesting import (
    CALL,
    FAULT,
    HRTIMER,
    IRQ,
    PULLED,
    SOFTIRQ,
    THREAD,
    TIMER,
    VECTOR,
    WORK,
    build,
)
from quiet.noise.decode import comms
from quiet.noise.names import SHOOTDOWN, Senders, namer
from tests.quiet.noise.decoding import (
    BASH,
    CALLBACK,
    DETECTOR,
    FUNCTIONS,
    HERE,
    REASON,
    WORKER,
    Kernel,
    call,
    decoded,
    nested,
    senders,
    vector,
)
from tests.quiet.noise.tracing import MOUNT, Traced, traced


def explained(kernel: Kernel, gap: Gap, here: Sequence[Traced], there: Sequence[Traced] = ()) -> dict[Cause, int]:
    """Whose time a gap was, by the whole way from the pages on."""
    comm = comms(kernel.host, f"/{MOUNT}")
    found = senders(kernel, *there)
    frames = build(decoded(kernel, *here), 0, 1_000_000, frozenset({0, DETECTOR}))
    name = namer(Senders(found, HERE, 10_000), comm)
    done: Account = account([gap], frames, (0, 1_000_000), name, round, 1_000_000, virtual=False)
    return dict(done.explained[0].parts)


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


def test_the_reason_for_keeping_the_tick_is_known_and_takes_no_time(kernel: Kernel) -> None:
    kept = traced(1_500, "timer/tick_stop", success=0, dependency=4)
    (found,) = decoded(kernel, traced(1_400, "timer/tick_stop", success=1, dependency=0), kept)
    assert (found.kind, found.name) == (
        events.TICK_KEPT,
        events.TICK_NEEDED[4],
    )
    tick = nested(vector("local_timer", 1_100, 2_000), kept)
    assert explained(kernel, Gap(1_000, 1_200), tick) == {Cause(VECTOR, "local_timer"): 1_200}

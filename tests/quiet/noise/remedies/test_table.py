"""The table of remedies: a case for each row, with the names that the kernel really uses."""

from __future__ import annotations

import re

import pytest

from quiet.knobs.registry import BY_NAME
from quiet.noise import attribute_untraced
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
    COUNTED,
    FAULT,
    HRTIMER,
    IRQ,
    NMI,
    PULLED,
    SOFTIRQ,
    THREAD,
    TIMER,
    VECTOR,
    WORK,
    Share,
)
from quiet.noise.events import SOFTIRQS
from quiet.noise.names import CALLS, VECTORS, Senders, namer
from quiet.noise.remedies.remedy import BOOT, KNOB, NONE, USER, Remedy
from quiet.noise.remedies.table import REMEDIES, remedy, stopped_by
from tests.quiet.noise.making import KINDS, WAKE_KINDS

CPU = 3
# Kind and name as the kernel gives them; where the remedy is, what it is, and a word that its text has.
CASES = (
    (HRTIMER, "tick_sched_timer", BOOT, "nohz_full=3", "tick"),  # up to Linux 6.7
    (HRTIMER, "tick_nohz_highres_handler", BOOT, "nohz_full=3", "tick"),  # Linux 6.8
    (HRTIMER, "tick_nohz_handler", BOOT, "nohz_full=3", "tick"),  # since Linux 6.9
    (HRTIMER, "watchdog_timer_fn", KNOB, "watchdog.cpus", "lockup"),
    (HRTIMER, "sched_rt_period_timer", KNOB, "rt_throttling", "real-time"),
    (HRTIMER, "sched_cfs_period_timer", USER, "", "cgroup"),
    (HRTIMER, "sched_cfs_slack_timer", USER, "", "cgroup"),
    (HRTIMER, "perf_swevent_hrtimer", USER, "", "perf"),
    (HRTIMER, "perf_mux_hrtimer_handler", KNOB, "perf.mux_interval", "perf"),
    (HRTIMER, "hrtimer_wakeup", KNOB, "tasks", "slept"),
    (HRTIMER, "posix_timer_fn", KNOB, "tasks", "own timer"),
    (HRTIMER, "it_real_fn", KNOB, "tasks", "own timer"),
    (HRTIMER, "timerfd_tmrproc", KNOB, "tasks", "own timer"),
    (HRTIMER, "dl_task_timer", KNOB, "sched.servers", "fair server"),
    (HRTIMER, "hrtick", NONE, "", "scheduler"),
    (HRTIMER, "napi_watchdog", BOOT, "nohz_full=3", "kernel timer"),
    (TIMER, "clocksource_watchdog", BOOT, "tsc=nowatchdog", "time stamp counter"),
    (TIMER, "mce_timer_fn", KNOB, "mce.interval", "machine check"),
    (TIMER, "delayed_work_timer_fn", BOOT, "nohz_full=3", "work"),
    (TIMER, "process_timeout", KNOB, "tasks", "task"),
    (TIMER, "tcp_keepalive_timer", BOOT, "nohz_full=3", "kernel timer"),
    (PULLED, "tcp_keepalive_timer", BOOT, "nohz_full=3", "until Linux 6.18", "CPU 0"),
    (WORK, "vmstat_update", KNOB, "vm.stat_interval", "memory counters"),
    (WORK, "fb_flashcursor", KNOB, "console.blink", "cursor"),
    (WORK, "dbs_work_handler", KNOB, "cpufreq.governor", "governor"),
    (WORK, "lru_add_drain_per_cpu", USER, "", "drain"),
    (WORK, "drain_local_pages_wq", USER, "", "drain"),
    (WORK, "update_pages_handler", USER, "", "trace buffer"),
    (WORK, "wb_workfn", KNOB, "workqueue", "unbound", "kworker/u8:2"),
    (WORK, "cache_reap", NONE, "", "each CPU", "kworker/3:1"),
    (WORK, "psi_avgs_work", BOOT, "psi=0", "pressure", "kworker/3:1"),
    (WORK, "toggle_allocation_gate", KNOB, "kfence", "KFENCE", "kworker/u8:2"),
    (WORK, "blk_mq_run_work_fn", USER, "", "disk", "kworker/3:1H"),
    (WORK, "blk_mq_timeout_work", USER, "", "disk", "kworker/3:1H"),
    (WORK, "bpf_prog_free_deferred", USER, "", "BPF", "kworker/3:1"),
    (WORK, "neigh_periodic_work", BOOT, "workqueue.power_efficient=1", "unbound", "kworker/3:1"),
    (WORK, "phy_state_machine", BOOT, "workqueue.power_efficient=1", "unbound", "kworker/3:1"),
    (IRQ, "11 arch_timer", BOOT, "nohz_full=3", "timer"),  # arm64
    (IRQ, "27 virtio0-input.0", KNOB, "irq", "isolcpus=managed_irq,3 "),
    (CALL, "flush_tlb_func", USER, "", "page tables"),
    (CALL, "TLB shootdown", USER, "", "page tables"),  # from the event tlb:tlb_flush
    (CALL, "flush_tlb_func", KNOB, "thp.scan", "collapses", "CPU 0, khugepaged (52)"),
    (CALL, "tlb_remove_table_smp_sync", KNOB, "thp.scan", "every CPU", "CPU 0, khugepaged (52)"),
    (CALL, "tlb_remove_table_smp_sync", USER, "", "frees or collapses", "CPU 0, java (520)"),
    (CALL, "TLB shootdown", KNOB, "vm.compaction", "moves pages", "CPU 0, kcompactd0 (50)"),
    (CALL, "TLB shootdown", KNOB, "ksm", "merges", "CPU 0, ksmd (51)"),
    (CALL, "flush_tlb_func", KNOB, "damon", "DAMON", "CPU 0, kdamond.0 (55)"),
    (CALL, "flush_tlb_func", USER, "", "kswapd", "CPU 0, kswapd0 (53)"),
    (CALL, "do_nothing", USER, "", "own code"),  # kick_all_cpus_sync, of static keys on arm64
    (CALL, "do_flush_tlb_all", USER, "", "page tables"),
    (CALL, "do_kernel_range_flush", USER, "", "page tables"),
    (CALL, "ipi_mb", USER, "", "membarrier"),
    (CALL, "ipi_sync_core", USER, "", "membarrier"),
    (CALL, "ipi_rseq", USER, "", "membarrier"),
    (CALL, "ipi_sync_rq_state", USER, "", "membarrier"),
    (CALL, "do_sync_core", USER, "", "own code"),
    (CALL, "rcu_exp_handler", KNOB, "rcu.normal", "rcu_normal"),
    (CALL, "trc_read_check_handler", KNOB, "rcu.tasks_ipi", "RCU"),
    (CALL, "rcu_barrier_handler", NONE, "", "callbacks"),
    (CALL, "rcu_barrier_func", NONE, "", "callbacks"),
    (CALL, "remote_function", USER, "", "perf"),
    (CALL, "__perf_event_read", USER, "", "perf"),
    (CALL, "__rdmsr_on_cpu", USER, "", "registers"),
    (CALL, "__wrmsr_safe_on_cpu", USER, "", "registers"),
    (CALL, "aperfmperf_snapshot_khz", USER, "", "frequenc"),
    (CALL, "invalidate_bh_lru", USER, "", "lists"),
    (CALL, "sched_ttwu_pending", KNOB, "tasks", "woke a task"),
    (CALL, "nohz_full_kick_func", BOOT, "tsc=nowatchdog", "tick"),
    (CALL, "generic_exec", NONE, "", "another CPU"),
    (VECTOR, "reschedule", KNOB, "tasks", "woke"),
    (VECTOR, "Rescheduling interrupts", KNOB, "tasks", "woke"),  # arm64
    (VECTOR, "Function call interrupts", NONE, "", "function"),
    (VECTOR, "IRQ work interrupts", NONE, "", "deferred"),
    (VECTOR, "Timer broadcast interrupts", BOOT, "nohz_full=3", "timer"),
    (VECTOR, "call_function", NONE, "", "function"),
    (VECTOR, "call_function_single", NONE, "", "function"),
    (VECTOR, "irq_work", NONE, "", "deferred"),
    (VECTOR, "tick", BOOT, "nohz_full=3", "tick"),  # recognized by its phase
    (VECTOR, "local_timer", BOOT, "nohz_full=3", "timer"),
    (VECTOR, "thermal_apic", USER, "", "heat"),
    (VECTOR, "threshold_apic", USER, "", "corrected"),
    (VECTOR, "deferred_error_apic", USER, "", "corrected"),
    (VECTOR, "spurious_apic", NONE, "", "processor"),
    (SOFTIRQ, "RCU", BOOT, "rcu_nocbs=3", "callbacks"),
    (SOFTIRQ, "NET_RX", KNOB, "irq", "packets"),
    (SOFTIRQ, "NET_TX", KNOB, "irq", "packets"),
    (SOFTIRQ, "BLOCK", KNOB, "irq", "disk"),
    (SOFTIRQ, "IRQ_POLL", KNOB, "irq", "disk"),
    (SOFTIRQ, "SCHED", KNOB, "cpuset", "balancing"),
    (SOFTIRQ, "TASKLET", KNOB, "irq", "device"),
    (SOFTIRQ, "HI", KNOB, "irq", "device"),
    (SOFTIRQ, "TIMER", BOOT, "nohz_full=3", "timer"),
    (SOFTIRQ, "HRTIMER", NONE, "", "timers"),
    (SOFTIRQ, "10", NONE, "", "softirq"),
    (THREAD, "migration/3", KNOB, "watchdog.cpus", "soft lockup"),
    (THREAD, "ksoftirqd/3", KNOB, "irq", "softirqs"),
    (THREAD, "rcuc/3", BOOT, "rcu_nocbs=3", "RCU"),
    (THREAD, "rcuop/3", KNOB, "tasks", "RCU"),
    (THREAD, "rcuog/2", KNOB, "tasks", "RCU"),
    (THREAD, "cpuhp/3", NONE, "", "belongs to this CPU"),
    (THREAD, "irq_work/3", NONE, "", "belongs to this CPU"),
    (THREAD, "watchdogd", KNOB, "cpuset", "may run here"),
    (THREAD, "irq/27-eth0", KNOB, "irq", "interrupt"),
    (THREAD, "kworker/3:1H", NONE, "", "kworker"),
    (THREAD, "ktimers/3", NONE, "", "belongs to this CPU"),
    (THREAD, "kworker/u8:2", KNOB, "workqueue", "kworker"),
    (THREAD, "bash", KNOB, "cpuset", "partition"),
    (COUNTED, "other timer", KNOB, "tasks", "slept"),
    (COUNTED, attribute_untraced.OTHER.name, KNOB, "irq", "not the tick"),
    (NMI, "perf_event_nmi_handler", KNOB, "watchdog.nmi", "lockup"),
    (NMI, "ghes_notify_nmi", NONE, "", "firmware"),
    (NMI, "nmi_cpu_backtrace_handler", USER, "", "dmesg"),
    (FAULT, "page fault", NONE, "", "RLIMIT_MEMLOCK"),
    (HOST, HYPERVISOR, NONE, "", "pin"),
    (HOST, FIRMWARE, NONE, "", "firmware"),
    (HOST, NOT_SMI, NONE, "", "no SMI was counted"),
    (HOST, OUTSIDE, NONE, "", "not known"),
    (STALL, "processor stall", NONE, "", "processor"),
    (UNKNOWN, "after the trace's end", NONE, "", "evidence"),
    (IDLE, "POLL", NONE, "", "polled"),
    (IDLE, "C6", KNOB, "idle.cpus", "idle state"),
    (IRQS_OFF, "the idle task", NONE, "", "idle"),
    (IRQS_OFF, "task hog (812)", USER, "", "interrupts off"),
    (OTHER_CPU, "0", NONE, "", "timer_migration"),
    (SCHEDULER, "", NONE, "", "wake-up"),
    (USER_RETURN, "", NONE, "", "system call"),
)
# Parameters of Documentation/admin-guide/kernel-parameters.txt, with the values that these can have.
LIST = r"\d+([-,]\d+)*"
PARAMETERS = {
    "nohz_full": LIST,
    "rcu_nocbs": LIST,
    "psi": "[01]",
    "workqueue.power_efficient": "[01]",
    "isolcpus": rf"((nohz|domain|managed_irq),)*{LIST}",
    "irqaffinity": LIST,
    "tsc": "reliable|noirqtime|unstable|nowatchdog|recalibrate|watchdog",
    "rcupdate.rcu_normal": "[01]",
    "rcupdate.rcu_expedited": "[01]",
    "nmi_watchdog": "0|1|panic|nopanic",
    "mce": "off|no_cmci|ignore_ce|dont_log_ce",
    "skew_tick": "[01]",
    "workqueue.unbound_cpus": LIST,
    "processor.max_cstate": r"\d+",
    "intel_idle.max_cstate": r"\d+",
}


def named(kind: str, name: str, by: str = "") -> Cause:
    """A cause as the merge makes it of what the kernel says. `by`: who did it."""
    if kind in (HOST, STALL, UNKNOWN, COUNTED):
        return Cause(kind, name)
    return namer(Senders((), CPU, 0), str)(Share(kind, name, 0, 1, 1, 7))._replace(by=by)


def row(kind: str, name: str, by: str = "") -> Remedy:
    """The row as it stands in the table."""
    name = named(kind, name).name
    return next(
        item
        for item in REMEDIES
        if item.kind == kind and re.fullmatch(item.pattern, name) and re.fullmatch(item.by, by)
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case[:2] + case[5:]))
def test_a_cause_has_its_remedy(case: tuple[str, ...]) -> None:
    kind, name, how, what, word, *by = case
    found = remedy(named(kind, name, *by), CPU)
    assert (found.how, found.what) == (how, what)
    assert word in found.text


@pytest.mark.parametrize("item", REMEDIES, ids=lambda item: f"{item.kind} {item.pattern} {item.by}")
def test_a_row_has_a_case_and_is_not_hidden_by_an_earlier_one(item: Remedy) -> None:
    assert item in [row(kind, name, *by) for kind, name, _, _, _, *by in CASES if kind == item.kind]


@pytest.mark.parametrize("item", REMEDIES, ids=lambda item: f"{item.kind} {item.pattern}")
def test_a_row_names_existing_knobs_and_parameters(item: Remedy) -> None:
    assert item.kind in (*KINDS, *WAKE_KINDS)
    assert item.how in (KNOB, BOOT, USER, NONE)
    assert bool(item.what) == (item.how in (KNOB, BOOT))
    assert item.text.strip()
    if item.how == KNOB:
        assert item.what in BY_NAME


@pytest.mark.parametrize("what", sorted({item.what for item in REMEDIES if item.how == BOOT}))
def test_a_boot_parameter_is_one_that_the_kernel_knows(what: str) -> None:
    name, _, value = what.format(cpu=CPU, cpus=CPU).partition("=")
    assert re.fullmatch(PARAMETERS[name], value)


@pytest.mark.parametrize("item", REMEDIES, ids=lambda item: f"{item.kind} {item.pattern}")
def test_a_knob_that_a_text_speaks_of_exists(item: Remedy) -> None:
    assert set(re.findall(r"\bknob ([a-z_.]*[a-z_])", item.text)) <= set(BY_NAME)
    assert not re.search(r"[{}]", item.text.format(cpu=CPU, cpus=CPU, naming=""))


@pytest.mark.parametrize("kind", [*KINDS, *WAKE_KINDS])
def test_every_kind_ends_with_a_row_for_all_the_rest(kind: str) -> None:
    mine = [item for item in REMEDIES if item.kind == kind]
    assert mine[-1].pattern == ".*"
    assert [(item.pattern, item.by) for item in mine].count((".*", ".*")) == 1
    assert remedy(Cause(kind, "nobody knows (this) \N{SNOWMAN}"), CPU).kind == kind


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(LookupError, match="no remedy for the kind bogus"):
        remedy(Cause("bogus", "x"), CPU)


@pytest.mark.parametrize("name", CALLS)
def test_a_function_with_a_display_name_has_a_specific_remedy(name: str) -> None:
    assert row(CALL, name).pattern != ".*"


@pytest.mark.parametrize(
    "name", [name for name in VECTORS if name not in ("error_apic", "spurious_apic", "x86_platform_ipi")]
)
def test_a_vector_with_a_display_name_has_a_specific_remedy(name: str) -> None:
    assert row(VECTOR, name).pattern != ".*"


@pytest.mark.parametrize("name", SOFTIRQS)
def test_every_softirq_has_a_specific_remedy(name: str) -> None:
    assert row(SOFTIRQ, name).pattern != ".*"


@pytest.mark.parametrize(
    "cause", [attribute_untraced.TICK, attribute_untraced.OTHER, attribute_untraced.TASK, attribute_untraced.OWN]
)
def test_causes_found_by_counting_have_a_remedy(cause: Cause) -> None:
    assert remedy(cause, CPU).text


def test_a_knob_reports_what_it_stops() -> None:
    assert {item.pattern for item in stopped_by("watchdog.cpus")} >= {"watchdog_timer_fn"}
    assert stopped_by("aslr") == []
    for item in REMEDIES:
        if item.how == KNOB:
            found = [(each.kind, each.pattern) for each in stopped_by(item.what)]
            assert (item.kind, item.pattern) in found


@pytest.mark.parametrize("knob", BY_NAME)
def test_the_interruptions_that_a_knob_stops_are_reported_without_a_specific_cpu(knob: str) -> None:
    for item in stopped_by(knob):
        assert item.what == knob
        assert not re.search(r"[{}]", item.text)
    if knob == "irq":
        assert any("managed_irq,LIST" in item.text for item in stopped_by(knob))


@pytest.mark.parametrize("case", [case for case in CASES if case[2] in (KNOB, BOOT)], ids=" ".join)
def test_a_setting_already_in_place_is_not_a_remedy_and_the_text_says_why(case: tuple[str, ...]) -> None:
    kind, name, _, what, _, *by = case
    cause = named(kind, name, *by)
    knob = what.partition("=")[0]
    found = remedy(cause, CPU, {knob, "aslr"})
    assert (found.how, found.what) == (NONE, "")
    assert found.text != remedy(cause, CPU).text
    if still := row(kind, name, *by).still:
        assert found.text == still
    else:
        assert all(part in found.text for part in (what, "already in place", remedy(cause, CPU).text))
    assert remedy(cause, CPU, {"aslr"}) == remedy(cause, CPU)


def test_a_cause_that_persists_despite_its_remedy_is_explained() -> None:
    assert "second task" in remedy(Cause(HRTIMER, "tick_nohz_handler"), CPU, {"nohz_full"}).text
    assert (
        remedy(attribute_untraced.TICK, CPU, {"nohz_full"}).text
        == remedy(named(HRTIMER, "tick_sched_timer"), CPU, {"nohz_full"}).text
    )
    assert "already run elsewhere" in remedy(Cause(SOFTIRQ, "RCU"), CPU, {"rcu_nocbs"}).text


@pytest.mark.parametrize("kind", [*KINDS, *WAKE_KINDS])
def test_a_cause_that_has_no_remedy_is_the_same_whatever_is_in_place(kind: str) -> None:
    everything = {*BY_NAME, *PARAMETERS}
    for item in REMEDIES:
        if item.kind == kind and item.how in (USER, NONE):
            cases = [(name, *by) for k, name, _, _, _, *by in CASES if k == kind]
            cause = named(kind, *next(case for case in cases if row(kind, *case) == item))
            assert remedy(cause, CPU, everything) == remedy(cause, CPU)


def test_a_kernel_parameter_names_all_the_cpus_that_were_measured() -> None:
    assert remedy(Cause(HRTIMER, "tick_nohz_handler"), 3, cpus="2-3").what == "nohz_full=2-3"


def test_a_setting_that_this_kernel_lacks_is_not_a_remedy_and_the_reason_is_given() -> None:
    lacking = {"nohz_full": "this kernel has no nohz_full"}
    found = remedy(Cause(HRTIMER, "tick_nohz_handler"), CPU, absent=lacking)
    assert (found.how, found.what) == (NONE, "")
    assert found.text.endswith("; this kernel has no nohz_full")
    assert remedy(Cause(TIMER, "clocksource_watchdog"), CPU, absent=lacking).how == BOOT


def test_root_or_tracefs_is_requested_only_if_it_is_missing() -> None:
    naming = "; run as root, so that kernel tracing can identify it"
    assert remedy(attribute_untraced.OTHER, CPU, naming=naming).text.endswith(naming)
    assert "root" not in remedy(attribute_untraced.OTHER, CPU).text
    assert "root" not in remedy(attribute_untraced.SHORT, CPU).text

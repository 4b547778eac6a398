"""The prediction of `quiet run`: a cause is removed if its remedy is a knob that the plan can set."""

from __future__ import annotations

from quiet.host.reader import Reader
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.noise.budgets import Nanoseconds
from quiet.noise.frequency import Frequency
from quiet.noise.interruptions import InterruptionCause, Interruptions
from quiet.settings.plan import Change, Plan, Skipped
from quiet.settings.profile import load
from quiet.why.prediction import Prediction

CPUS = CpuPartition(frozenset({2, 3}), frozenset({0, 1}), frozenset(), "")


def row(cause: str, kind: str = "thread", knob: str | None = None, boot: str | None = None) -> InterruptionCause:
    return InterruptionCause(cause, kind, 10, Nanoseconds(1000), Nanoseconds(100), "", knob, boot)


def seen(*rows: InterruptionCause) -> Interruptions:
    return Interruptions(
        "trace", 1.0, (0,), 10 * len(rows), Nanoseconds(0), Nanoseconds(0), rows, Frequency(""), {}, None, 0, ()
    )


def change(knob: str) -> Change:
    return Change(knob, f"file:/{knob}", "1", "0", "", "")


def prediction(*changes: str, skips: tuple[Skipped, ...] = (), facts: Facts | None = None) -> Prediction:
    plan = Plan("bench", CPUS, tuple(map(change, changes)), skips, (), tuple)
    return Prediction(facts or Facts(Reader()), load("bench"), plan, applied=False)


def test_a_cause_whose_knob_changes_something_is_predicted_to_be_gone() -> None:
    found = prediction("cpuset", "vm.stat_interval").of(
        seen(row("task a (1)", knob="cpuset"), row("vmstat", "work", "vm.stat_interval"), row("host", "host"))
    )
    assert (found.count, found.gone, found.causes) == (10, 20, ("host",))


def test_the_observer_itself_is_neither_gone_nor_stays() -> None:
    found = prediction("cpuset").of(seen(row("quiet itself (7)"), row("task a (1)", knob="cpuset")))
    assert (found.count, found.gone, found.causes) == (0, 10, ())


def test_a_cause_whose_knob_the_plan_skips_stays_and_the_reason_is_known() -> None:
    skips = (Skipped("mce.interval", "file:/x", "no machine checks"),)
    found = prediction("cpuset", skips=skips)
    assert not found.removes(row("mce", "timer", "mce.interval"))
    assert found.absent == {"mce.interval": "no machine checks"}


def test_a_cause_whose_knob_already_has_its_value_stays() -> None:
    assert not prediction("cpuset").removes(row("vmstat", "work", "vm.stat_interval"))


def test_an_interrupt_already_routed_to_other_cpus_is_gone() -> None:
    assert prediction("cpuset").removes(row("IRQ 30 eth0", "irq", "irq"))


def test_an_interrupt_that_cannot_be_moved_stays() -> None:
    skips = (Skipped("irq", "irq:36", "managed by its driver"),)
    found = prediction("irq", skips=skips)
    assert not found.removes(row("IRQ 36 virtio1-req.0", "irq", "irq"))
    assert found.removes(row("IRQ 35 virtio1-config", "irq", "irq"))


def test_ksoftirqd_stays_while_a_softirq_stays_that_it_may_run() -> None:
    rows = (row("task ksoftirqd/2 (33)", knob="irq"), row("softirq NET_RX", "softirq", "irq"))
    stays = row("softirq RCU", "softirq", boot="rcu_nocbs=2-3")
    assert prediction("irq").of(seen(*rows)).causes == ()
    assert prediction("irq").of(seen(*rows, stays)).causes == ("softirq RCU", "task ksoftirqd/2 (33)")


def test_without_a_cpuset_controller_and_movable_tasks_nothing_is_moved() -> None:
    skips = (Skipped("cpuset", "cgroup:/", "none"), Skipped("tasks", "task:1", "not permitted"))
    assert not prediction(skips=skips).removes(row("task a (1)", knob="cpuset"))


def test_a_kernel_parameter_that_only_a_boot_can_set_stays() -> None:
    assert not prediction("cpuset").removes(row("tick", "hrtimer", boot="nohz_full=2-3"))


def test_a_kernel_parameter_that_the_isolated_cpus_have_already_is_gone() -> None:
    class NohzFull(Facts):
        nohz_full = frozenset({2, 3})  # type: ignore[assignment]

    facts = NohzFull(Reader())
    assert prediction("cpuset", facts=facts).removes(row("tick", "hrtimer", boot="nohz_full=2-3"))

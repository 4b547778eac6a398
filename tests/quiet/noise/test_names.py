"""The names of causes, and the senders of interrupts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import attribute, call_nesting
from quiet.noise.attribute import Cause
from quiet.noise.call_nesting import CALL, HRTIMER, IRQ, THREAD, VECTOR, WORK, Share
from quiet.noise.names import (
    CALLS,
    FUNCTION,
    FUNCTION_CALLS,
    RESCHEDULE,
    SHOOTDOWN,
    VECTORS,
    Senders,
    Sent,
    label,
    namer,
)
from tests.quiet.noise.making import KINDS, WAKE_KINDS

HERE = 1
PURPOSES = (RESCHEDULE, FUNCTION, SHOOTDOWN)
COMMS = {7: "kworker/1:1", 8: "kworker/1:0-events", 9: "kworker/1:1H+kblockd", 99: "bash"}
SENT = st.builds(
    Sent,
    st.integers(0, 20),
    st.integers(0, 2),
    st.frozensets(st.integers(0, 2)),
    st.sampled_from(["a (1)", "b (2)"]),
    st.sampled_from(["", *PURPOSES]),
)


def share(kind: str, name: str, pid: int = 7) -> Share:
    return Share(kind, name, 500, 10, 1, pid)


def named(some: Share, sent: list[Sent] | None = None) -> Cause:
    return namer(Senders(sent or [], HERE, 100), COMMS.__getitem__)(some)


@pytest.mark.slow
@given(st.lists(SENT), st.integers(0, 20), st.integers(0, 20), st.lists(st.sampled_from(PURPOSES)))
def test_the_sender_is_the_last_one_to_this_cpu_with_a_matching_or_unknown_purpose(
    sent: list[Sent], time: int, reach: int, purposes: list[str]
) -> None:
    found = Senders(sent, HERE, reach).find(time, purposes)
    mine = [
        each
        for each in sent
        if HERE in each.targets
        and each.cpu != HERE
        and time - reach <= each.time <= time
        and each.only in ("", *purposes)
    ]
    if len({each.task for each in mine if each.only == SHOOTDOWN}) > 1:  # it is unknown which of them it was
        mine = [each for each in mine if each.only != SHOOTDOWN]
    last = max((each.time for each in mine), default=None)
    if last is None:
        assert found is None
    else:
        assert found in [each for each in mine if each.time == last]


def test_of_two_interrupts_that_were_sent_at_once_each_has_its_own_sender() -> None:
    sent = [
        Sent(440, 0, frozenset({HERE}), "bash (12)", FUNCTION, "sched_ttwu_pending"),
        Sent(450, 2, frozenset({HERE}), "cron (9)", RESCHEDULE),
    ]
    assert named(share(VECTOR, "reschedule"), sent).by == "CPU 2, cron (9)"
    assert named(share(VECTOR, "call_function_single"), sent) == Cause(CALL, "wake-up of a task", "CPU 0, bash (12)")
    assert named(share(VECTOR, "irq_work"), sent).by == ""


def test_an_interrupt_from_another_cpu_names_its_sender() -> None:
    sent = [Sent(450, 0, frozenset({HERE}), "bash (12)")]
    assert named(share(CALL, "do_sync_core"), sent) == Cause(CALL, CALLS["do_sync_core"], "CPU 0, bash (12)")
    assert named(share(VECTOR, "reschedule"), sent).by == "CPU 0, bash (12)"


def test_an_interrupt_without_a_sender_has_none() -> None:
    sent = [Sent(450, 0, frozenset({HERE}), "bash (12)")]
    assert named(share(VECTOR, "local_timer"), sent) == Cause(VECTOR, "local_timer")
    assert named(share(IRQ, "27 eth0"), sent) == Cause(IRQ, "27 eth0")


@pytest.mark.parametrize("vector", FUNCTION_CALLS)
def test_a_call_without_a_known_function_is_named_by_the_queued_work(vector: str) -> None:
    sent = [Sent(450, 0, frozenset({HERE}), "bash (12)", why="rcu_barrier_handler")]
    assert named(share(VECTOR, vector), sent) == Cause(CALL, "rcu_barrier_handler", "CPU 0, bash (12)")
    woken = [sent[0]._replace(why="sched_ttwu_pending")]
    assert named(share(VECTOR, vector), woken) == Cause(CALL, "wake-up of a task", "CPU 0, bash (12)")


def test_queued_work_names_only_a_call() -> None:
    sent = [Sent(450, 0, frozenset({HERE}), "bash (12)", why="rcu_barrier_handler")]
    assert named(share(VECTOR, "reschedule"), sent) == Cause(VECTOR, "reschedule", "CPU 0, bash (12)")
    assert named(share(CALL, "do_sync_core"), sent).name == CALLS["do_sync_core"]
    assert named(share(VECTOR, "call_function"), [sent[0]._replace(why="")]).name == "call_function"


def test_a_sender_for_one_purpose_is_not_named_for_another() -> None:
    sent = [Sent(450, 0, frozenset({HERE}), "bash (12)", SHOOTDOWN), Sent(440, 2, frozenset({HERE}), "sshd (3)")]
    assert named(share(CALL, "flush_tlb_func"), sent).by == "CPU 0, bash (12)"
    assert named(share(CALL, "ipi_mb"), sent).by == "CPU 2, sshd (3)"
    assert named(share(VECTOR, "reschedule"), sent).by == "CPU 2, sshd (3)"


def test_a_work_is_named_with_its_worker_and_a_task_with_its_number() -> None:
    assert named(share(WORK, "vmstat_update")) == Cause(WORK, "vmstat_update", "kworker/1:1")
    assert named(share(WORK, "vmstat_update", 8)).by == "kworker/1:0"
    assert named(share(WORK, "blk_mq_run_work_fn", 9)).by == "kworker/1:1H"
    assert named(share(THREAD, "bash", 99)) == Cause(THREAD, "bash", "99")


@pytest.mark.parametrize("kind", [*KINDS, *WAKE_KINDS])
def test_every_kind_of_cause_has_a_display_name(kind: str) -> None:
    assert label(Cause(kind, "something"))


@pytest.mark.parametrize(
    "kind", [HRTIMER, WORK, IRQ, CALL, THREAD, call_nesting.TIMER, call_nesting.SOFTIRQ, call_nesting.NMI]
)
def test_two_causes_of_one_kind_have_two_names(kind: str) -> None:
    assert "first" in label(Cause(kind, "first"))
    assert label(Cause(kind, "first")) != label(Cause(kind, "second"))


def test_the_sender_is_in_the_name() -> None:
    assert "CPU 0, bash (12)" in label(Cause(CALL, "membarrier", "CPU 0, bash (12)"))
    assert "CPU 0, bash (12)" in label(Cause(VECTOR, "reschedule", "CPU 0, bash (12)"))


def test_a_pulled_timer_names_its_cpu() -> None:
    assert label(Cause(call_nesting.PULLED, "neigh_timer_handler", "CPU 3")) == (
        "timer of CPU 3, pulled here: neigh_timer_handler"
    )


def test_firmware_is_claimed_only_of_what_the_processor_counted() -> None:
    names = (attribute.FIRMWARE, attribute.NOT_SMI, attribute.OUTSIDE)
    firmware, no, unknown = (label(Cause(attribute.HOST, name)) for name in names)
    assert "firmware" in firmware
    assert "not an SMI" in no
    assert "not known" in unknown


def test_the_host_and_the_firmware_are_not_the_same() -> None:
    host, firmware = (label(Cause(attribute.HOST, name)) for name in (attribute.HYPERVISOR, attribute.FIRMWARE))
    assert "host" in host
    assert "firmware" in firmware


def test_unprintable_characters_of_a_name_are_shown_as_question_marks() -> None:
    assert label(Cause(THREAD, "a\x1b[2Jb\nc \N{SNOWMAN}", "9")) == "task a?[2Jb?c \N{SNOWMAN} (9)"


@pytest.mark.parametrize("name", VECTORS)
def test_each_vector_has_a_distinct_name(name: str) -> None:
    assert label(Cause(VECTOR, name)) == VECTORS[name] != name


def test_one_that_was_sent_for_another_function_is_not_the_sender() -> None:
    sent = [
        Sent(440, 0, frozenset({HERE}), "bash (12)", FUNCTION, "ipi_mb"),
        Sent(450, 2, frozenset({HERE}), "cron (9)", FUNCTION, "rcu_barrier_handler"),
    ]
    assert named(share(CALL, "ipi_mb"), sent).by == "CPU 0, bash (12)"
    assert named(share(CALL, "remote_function"), sent).by == ""


def test_the_sender_of_a_shootdown_is_known_by_either_of_its_names() -> None:
    sent = [Sent(440, 0, frozenset({HERE}), "bash (12)", FUNCTION, "flush_tlb_func")]
    assert named(share(CALL, "flush_tlb_func"), sent).by == "CPU 0, bash (12)"
    assert named(share(CALL, SHOOTDOWN), sent).by == "CPU 0, bash (12)"


def test_of_several_tasks_that_flushed_for_unknown_targets_none_is_named() -> None:
    one = Sent(450, 0, frozenset({HERE}), "bash (12)", SHOOTDOWN)
    assert named(share(CALL, SHOOTDOWN), [one]).by == "CPU 0, bash (12)"
    assert named(share(CALL, SHOOTDOWN), [one, one._replace(time=440, cpu=2)]).by == "CPU 0, bash (12)"
    assert named(share(CALL, SHOOTDOWN), [one, one._replace(time=440, task="cron (9)")]).by == ""

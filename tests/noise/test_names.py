"""What a cause is called, and who sent an interrupt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import attribute, frames
from quiet.noise.attribute import Cause
from quiet.noise.frames import CALL, HRTIMER, IRQ, THREAD, VECTOR, WORK, Share
from quiet.noise.names import CALLS, VECTORS, Senders, Sent, label, namer
from tests.noise.making import KINDS

HERE = 1
SENT = st.builds(
    Sent, st.integers(0, 20), st.integers(0, 2), st.frozensets(st.integers(0, 2)), st.sampled_from(["a (1)", "b (2)"])
)


def share(kind: str, name: str, pid: int = 7) -> Share:
    return Share(kind, name, 500, 10, 1, pid, "")


def named(some: Share, sent: list[Sent] | None = None) -> Cause:
    return namer(Senders(sent or [], HERE, 100), {7: "kworker/1:1", 99: "bash"}.__getitem__)(some)


@given(st.lists(SENT), st.integers(0, 20), st.integers(0, 20))
def test_the_sender_is_the_last_one_to_this_cpu_in_time(sent: list[Sent], time: int, reach: int) -> None:
    found = Senders(sent, HERE, reach).of(time)
    mine = [e for e in sent if HERE in e.targets and e.cpu != HERE and time - reach <= e.time <= time]
    last = max((each.time for each in mine), default=None)
    if last is None:
        assert found == ""
    else:
        assert found in {f"CPU {each.cpu}, {each.task}" for each in mine if each.time == last}


def test_an_interrupt_from_another_cpu_says_whose() -> None:
    sent = [Sent(450, 0, frozenset({HERE}), "bash (12)")]
    assert named(share(CALL, "do_sync_core"), sent) == Cause(CALL, CALLS["do_sync_core"], "CPU 0, bash (12)")
    assert named(share(VECTOR, "reschedule"), sent).by == "CPU 0, bash (12)"


def test_an_interrupt_that_nobody_sends_has_no_sender() -> None:
    sent = [Sent(450, 0, frozenset({HERE}), "bash (12)")]
    assert named(share(VECTOR, "local_timer"), sent) == Cause(VECTOR, "local_timer")
    assert named(share(IRQ, "27 eth0"), sent) == Cause(IRQ, "27 eth0")


def test_a_work_is_named_with_its_worker_and_a_task_with_its_number() -> None:
    assert named(share(WORK, "vmstat_update")) == Cause(WORK, "vmstat_update", "kworker/1:1")
    assert named(share(THREAD, "bash", 99)) == Cause(THREAD, "bash", "99")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_cause_has_a_name_for_people(kind: str) -> None:
    assert label(Cause(kind, "something"))


@pytest.mark.parametrize("kind", [HRTIMER, WORK, IRQ, CALL, THREAD, frames.TIMER, frames.SOFTIRQ, frames.NMI])
def test_two_causes_of_one_kind_have_two_names(kind: str) -> None:
    assert "first" in label(Cause(kind, "first"))
    assert label(Cause(kind, "first")) != label(Cause(kind, "second"))


def test_the_sender_is_in_the_name() -> None:
    assert "CPU 0, bash (12)" in label(Cause(CALL, "membarrier", "CPU 0, bash (12)"))
    assert "CPU 0, bash (12)" in label(Cause(VECTOR, "reschedule", "CPU 0, bash (12)"))


def test_the_host_and_the_firmware_are_not_the_same() -> None:
    host, firmware = (label(Cause(attribute.HOST, name)) for name in (attribute.HYPERVISOR, attribute.FIRMWARE))
    assert "host" in host
    assert "firmware" in firmware


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_has_a_name_of_its_own(name: str) -> None:
    assert label(Cause(VECTOR, name)) == VECTORS[name] != name

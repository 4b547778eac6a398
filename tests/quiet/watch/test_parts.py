"""The parts of watching: the meaning of the kernel's messages, how often to check, which files to watch."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from quiet import cpulist
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.settings import journal
from quiet.watch import drift, event_sources, inotify, netlink, rate_limit, watched_files
from tests.quiet import kernels
from tests.trees import machine, plant, task


def process(what: int, *numbers: int) -> bytes:
    """A message of the process connector as the kernel sends it."""
    event = struct.pack("=IIQ4I", what, 0, 0, *numbers, *[0] * (4 - len(numbers)))
    return (
        struct.pack("=IHHII", 36 + len(event), 3, 0, 0, 0) + struct.pack("=IIIIHH", 1, 1, 0, 0, len(event), 0) + event
    )


@pytest.mark.parametrize(
    ("message", "tid"),
    [
        (process(0x1, 10, 10, 77, 70), 77),  # a fork: the child's thread
        (process(0x2, 88, 88), 88),  # an execution
        (process(0x200, 99, 99), 99),  # a new name
        (process(0x80000000, 55, 55), 0),  # an end
        (process(0x0, 0), 0),  # the answer to our asking
        (b"short", 0),
    ],
)
def test_a_process_message_names_the_thread_that_is_new(message: bytes, tid: int) -> None:
    assert netlink.started(message) == tid


def test_a_uevent_has_its_action_device_and_subsystem() -> None:
    data = b"bind@/devices/pci0/virtio1\0ACTION=bind\0DEVPATH=/devices/pci0/virtio1\0SUBSYSTEM=virtio\0SEQNUM=7\0"
    assert netlink.uevent(data) == ("bind", "/devices/pci0/virtio1", "virtio")
    assert netlink.uevent(b"libudev\0\xfe\xed") is None


def test_a_cpu_that_comes_or_goes_concerns_every_knob_a_device_only_some() -> None:
    for subsystem, knobs in (("cpu", None), ("virtio", watched_files.rechecked_on("device"))):
        gathered = event_sources.Pending()
        gathered.uevents([netlink.Uevent("online", "/devices/x/cpu3", subsystem)], 1.0)
        assert (gathered.knobs, gathered.by, gathered.renew) == (knobs, "online cpu3", True)


def test_a_changed_device_triggers_no_check() -> None:
    gathered = event_sources.Pending()
    gathered.uevents([netlink.Uevent("change", "/devices/battery", "power_supply")], 1.0)
    assert not gathered.ready


def test_a_new_thread_triggers_a_check_only_if_it_may_run_on_isolated_cpus(tmp_path: Path) -> None:
    files = machine(cpus=4) | task(50, "sh", "0-1") | task(51, "sh", "0-3") | task(52, "kworker/3:1", "3", True, True)
    facts = Facts(Reader(str(plant(tmp_path, files))))
    for tids, knobs in (({50, 52, 999}, set[str]()), ({51}, watched_files.rechecked_on("task"))):
        gathered = event_sources.Pending()
        gathered.processes(tids, 1.0)
        gathered.judge_tasks(facts, cpulist.parse("2-3"))
        assert (gathered.knobs, gathered.tids) == (knobs, set())


def test_a_starting_rival_triggers_a_check_wherever_it_runs(tmp_path: Path) -> None:
    facts = Facts(Reader(str(plant(tmp_path, machine(cpus=4) | task(60, "irqbalance", "0-1")))))
    gathered = event_sources.Pending()
    gathered.processes({60}, 1.0)
    gathered.judge_tasks(facts, cpulist.parse("2-3"))
    assert gathered.knobs
    assert "irqbalance" in gathered.knobs
    assert gathered.first == 1.0, "it has settled before it was judged, and waits no second time"


def test_too_many_notifications_trigger_a_full_check() -> None:
    class Full:
        lost = True

    gathered, source = event_sources.Pending(), Full()
    gathered.lost(source, 1.0)  # type: ignore[arg-type]
    assert (gathered.knobs, source.lost) == (None, False)


def test_full_checks_take_a_fixed_share_however_expensive_they_are() -> None:
    kept = rate_limit.RateLimit(60.0)
    kept.checked(rate_limit.spent() - 0.01, 100.0, True)
    assert kept.whole_at() == pytest.approx(160, abs=5)
    kept.checked(rate_limit.spent() - 1.0, 100.0, True)
    assert kept.whole_at() >= 100 + 1.0 / rate_limit.SHARE


def test_notifications_are_handled_soon_until_there_are_too_many() -> None:
    kept = rate_limit.RateLimit(60.0)
    kept.checked(rate_limit.spent() - 1.0, 100.0, False)
    assert kept.pending_at(100.0) == 100.0 + rate_limit.SETTLE_S
    kept.checked(rate_limit.spent() - rate_limit.BURST_S, 101.0, False)
    assert kept.pending_at(101.0) == pytest.approx(101.0 + 0.8 / rate_limit.BUSY_SHARE, abs=0.5)


def test_a_full_check_follows_a_devices_notification() -> None:
    kept = rate_limit.RateLimit(60.0)
    kept.checked(rate_limit.spent() - 0.001, 100.0, True)
    kept.hurry("bind virtio0")
    assert kept.whole_at() == 100.0 + rate_limit.SOON_S
    assert kept.reason == "a full check after bind virtio0"
    kept.checked(rate_limit.spent() - 0.001, 102.0, True)
    assert kept.whole_at() >= 160
    assert kept.reason == "a full check"


def test_repeated_repairs_wait_longer_and_longer() -> None:
    kept, now, waits = rate_limit.RateLimit(60.0), 1000.0, []
    for _ in range(9):
        kept.repaired(now)
        waits.append(kept.repair_at - now)
        now = kept.repair_at
    assert waits == sorted(waits)
    assert waits[-1] == rate_limit.MOST_S
    kept.repaired(now + 1000)
    assert kept.repair_at - (now + 1000) == rate_limit.FEWEST_S


def test_a_file_notifies_when_it_is_written_and_is_forgotten_when_it_is_removed(tmp_path: Path) -> None:
    reader = Reader(str(plant(tmp_path, {"proc/a": "1", "sys/b": "1"})))
    files = inotify.Inotify(reader)
    for path in ("/proc/a", "/sys/b", "/sys/absent", "/proc/a"):
        files.add(path)
    assert len(files) == 2
    (tmp_path / "proc/a").write_text("2")
    assert {path for path, _ in files.read()} == {"/proc/a"}
    (tmp_path / "sys/b").unlink()
    assert ("/sys/b", "") in files.read()
    assert len(files) == 1
    files.close()


def test_an_overflow_of_the_queue_is_noticed(tmp_path: Path) -> None:
    files = inotify.Inotify(Reader(str(plant(tmp_path, {"a": "1", "b": "1"}))))
    files.add("/a")
    files.add("/b")
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with (tmp_path / "a").open("wb", 0) as one, (tmp_path / "b").open("wb", 0) as other:
        for _ in range(most // 2 + 1):  # equal notifications in a row are merged
            one.write(b"1")
            other.write(b"1")
    assert len(files.read()) == most
    assert files.lost
    files.close()


def test_watching_leaves_no_file_open(tmp_path: Path) -> None:
    reader = Reader(str(plant(tmp_path, {f"proc/{n}": "1" for n in range(20)})))
    assert reader.exists("/proc/0")  # from then on it keeps the tree open
    before = len(os.listdir("/proc/self/fd"))
    files = inotify.Inotify(reader)
    for n in range(20):
        files.add(f"/proc/{n}")
    files.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_every_file_of_the_profile_notifies(tmp_path: Path) -> None:
    from quiet.settings import apply

    host, wanted = Host(str(kernels.tree(tmp_path / "tree"))), kernels.profile()
    apply.apply(host, wanted)
    record = journal.load(host)
    assert record
    facts = Facts(host)
    found = watched_files.files(
        host, [*watched_files.targets(wanted, record, facts), *watched_files.interrupts(wanted, facts)]
    )
    assert found["/sys/kernel/mm/ksm/run"] == {"ksm"}
    assert found["/proc/irq/1/smp_affinity"] == found["/proc/irq/1/smp_affinity_list"] == {"irq"}
    assert "workqueue" in found["/sys/devices/virtual/workqueue/cpumask"]
    assert found["/sys/devices/system/cpu/cpu3/online"] >= {watched_files.CPUS}


def test_a_cpu_of_the_profile_that_is_off_is_drift(tmp_path: Path) -> None:
    from quiet.settings import apply

    host, wanted = Host(str(kernels.tree(tmp_path / "tree"))), kernels.profile("ksm")
    apply.apply(host, wanted)
    record = journal.load(host)
    assert record
    plant(Path(host.root), {"sys/devices/system/cpu/online": "0-2", "sys/devices/system/cpu/cpu3/online": "0"})
    (change,) = drift.check(host, wanted, record, Facts(host), None)
    assert (change.knob, change.target) == (watched_files.CPUS, "file:/sys/devices/system/cpu/cpu3/online")

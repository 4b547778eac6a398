"""A separate trace instance: set up on only these CPUs, and always removed. On trees of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.noise import tracefs
from quiet.noise.events import EventType
from quiet.noise.tracefs import Instance, NoTraceError
from tests.quiet.noise.tracing import MOUNT, NUMBERS, Tracefs, page
from tests.trees import plant

KINDS = (
    EventType("irq", "irq_handler_entry", ("irq",), lambda *_: None),
    EventType("csd", "csd_function_entry", ("func",), lambda *_: None),  # not of this kernel
    EventType("sched", "sched_switch", ("next_pid",), lambda *_: None),
)
STARTED = {1234: "555", os.getpid(): "777"}


@pytest.fixture
def host(tmp_path: Path) -> Tracefs:
    stats = {f"proc/{pid}/stat": f"{pid} (a) name)) S {' '.join(['0'] * 18)} {when} 0" for pid, when in STARTED.items()}
    plant(tmp_path, {f"{MOUNT}/instances/": "", **stats})
    return Tracefs(str(tmp_path))


def instances(host: Host) -> list[str]:
    return host.names(f"/{MOUNT}/instances")


def instance(host: Host, role: str = "cpus") -> Instance:
    return Instance(host, frozenset({1, 3}), KINDS, 512, role)


@pytest.mark.parametrize("place", tracefs.PLACES)
def test_tracefs_is_found_where_it_is_mounted(tmp_path: Path, place: str) -> None:
    plant(tmp_path, {"sys/kernel/tracing/": "", "sys/kernel/debug/": "", f"{place}/instances/": ""})
    assert tracefs.mount(Reader(str(tmp_path))) == place


def test_if_tracefs_is_not_mounted_the_reason_says_how_to_mount_it(tmp_path: Path) -> None:
    plant(tmp_path, {"sys/kernel/tracing/": ""})
    with pytest.raises(NoTraceError, match="mount -t tracefs"):
        tracefs.check(Reader(str(tmp_path)))


def test_a_kernel_without_tracing_is_reported(tmp_path: Path) -> None:
    plant(tmp_path, {"sys/kernel/": ""})
    with pytest.raises(NoTraceError, match="no tracing"):
        tracefs.check(Reader(str(tmp_path)))


def test_a_mounted_tracefs_can_be_used(host: Tracefs) -> None:
    tracefs.check(host)


def test_an_instance_is_set_up_for_its_cpus_before_anything_is_traced(host: Tracefs) -> None:
    with instance(host) as trace:
        assert len(instances(host)) == 1
        found = {
            name: host.text(f"{trace.path}/{name}")
            for name in ("tracing_on", "options/overwrite", "tracing_cpumask", "trace_clock")
        }
        assert found == {
            "tracing_on": "0",
            "options/overwrite": "0",
            "tracing_cpumask": "a",
            "trace_clock": "local global counter uptime perf mono mono_raw boot [x86-tsc]",
        }
        sizes = [host.text(f"{trace.path}/per_cpu/cpu{cpu}/buffer_size_kb") for cpu in range(4)]
        assert sizes == ["7", "512", "7", "512"]
        enabled = [host.text(f"{trace.path}/events/{kind.system}/{kind.name}/enable") for kind in KINDS]
        assert enabled == ["1", None, "1"]
        assert {number: kind.name for number, (kind, _) in trace.kinds.items()} == {
            NUMBERS["irq/irq_handler_entry"]: "irq_handler_entry",
            NUMBERS["sched/sched_switch"]: "sched_switch",
        }


def test_an_instance_traces_between_on_and_off(host: Tracefs) -> None:
    with instance(host) as trace:
        trace.on()
        assert host.text(f"{trace.path}/tracing_on") == "1"
        trace.off()
        assert host.text(f"{trace.path}/tracing_on") == "0"


def test_an_instance_is_removed_even_after_an_error(host: Tracefs) -> None:
    with instance(host):
        pass
    assert instances(host) == []

    def fail() -> None:
        with instance(host):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert instances(host) == []


def test_two_instances_of_one_owner_are_separate(host: Tracefs) -> None:
    with instance(host), instance(host, "senders"):
        assert len(instances(host)) == 2
    assert instances(host) == []


@pytest.mark.parametrize(
    "broken", ["tracing_on", "tracing_cpumask", "options/overwrite", "per_cpu/cpu3/buffer_size_kb"]
)
def test_an_instance_that_cannot_be_set_up_is_removed_and_reported(host: Tracefs, broken: str) -> None:
    host.broken = broken
    with pytest.raises(NoTraceError, match="cannot be set up"):
        instance(host).__enter__()
    assert instances(host) == []


def test_without_an_instances_folder_there_is_no_instance(tmp_path: Path) -> None:
    plant(tmp_path, {f"{MOUNT}/instances": "a file"})
    with pytest.raises(NoTraceError, match="no trace instance"):
        instance(Host(str(tmp_path))).__enter__()


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [("[local] mono_raw x86-tsc", "x86-tsc"), ("local [x86-tsc]", "x86-tsc"), ("[mono_raw] local", "mono_raw")],
)
def test_the_clock_is_the_detectors_own_where_the_kernel_has_it(host: Tracefs, offered: str, chosen: str) -> None:
    host.clocks = offered
    with instance(host) as trace:
        assert trace.clock == chosen
        assert f"[{chosen}]" in (host.text(f"{trace.path}/trace_clock") or "")


def test_without_a_clock_that_the_detector_reads_there_is_no_tracing(host: Tracefs) -> None:
    host.clocks = "[local] global mono boot"
    with pytest.raises(NoTraceError, match="clock"):
        instance(host).__enter__()
    assert instances(host) == []


def test_lost_events_are_counted(host: Tracefs) -> None:
    with instance(host) as trace:
        assert trace.lost(1) == 0
        plant(Path(host.root), {f"{trace.path}/per_cpu/cpu1/stats": "entries: 9\noverrun: 30\ndropped events: 12"})
        assert trace.lost(1) == 42


def test_pages_are_complete_and_in_order(host: Tracefs) -> None:
    size = os.sysconf("SC_PAGE_SIZE")
    with instance(host) as trace:
        Path(host.root + f"{trace.path}/per_cpu/cpu1/trace_pipe_raw").write_bytes(b"a" * size + b"b" * size)
        assert list(trace.pages(1)) == [b"a" * size, b"b" * size]


@pytest.mark.parametrize(
    ("name", "goes"),
    [
        ("quiet-noise.4321.999.cpus", True),  # there is no such process
        ("quiet-noise.1234.554.senders", True),  # its number belongs to another one now
        ("quiet-noise.1234.555.cpus", False),  # it runs
        ("mine", False),
        ("quiet-noise", False),
        ("quiet-noise.abc.1.cpus", False),
        ("quiet-noise2.4321.999.cpus", False),
    ],
)
def test_only_leftovers_of_a_killed_process_are_removed(host: Tracefs, name: str, goes: bool) -> None:
    plant(Path(host.root), {f"{MOUNT}/instances/{name}/": ""})
    assert tracefs.remove_left_over(host) == [name] * goes
    assert instances(host) == [name] * (not goes)


def test_the_own_instance_is_not_a_leftover(host: Tracefs) -> None:
    with instance(host):
        assert tracefs.remove_left_over(host) == []
        assert len(instances(host)) == 1


def test_without_tracing_there_are_no_leftovers(tmp_path: Path) -> None:
    assert tracefs.remove_left_over(Host(str(tmp_path))) == []


def test_of_drained_pages_only_those_that_are_wanted_are_kept(host: Tracefs) -> None:
    with instance(host) as trace:
        file = Path(f"{host.root}{trace.path}/per_cpu/cpu1/trace_pipe_raw")
        file.write_bytes(b"".join(page(stamp, []) for stamp in (100, 200, 300)))
        trace.drain()
        file.write_bytes(b"")
        spans: list[tuple[int, int]] = []
        trace.keep(lambda begin, end: bool(spans.append((begin, end))) or begin != 200)
        assert [begin for begin, _ in spans] == [100, 200, 300]
        assert [end for _, end in spans[:2]] == [200, 300]
        assert spans[2][1] > 1 << 63
        assert trace.waiting == 2 * 16
        assert len(list(trace.pages(1))) == 2
        assert trace.waiting == 0

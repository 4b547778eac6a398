"""Firmware and hardware are proved with interrupts off, by the kernel's tracer, whose options are written back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quiet.cli import json_output
from quiet.errors import Refused
from quiet.noise import prove, report, table
from quiet.noise.budgets import NONE, Nanoseconds
from quiet.noise.prove import NO_CPUS, NO_TRACER, CpuProof, Proof
from quiet.targets.value_types import CHOICE, plain
from tests.quiet.commands import Quiet
from tests.quiet.noise.making import measured
from tests.quiet.noise.tracing import MOUNT, Tracefs
from tests.trees import plant

OPTIONS = {
    f"{MOUNT}/available_tracers": "timerlat osnoise hwlat blk function nop",
    f"{MOUNT}/current_tracer": "nop",
    f"{MOUNT}/tracing_thresh": "0",
    f"{MOUNT}/hwlat_detector/mode": "none [round-robin] per-cpu",
    f"{MOUNT}/hwlat_detector/window": "1000000",
    f"{MOUNT}/hwlat_detector/width": "500000",
    f"{MOUNT}/instances/": "",
    "proc/self/stat": "",
}
RECORD = "/run/quiet/hwlat.json"
TRACE = """\
# tracer: hwlat
#
           <...>-1729  [001] d....   678.473449: #1     inner/outer(us):   11/12    ts:1581527483.343962693 count:6
           <...>-1729  [001] d....   678.573449: #2     inner/outer(us):    9/152   ts:1581527483.443962693 count:1 \
nmi-total:7 nmi-count:2
           <...>-1729  [001] d....   678.673449: #3     inner/outer(us):    3/0     ts:1581527483.543962693
"""


class Kernel(Tracefs):
    """A tree in which the instance has the tracer too, and CPU 1 a trace; the writes are kept in order."""

    clocks = "[local] x86-tsc"
    written: list[tuple[str, str]]

    def mkdir(self, path: str) -> None:
        super().mkdir(path)
        plant(Path(self.root + path), {"current_tracer": "nop", "per_cpu/cpu1/trace": TRACE})

    def write(self, path: str, value: str) -> None:
        super().write(path, value)
        if "hwlat" in path or path.endswith(("tracing_thresh", "current_tracer")):
            self.written.append((path.removeprefix(f"/{MOUNT}/").rpartition("/instances/")[2], value))


def kernel(root: Path, **files: str) -> Kernel:
    made = Kernel(str(plant(root, {**OPTIONS, **{f"{MOUNT}/{name}": text for name, text in files.items()}})))
    made.written = []
    return made


def options(host: Kernel) -> list[str]:
    texts = (host.text(f"/{MOUNT}/hwlat_detector/{name}") or "" for name in ("mode", "window", "width"))
    return [plain(CHOICE, text) for text in texts]


def test_the_gaps_of_the_trace_are_counted_and_the_options_written_back(tmp_path: Path) -> None:
    host = kernel(tmp_path)
    during: list[object] = []
    found = prove.prove(host, frozenset({0, 1}), 10, wait=lambda _: during.append(options(host)))
    assert during == [["per-cpu", "100000", "50000"]]
    assert options(host) == ["round-robin", "1000000", "500000"]
    assert host.text(f"/{MOUNT}/tracing_thresh") == "0"
    assert host.names(f"/{MOUNT}/instances") == []
    assert (found.off_s, found.why) == (5, "")
    assert found.cpus == {0: CpuProof(0, Nanoseconds(0), 0, None), 1: CpuProof(8, Nanoseconds(152_000), 2, None)}


def test_the_width_is_never_longer_than_the_window(tmp_path: Path) -> None:
    host = kernel(tmp_path)
    prove.prove(host, frozenset({1}), 10, wait=lambda _: None)
    names = [name.rpartition("/")[2] for name, _ in host.written]
    assert names.index("width") < names.index("window")
    assert names[::-1].index("width") < names[::-1].index("window")


def test_the_options_are_written_back_when_it_is_ended(tmp_path: Path) -> None:
    host = kernel(tmp_path)

    def ended(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prove.prove(host, frozenset({1}), 10, wait=ended)
    assert options(host) == ["round-robin", "1000000", "500000"]
    assert host.names(f"/{MOUNT}/instances") == []


def test_options_left_by_a_killed_proof_are_restored_but_not_those_of_one_that_runs(tmp_path: Path) -> None:
    """The record of a proof is written again after its end, as a killed one would have left it."""
    host = kernel(tmp_path)
    records: list[str] = []
    prove.prove(host, frozenset({1}), 10, wait=lambda _: records.append(host.text(RECORD) or ""))
    assert not host.exists(RECORD)
    pid, started, before = json.loads(records[0])
    assert before["hwlat_detector/window"] == "1000000"
    for owner, restored in (([pid, started], False), ([pid, "1"], True)):
        plant(tmp_path, {f"{MOUNT}/hwlat_detector/window": "100000", f"{MOUNT}/hwlat_detector/width": "50000"})
        host.create(RECORD, json.dumps([*owner, before]))
        assert prove.recover(host) == ""
        assert (options(host)[1:] == ["1000000", "500000"], host.exists(RECORD)) == (restored, not restored)


def test_options_that_cannot_be_restored_are_reported_and_forgotten_only_where_they_no_longer_exist(
    tmp_path: Path,
) -> None:
    before = {
        "tracing_thresh": "0",
        "hwlat_detector/mode": "none",
        "hwlat_detector/window": "1",
        "hwlat_detector/width": "1",
    }
    record = json.dumps(["4321", "1", before])
    busy = kernel(tmp_path / "a", current_tracer="timerlat")
    plant(Path(busy.root), {RECORD[1:]: record})
    assert "not restored: the tracer 'timerlat' is in use" in prove.recover(busy)
    assert busy.exists(RECORD)
    assert busy.written == []
    other = kernel(tmp_path / "b", available_tracers="function nop")
    plant(Path(other.root), {RECORD[1:]: record})
    assert prove.recover(other) == ""
    assert not other.exists(RECORD)


@pytest.mark.parametrize("text", ["", "{", "null", "5", "[1, 2]", "[1, 2, 3]", '["1", "2", {}]', '"abc"'])
def test_a_damaged_record_is_reported_and_left(tmp_path: Path, text: str) -> None:
    host = kernel(tmp_path)
    plant(tmp_path, {RECORD[1:]: text})
    assert prove.recover(host) == f"{RECORD} is damaged: remove it"
    assert host.exists(RECORD)


@pytest.mark.parametrize("place", ["", "instances/rtla/"])
def test_a_tracer_that_is_in_use_is_left_alone(tmp_path: Path, place: str) -> None:
    host = kernel(tmp_path, **{f"{place}current_tracer": "timerlat"})
    with pytest.raises(Refused, match="the tracer 'timerlat' is in use"):
        prove.check(host)
    assert "the tracer 'timerlat' is in use" in prove.prove(host, frozenset({1}), 10, wait=lambda _: None).why
    assert host.written == []


def test_a_kernel_without_the_tracer_proves_nothing_and_says_why(tmp_path: Path) -> None:
    assert prove.prove(kernel(tmp_path / "a", available_tracers="function nop"), frozenset({1}), 10).why == NO_TRACER
    older = kernel(tmp_path / "b", **{"hwlat_detector/mode": ""})
    assert prove.prove(older, frozenset({1}), 10).why == NO_CPUS
    bare = Tracefs(str(plant(tmp_path / "c", {"proc/version": "Linux"})))
    assert prove.prove(bare, frozenset({1}), 10).why


def said(proof: Proof, virtual: str = "") -> str:
    return "\n".join(table.lines(report.make(measured(virtual=virtual), NONE, {}, proof)))


def test_proven_gaps_are_reported() -> None:
    cpus = {1: CpuProof(8, Nanoseconds(152_000), 2, 3), 2: CpuProof(0, Nanoseconds(0), 0, None)}
    proof = Proof(10, 5, Nanoseconds(1_000), cpus)
    text = said(proof)
    assert "with interrupts off for 5 s (hwlat), gaps of 1.00 us or more:" in text
    assert "CPU 1: 8, longest 152 us, 2 NMIs among them: the firmware or the hardware took the CPU; 3 SMIs were" in text
    assert "CPU 2: none" in text
    assert "the hypervisor, the firmware" in said(proof, "hypervisor")
    assert "--prove: nothing was measured with interrupts off: no tracer" in said(
        Proof(10, 0, Nanoseconds(0), {}, "no tracer")
    )
    shape = json.loads(json.dumps(json_output.to_object(report.make(measured(), NONE, {}, proof))))["proof"]
    assert shape["cpus"]["1"] == {"gaps": 8, "max_ns": 152_000, "nmis": 2, "smis": 3}


@pytest.mark.parametrize("value", ["0", "abc", "0.5", "3601", ""])
def test_a_wrong_duration_is_reported_in_one_line(quiet: Quiet, value: str) -> None:
    done = quiet("noise", "--cpus", "0", "--prove", value)
    assert done.code == 2
    assert "--prove" in done.err

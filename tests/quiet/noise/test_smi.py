"""The count of SMIs: from whichever of its sources there is, or none with the reason."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from quiet.host import perf
from quiet.host.reader import Reader
from quiet.noise import smi
from quiet.noise.smi import MSR_SMI_COUNT, SmiCounter
from tests.trees import plant

CPUS = frozenset({0, 3})
PMU = "sys/bus/event_source/devices/msr"
PMU_FILES = {f"{PMU}/type": "9", f"{PMU}/events/smi": "event=0x04"}
ZEN = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: fpu sse svm\n"


class FakeCounter:
    """Stands for perf_event_open(2): counts 7 on CPU 0 and 8 on CPU 3; `permitted` types only."""

    permitted: tuple[int, ...] = ()
    opened: list[tuple[int, int, int]]

    def __init__(self, kind: int, config: int, *, cpu: int) -> None:
        if kind not in self.permitted:
            raise PermissionError(1, "Operation not permitted")
        self.opened.append((kind, config, cpu))
        self._cpu = cpu

    def read(self) -> float:
        return 7.0 + (self._cpu == 3)

    def close(self) -> None:
        self.opened.remove(next(each for each in self.opened if each[2] == self._cpu))


@pytest.fixture(autouse=True)
def counters(monkeypatch: pytest.MonkeyPatch) -> type[FakeCounter]:
    monkeypatch.setattr(FakeCounter, "opened", [], raising=False)
    monkeypatch.setattr(FakeCounter, "permitted", ())
    monkeypatch.setattr(smi, "PerfCounter", FakeCounter)
    return FakeCounter


def counter(root: Path, files: dict[str, str]) -> SmiCounter:
    return SmiCounter(Reader(str(plant(root, {"proc/version": "Linux", **files}))), CPUS)


def test_the_register_comes_first_and_only_cpus_that_have_it_count(tmp_path: Path) -> None:
    plant(tmp_path, {"dev/cpu/3/": ""})
    (tmp_path / "dev/cpu/3/msr").write_bytes(bytes(MSR_SMI_COUNT) + struct.pack("<Q", 42))
    with counter(tmp_path, PMU_FILES) as found:
        assert found.read() == {3: 42}
        assert found.source == "MSR_SMI_COUNT"


def test_without_the_register_the_kernels_pmu_counts(tmp_path: Path, counters: type[FakeCounter]) -> None:
    counters.permitted = (9,)
    with counter(tmp_path, PMU_FILES) as found:
        assert counters.opened == [(9, 4, 0), (9, 4, 3)]
        assert found.read() == {0: 7, 3: 8}
        assert found.source == "PMU msr/smi/"
    assert counters.opened == []


def test_amds_core_counts_them_from_zen_on(tmp_path: Path, counters: type[FakeCounter]) -> None:
    counters.permitted = (perf.RAW,)
    with counter(tmp_path, {**PMU_FILES, "proc/cpuinfo": ZEN}) as found:
        assert counters.opened[0] == (perf.RAW, 0x2B, 0)
        assert found.source == "PMU event ls_smi_rx"


def test_a_counter_that_programs_may_need_is_left_to_them(tmp_path: Path, counters: type[FakeCounter]) -> None:
    counters.permitted = (perf.RAW,)
    plant(tmp_path, {"proc/cpuinfo": ZEN})
    assert SmiCounter(Reader(str(tmp_path)), CPUS, core=False).source.startswith("not known")


@pytest.mark.parametrize(
    "cpuinfo",
    [
        ZEN.replace("25", "21"),
        ZEN.replace("AuthenticAMD", "GenuineIntel"),
        ZEN.replace("fpu", "fpu hypervisor"),
        "",
    ],
)
def test_another_processor_and_a_guest_have_no_such_event(
    tmp_path: Path, counters: type[FakeCounter], cpuinfo: str
) -> None:
    counters.permitted = (perf.RAW,)
    found = counter(tmp_path, {"proc/cpuinfo": cpuinfo})
    assert (found.source.startswith("not known"), found.read()) == (True, {})


def test_uncountable_smis_are_unknown_and_not_zero(tmp_path: Path) -> None:
    found = counter(tmp_path, PMU_FILES)
    assert found.read() == {}
    assert found.source.startswith("not known: ")

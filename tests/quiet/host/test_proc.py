"""The parsers of /proc."""

from __future__ import annotations

from pathlib import Path

from quiet.host import proc
from quiet.host.reader import Reader
from tests.trees import plant

STAT = "812 (a) b (c) R 1 812 812 0 -1 4194560 " + " ".join(str(n) for n in range(7, 50))


def test_a_mount_has_a_path_a_type_and_options(tmp_path: Path) -> None:
    text = "proc /proc proc rw,nosuid 0 0\nshort line\nsysfs /sys sysfs ro 0 0"
    found = proc.mounts(Reader(str(plant(tmp_path, {"proc/mounts": text}))))
    assert found == [("/proc", "proc", ("rw", "nosuid")), ("/sys", "sysfs", ("ro",))]


def test_version_2_is_preferred_when_it_has_the_cpuset_controller(tmp_path: Path) -> None:
    text = "c /v1 cgroup rw,cpuset 0 0\nc /v2 cgroup2 rw 0 0"
    reader = Reader(str(plant(tmp_path, {"proc/mounts": text, "v2/cgroup.controllers": "cpu"})))
    assert proc.cpuset_mount(reader) == (1, "/v1")
    plant(tmp_path, {"v2/cgroup.controllers": "cpu cpuset"})
    assert proc.cpuset_mount(reader) == (2, "/v2")


def test_a_name_with_parentheses_does_not_shift_the_fields_of_stat(tmp_path: Path) -> None:
    assert proc.stat_fields(STAT)[proc.STATE] == "R"
    assert proc.stat_fields(None) == []
    reader = Reader(str(plant(tmp_path, {"proc/812/stat": STAT, "proc/813/stat": "813 (x) R 1"})))
    assert proc.start_time(reader, 812) == proc.stat_fields(STAT)[19]
    assert proc.start_time(reader, 813) is None


def test_a_field_of_status_by_its_whole_name() -> None:
    text = "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n"
    assert proc.status_field(text, "Cpus_allowed_list") == "0-3"
    assert proc.status_field(text, "Cpus_allowed") == "f"
    assert proc.status_field(text, "PPid") is None
    assert proc.status_field(None, "PPid") is None


def test_meminfo_and_the_ticks_of_cpus(tmp_path: Path) -> None:
    reader = Reader(str(plant(tmp_path, {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   7 kB"})))
    assert proc.meminfo(reader, "MemAvailable") == 7
    assert proc.meminfo(reader, "Hugepagesize") == 0
    assert proc.cpu_ticks("cpu  3 4\ncpu0 1 2\ncpu1 2 x\nintr 5") == {"cpu": [3, 4], "cpu0": [1, 2]}

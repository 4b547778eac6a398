"""The slice of the isolated CPUs: made in one go, kept while a container is in it, gone without a trace."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quiet.host.host import Host
from quiet.targets import registry
from quiet.targets.own_slice import NO_UNIT, NOT_STARTED
from tests.trees import machine, plant

UNIT, SLICE = "run/systemd/system/quiet.slice", "sys/fs/cgroup/quiet.slice"
CPUS, MEMS = "own-slice:quiet.slice/AllowedCPUs", "own-slice:quiet.slice/AllowedMemoryNodes"


class Systemd(Host):
    """A tree in which systemctl does what systemd does with this slice."""

    live = True

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.asked: list[str] = []

    def systemctl(self, *args: str) -> str:
        """Start makes the cgroup with the unit's CPUs, stop removes it."""
        self.asked.append(" ".join(args))
        folder = Path(self.root, SLICE)
        if args[0] == "start":
            folder.mkdir(exist_ok=True)
            unit = Path(self.root, UNIT).read_text()
            (folder / "cpuset.cpus").write_text(unit.partition("AllowedCPUs=")[2].partition("\n")[0])
            (folder / "cpuset.mems").write_text("")
            (folder / "cgroup.procs").write_text("")
        elif args[0] == "stop":
            if not folder.exists():
                raise OSError("Unit quiet.slice not loaded")
            shutil.rmtree(folder)
        return ""


@pytest.fixture
def host(tmp_path: Path) -> Systemd:
    return Systemd(plant(tmp_path, machine() | {"run/systemd/system/": ""}))


def test_the_slice_and_its_cpus_are_made_with_one_reload(host: Systemd) -> None:
    registry.put_many(host, [("own-slice:quiet.slice", "present"), (CPUS, "2-3")])
    assert host.asked == ["daemon-reload", "start quiet.slice"]
    assert registry.get(host, "own-slice:quiet.slice") == "present"
    assert registry.get(host, CPUS) == "2-3"
    assert registry.get(host, MEMS) is None


def test_a_further_property_keeps_the_others_and_is_written_to_the_live_cgroup(host: Systemd) -> None:
    registry.put_many(host, [("own-slice:quiet.slice", "present"), (CPUS, "2-3")])
    registry.put(host, MEMS, "1")
    assert (registry.get(host, CPUS), registry.get(host, MEMS)) == ("2-3", "1")
    assert host.text(f"/{SLICE}/cpuset.mems") == "1"


def test_a_live_value_that_another_program_changed_is_shown(host: Systemd) -> None:
    registry.put_many(host, [("own-slice:quiet.slice", "present"), (CPUS, "2-3")])
    Path(host.root, SLICE, "cpuset.cpus").write_text("3")
    assert registry.get(host, CPUS) == "3, not 2-3"


def test_nothing_is_left_of_it(host: Systemd) -> None:
    registry.put_many(host, [("own-slice:quiet.slice", "present"), (CPUS, "2-3")])
    registry.put(host, CPUS, None)
    registry.put(host, "own-slice:quiet.slice", None)
    assert not host.exists(f"/{UNIT}")
    assert not host.exists(f"/{SLICE}")
    assert host.asked[-2:] == ["stop quiet.slice", "daemon-reload"]


@pytest.mark.parametrize(("unit", "cgroup", "found"), [(True, False, NOT_STARTED), (False, True, NO_UNIT)])
def test_a_half_created_slice_is_not_treated_as_absent_and_is_removed(
    host: Systemd, unit: bool, cgroup: bool, found: str
) -> None:
    registry.put_many(host, [("own-slice:quiet.slice", "present"), (CPUS, "2-3")])
    if not cgroup:
        shutil.rmtree(Path(host.root, SLICE))
    if not unit:
        Path(host.root, UNIT).unlink()
    assert registry.get(host, "own-slice:quiet.slice") == found
    registry.put(host, "own-slice:quiet.slice", None)
    assert registry.get(host, "own-slice:quiet.slice") is None
    assert not host.exists(f"/{UNIT}")
    assert not host.exists(f"/{SLICE}")


def test_a_slice_that_others_had_started_keeps_its_cgroup(host: Systemd) -> None:
    Path(host.root, SLICE).mkdir()
    before = registry.get(host, "own-slice:quiet.slice")
    registry.put_many(host, [("own-slice:quiet.slice", "present"), (CPUS, "2-3")])
    registry.put(host, "own-slice:quiet.slice", before)
    assert registry.get(host, "own-slice:quiet.slice") == before == NO_UNIT
    assert host.exists(f"/{SLICE}")


def test_a_slice_with_a_running_container_is_kept_and_the_container_is_named(host: Systemd) -> None:
    registry.put_many(host, [("own-slice:quiet.slice", "present"), (CPUS, "2-3")])
    plant(
        Path(host.root),
        {f"{SLICE}/libpod-7.scope/container/cgroup.procs": "812", f"{SLICE}/libpod-7.scope/cgroup.procs": ""},
    )
    with pytest.raises(OSError, match=r"the slice contains libpod-7\.scope"):
        registry.put(host, "own-slice:quiet.slice", None)
    assert host.exists(f"/{UNIT}")

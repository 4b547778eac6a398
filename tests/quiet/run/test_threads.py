"""Which commands get a balanced partition, and the message about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet import cpulist
from quiet.errors import UsageError
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.run.threads import RunProfile, check_mems, profile_for_run
from quiet.settings.profile import check
from tests.trees import machine, plant


def chosen(
    folder: Path,
    threads: bool | None = None,
    pinned: str = "",
    mems: str | None = None,
    cpus: str = "2-3",
    boot: str = "",
    cpuset: str = "quiet",
) -> RunProfile:
    files = machine(nodes=2) | {"sys/devices/system/cpu/isolated": boot}
    profile = check({"name": "mine", "knobs": {"cpuset": cpuset}}, "profile mine", "mine")
    return profile_for_run(
        profile, threads, pinned, mems, cpulist.parse(cpus), Facts(Reader(str(plant(folder, files))))
    )


def test_an_unpinned_command_gets_all_isolated_cpus_and_this_is_reported(tmp_path: Path) -> None:
    found = chosen(tmp_path)
    assert found.profile.knobs["cpuset"] == "balanced"
    assert "threads may use all of CPUs 2-3" in found.note


def test_one_isolated_cpu_needs_no_balancing_and_no_message(tmp_path: Path) -> None:
    found = chosen(tmp_path, cpus="3")
    assert (found.profile.knobs["cpuset"], found.note) == ("quiet", "")


def test_a_command_that_pins_itself_keeps_the_isolated_partition(tmp_path: Path) -> None:
    found = chosen(tmp_path, pinned="/usr/bin/taskset")
    assert found.profile.knobs["cpuset"] == "quiet"
    assert "because taskset pins its tasks" in found.note
    assert chosen(tmp_path, pinned="taskset", threads=True).profile.knobs["cpuset"] == "balanced"
    changed = chosen(tmp_path, pinned="taskset", cpuset="balanced")
    assert changed.profile.knobs["cpuset"] == "quiet"
    assert "taskset pins" in changed.note


def test_no_threads_keeps_the_isolated_partition(tmp_path: Path) -> None:
    assert chosen(tmp_path, threads=False, cpuset="balanced").profile.knobs["cpuset"] == "quiet"
    assert chosen(tmp_path, threads=False, cpuset="leave").profile.knobs["cpuset"] == "leave"


def test_an_already_balanced_profile_needs_no_message(tmp_path: Path) -> None:
    found = chosen(tmp_path, cpuset="balanced")
    assert (found.profile.knobs["cpuset"], found.note) == ("balanced", "")


def test_missing_balancing_of_boot_isolated_cpus_is_reported(tmp_path: Path) -> None:
    found = chosen(tmp_path, boot="2-3")
    assert found.profile.knobs["cpuset"] == "quiet"
    assert "isolcpus=domain" in found.note
    assert chosen(tmp_path, boot="2-3", pinned="taskset").note == ""


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"cpus": "3"}, "only CPU 3 is isolated"),
        ({"boot": "2-3"}, "isolcpus=domain at boot"),
        ({"cpuset": "leave"}, 'sets cpuset = "leave"'),
    ],
)
def test_threads_that_are_impossible_are_refused(tmp_path: Path, case: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        chosen(tmp_path, threads=True, **case)


def test_mems_takes_precedence_over_the_profile(tmp_path: Path) -> None:
    assert chosen(tmp_path, mems="auto").profile.knobs["cpuset.mems"] == "quiet"
    assert chosen(tmp_path, mems="leave").profile.knobs["cpuset.mems"] == "leave"
    assert chosen(tmp_path, mems="0").profile.knobs["cpuset.mems"] == "0"
    assert "cpuset.mems" not in chosen(tmp_path).profile.knobs
    with pytest.raises(UsageError, match="no memory on node 7"):
        chosen(tmp_path, mems="0,7")


@pytest.mark.parametrize("text", ["", "some", "0-", "-1"])
def test_a_wrong_list_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--mems"):
        check_mems(text)

"""Shared caches decide which cores are isolated together, and how a split choice is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet import cpulist
from quiet.host.reader import Reader
from quiet.machine import sharing
from quiet.machine.cpu_selection import CpuPartition, choose
from quiet.machine.facts import Facts
from tests.trees import CPU, machine, nic, plant


def pick(root: Path, files: dict[str, str], max_cores: int = 4) -> CpuPartition:
    return choose(Facts(Reader(str(plant(root, files)))), "auto", "siblings", max_cores, "--cpus")


def caches(level: int, *domains: str) -> dict[str, str]:
    """The files of one cache that the CPUs of each domain share; its index is its level, as x86 and arm64 have it."""
    files = {}
    for domain in domains:
        for cpu in cpulist.parse(domain):
            base = f"{CPU}/cpu{cpu}/cache/index{level}"
            files |= {f"{base}/level": str(level), f"{base}/shared_cpu_list": domain}
    return files


def clusters(*domains: str) -> dict[str, str]:
    return {f"{CPU}/cpu{cpu}/topology/cluster_cpus_list": each for each in domains for cpu in cpulist.parse(each)}


def test_a_whole_l3_cache_that_fits_is_preferred_to_halves_of_two(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=16) | caches(3, "0-3", "4-7", "8-13", "14-15"))
    assert found.isolated == {4, 5, 6, 7}
    assert found.why == "4 whole physical cores on the only NUMA node, away from CPU 0"


def test_within_an_l3_cache_that_is_too_large_whole_modules_are_taken(tmp_path: Path) -> None:
    modules = caches(2, "0-1", "2-3", "4-6", "7", "8-9", "10-11")
    found = pick(tmp_path, machine(cpus=12) | caches(3, "0-11") | modules, max_cores=3)
    assert found.isolated == {4, 5, 6}
    assert found.why.endswith("away from CPU 0; they share an L3 cache with CPU 0-3,7-11")


def test_a_split_l2_cache_is_reported(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=8) | caches(2, "0-3", "4-7") | caches(3, "0-7"), max_cores=2)
    assert found.isolated == {6, 7}
    assert "; they share an L2 cache with CPU 4-5; they share an L3 cache with CPU 0-3" in found.why


def test_a_cluster_is_not_split_where_one_fits(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=12) | clusters("0-3", "4-7", "8-10", "11"))
    assert found.isolated == {4, 5, 6, 7}


def test_siblings_that_go_offline_share_nothing_with_others(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=8, threads=2) | caches(2, "0,4", "1,5", "2,6", "3,7"))
    assert "L2" not in found.why


@pytest.mark.parametrize(
    ("release", "isolated"),
    [
        ("6.8.0", "8"),
        ("6.9.0-1-amd64", "7"),
        ("6.18.3", "7"),
        ("6.19.0", "8"),
        ("", "8"),
    ],
)
def test_the_cpu_that_would_run_others_timers_is_not_taken(tmp_path: Path, release: str, isolated: str) -> None:
    found = pick(tmp_path, machine(cpus=9) | {"proc/sys/kernel/osrelease": release}, max_cores=1)
    assert found.isolated == cpulist.parse(isolated)
    assert "timers" not in found.why


def test_where_no_other_is_left_that_cpu_is_named(tmp_path: Path) -> None:
    files = machine(cpus=2, nodes=2) | {"proc/sys/kernel/osrelease": "6.12.1"}
    assert pick(tmp_path, files).why.endswith("CPU 1 may run other CPUs' timers without nohz_full= (Linux 6.9 to 6.18)")


def test_a_tickless_cpu_runs_no_others_timers(tmp_path: Path) -> None:
    files = machine(cpus=16) | {"proc/sys/kernel/osrelease": "6.12.1", f"{CPU}/nohz_full": "8"}
    assert sharing.timer_migrators(Facts(Reader(str(plant(tmp_path, files))))) == {0}


def test_devices_on_another_node_are_named(tmp_path: Path) -> None:
    files = machine(cpus=8, nodes=2) | nic("eth0") | nic("eth1", index=3) | {"sys/class/nvme/nvme0/device/uevent": ""}
    nodes = {"net/eth0": "0", "net/eth1": "1", "nvme/nvme0": "0"}
    files |= {f"sys/class/{name}/device/numa_node": node for name, node in nodes.items()}
    assert pick(tmp_path, files).why.endswith("on NUMA node 1, away from CPU 0; eth0, nvme0 on node 0")


def test_on_a_host_without_cache_information_the_last_cores_are_taken(tmp_path: Path) -> None:
    facts = Facts(Reader(str(plant(tmp_path, machine(cpus=8)))))
    assert sharing.shared(facts, facts.online) == []
    assert choose(facts, "auto", "leave", 2, "--cpus").isolated == {6, 7}

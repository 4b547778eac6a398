"""Which CPUs get isolated, on machines of every shape."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiet import cpulist
from quiet.errors import QuietError, Refused, UsageError
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import CpuPartition, choose
from quiet.machine.facts import Facts
from tests.trees import CPU, hybrid, machine, plant, sparse


def facts(root: Path, files: dict[str, str]) -> Facts:
    return Facts(Reader(str(plant(root, files))))


def pick(
    root: Path, files: dict[str, str], wish: str = "auto", smt: str = "siblings", max_cores: int = 4
) -> CpuPartition:
    return choose(facts(root, files), wish, smt, max_cores, "--cpus")


def test_cpus_isolated_at_boot_come_first(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=8) | {f"{CPU}/isolated": "1-2"})
    assert found.isolated == {1, 2}
    assert "isolated at boot" in found.why


@pytest.mark.parametrize(
    ("files", "isolated", "why"),
    [
        ({f"{CPU}/nohz_full": "1-2"}, "1-2", "isolated at boot (nohz_full)"),
        ({"proc/cmdline": "quiet isolcpus=managed_irq,1-2"}, "1-2", "isolated at boot (isolcpus)"),
        ({"proc/cmdline": "isolcpus=managed_irq,6-N", f"{CPU}/nohz_full": "5-7"}, "6-7", "isolated at boot (isolcpus)"),
        ({"proc/cmdline": "isolcpus=1,3", f"{CPU}/isolated": "3", f"{CPU}/nohz_full": "1"}, "3", "(isolcpus)"),
        ({"proc/cmdline": "isolcpus=managed_irq,40"}, "4-7", "whole physical cores"),
    ],
)
def test_cpus_that_the_boot_keeps_quiet_in_other_ways_come_first_too(
    tmp_path: Path, files: dict[str, str], isolated: str, why: str
) -> None:
    found = pick(tmp_path, machine(cpus=8) | files)
    assert found.isolated == cpulist.parse(isolated)
    assert why in found.why


def test_cpus_isolated_at_boot_are_taken_although_their_siblings_are_all_the_others(tmp_path: Path) -> None:
    files = machine(cpus=4, threads=2) | {f"{CPU}/isolated": "2-3", f"{CPU}/cpu0/online": "1"}
    found = pick(tmp_path, files)
    assert found[:3] == (frozenset({2, 3}), frozenset({0, 1}), frozenset())


def test_boot_isolation_of_every_cpu_is_ignored(tmp_path: Path) -> None:
    assert pick(tmp_path, machine(cpus=4) | {f"{CPU}/isolated": "0-3"}).isolated == {2, 3}


@pytest.mark.parametrize(("cpus", "isolated"), [(2, "1"), (3, "2"), (4, "2-3"), (8, "4-7"), (64, "60-63")])
def test_at_most_half_of_the_cores_and_at_most_max_cores_are_taken(tmp_path: Path, cpus: int, isolated: str) -> None:
    assert pick(tmp_path, machine(cpus=cpus)).isolated == cpulist.parse(isolated)


def test_max_cores_bounds_the_choice(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=64), max_cores=1)
    assert found.isolated == {63}
    assert found.why == "1 whole physical core on the only NUMA node, away from CPU 0"


@pytest.mark.parametrize(
    ("smt", "isolated", "offline"), [("leave", "2-3,6-7", ""), ("siblings", "2-3", "6-7"), ("off", "2-3", "4-7")]
)
def test_whole_cores_are_taken_and_their_siblings_as_the_profile_says(
    tmp_path: Path, smt: str, isolated: str, offline: str
) -> None:
    found = pick(tmp_path, machine(cpus=8, threads=2) | {f"{CPU}/smt/control": "on"}, smt=smt)
    assert (cpulist.format(found.isolated), cpulist.format(found.offline)) == (isolated, offline)
    assert found.housekeeping == set(range(8)) - found.isolated - found.offline
    assert found.away == found.isolated | found.offline


def test_of_two_nodes_the_one_without_the_first_cpu_is_taken(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=16, nodes=2))
    assert found.isolated == {12, 13, 14, 15}
    assert "on NUMA node 1" in found.why


def test_a_choice_stays_on_one_node(tmp_path: Path) -> None:
    assert pick(tmp_path, machine(cpus=8, nodes=4), max_cores=4).isolated == {6, 7}


def test_of_a_hybrid_processor_the_fast_cores_are_taken(tmp_path: Path) -> None:
    found = pick(tmp_path, hybrid(), smt="leave")
    assert found.isolated == {2, 3}
    assert "of the faster kind" in found.why


@pytest.mark.parametrize("name", ["cpu_capacity", "cpufreq/cpuinfo_max_freq"])
def test_cores_of_different_size_are_distinguished_without_core_types(tmp_path: Path, name: str) -> None:
    sizes = {f"{CPU}/cpu{cpu}/{name}": "1000000" if cpu in (2, 3) else "400000" for cpu in range(6)}
    found = pick(tmp_path, machine(cpus=6) | sizes)
    assert found.isolated == {2, 3}


def test_preferred_cores_of_one_kind_are_not_a_separate_kind(tmp_path: Path) -> None:
    sizes = {f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq": "5100000" if cpu == 1 else "4900000" for cpu in range(4)}
    assert facts(tmp_path, machine(cpus=4) | sizes).slow_cpus == frozenset()


def test_when_the_only_fast_core_has_the_first_cpu_a_slow_one_is_taken(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=4) | {"sys/devices/cpu_atom/cpus": "1-3"})
    assert found.isolated == {2, 3}
    assert "faster" not in found.why


def test_numbers_with_holes_and_cpus_that_are_off_are_respected(tmp_path: Path) -> None:
    found = pick(tmp_path, sparse())
    assert found.isolated == {10, 11, 14}
    assert found.housekeeping == {1, 4, 5}
    assert "NUMA node 3" in found.why


def test_a_host_without_any_list_is_read_from_its_folders(tmp_path: Path) -> None:
    files = {f"{CPU}/cpu{cpu}/online": "0" if cpu == 2 else "1" for cpu in range(1, 4)}
    found = pick(tmp_path, files | {f"{CPU}/cpu0/topology/core_id": "0"})
    assert found.isolated == {3}
    assert found.housekeeping == {0, 1}


@pytest.mark.parametrize(
    "files",
    [
        {"thread_siblings_list": "{0},{1}"},
        {"core_cpus": "5"},
        {"thread_siblings": "00000000,00000005"},
    ],
)
def test_older_names_of_the_siblings_are_read(tmp_path: Path, files: dict[str, str]) -> None:
    base = {name: text for name, text in machine(cpus=4).items() if "core_cpus_list" not in name}
    folder = f"{CPU}/cpu0/topology"
    added = {f"{folder}/{name}": text.replace("{0}", "0").replace("{1}", "2") for name, text in files.items()}
    assert facts(tmp_path, base | added).siblings(0) == {0, 2}


@pytest.mark.parametrize(("cpus", "threads"), [(1, 1), (2, 2), (4, 4)])
def test_a_single_core_cannot_be_isolated(tmp_path: Path, cpus: int, threads: int) -> None:
    with pytest.raises(Refused, match=r"nothing can be isolated: CPUs .* have no whole core besides the core of CPU 0"):
        pick(tmp_path, machine(cpus=cpus, threads=threads))


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("", "--cpus: no CPU given; list at least one of 0-1,3"),
        ("9", "--cpus: no such CPU: 9; online CPUs: 0-1,3"),
        ("1,40-41", "--cpus: no such CPU: 40-41; online CPUs: 0-1,3"),
        ("2", "--cpus: CPU 2 is offline; online CPUs: 0-1,3"),
    ],
)
def test_a_wrong_cpu_request_is_refused_with_its_key_and_the_available_cpus(
    tmp_path: Path, wish: str, said: str
) -> None:
    files = machine(cpus=4) | {f"{CPU}/online": "0-1,3"}
    with pytest.raises(UsageError) as caught:
        pick(tmp_path, files, wish)
    assert str(caught.value) == said


def test_all_cpus_cannot_be_isolated(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no housekeeping CPU among 0-3; list fewer CPUs"):
        pick(tmp_path, machine(cpus=4), "0-3")


def test_a_thread_that_smt_off_takes_away_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="CPU 3 goes offline with smt"):
        pick(tmp_path, machine(cpus=4, threads=2) | {f"{CPU}/smt/control": "on"}, "3", smt="off")


def test_smt_that_cannot_be_switched_off_takes_no_thread_away(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=4, threads=2), "1", smt="off")
    assert found.housekeeping == {0, 2, 3}


def test_a_missing_housekeeping_cpu_is_refused_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cpus\.housekeeping: no such CPU: 9"):
        choose(facts(tmp_path, machine(cpus=8)), "auto", "siblings", 4, "--cpus", "9")


@st.composite
def topologies(draw: st.DrawFn) -> dict[str, str]:
    """Any grouping of up to ten CPUs into cores, with any of them off, isolated at boot, or without a switch."""
    count = draw(st.integers(1, 10))
    online = draw(st.frozensets(st.integers(0, count - 1), min_size=1))
    core = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    fixed = draw(st.frozensets(st.integers(0, count - 1)))
    node = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    files = {
        f"{CPU}/online": cpulist.format(online),
        f"{CPU}/possible": f"0-{count - 1}",
        f"{CPU}/isolated": cpulist.format(draw(st.frozensets(st.integers(0, count - 1)))),
        "sys/devices/cpu_atom/cpus": cpulist.format(draw(st.frozensets(st.integers(0, count - 1)))),
    }
    for cpu in range(count):
        mates = {other for other in range(count) if core[other] == core[cpu]}
        files[f"{CPU}/cpu{cpu}/topology/core_cpus_list"] = cpulist.format(mates)
        if cpu not in fixed:
            files[f"{CPU}/cpu{cpu}/online"] = str(int(cpu in online))
    for number in set(node):
        members = cpulist.format(cpu for cpu in range(count) if node[cpu] == number)
        files[f"sys/devices/system/node/node{number}/cpulist"] = members
    return files


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(topologies(), st.sampled_from(["siblings", "off", "leave"]), st.integers(1, 5), st.data())
def test_a_choice_is_always_a_split_of_the_online_cpus_with_some_for_housekeeping(
    files: dict[str, str], smt: str, max_cores: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        known = facts(Path(folder), files)
        wish = data.draw(st.sampled_from(["auto", *map(str, sorted(known.online)), cpulist.format(known.online)]))
        try:
            found = choose(known, wish, smt, max_cores, "--cpus")
        except QuietError:
            return
    assert found.isolated
    assert found.housekeeping
    assert found.isolated | found.housekeeping | found.offline == known.online
    assert len(found.isolated) + len(found.housekeeping) + len(found.offline) == len(known.online)
    assert wish != "auto" or known.boot_chosen[0] or min(known.online) in found.housekeeping


def test_the_housekeeping_cpus_of_a_profile_are_never_chosen(tmp_path: Path) -> None:
    found = choose(facts(tmp_path, machine(cpus=8)), "auto", "siblings", 4, "cpus.isolated", "4-7")
    assert found.isolated == {1, 2, 3}
    assert found.housekeeping == {4, 5, 6, 7}


def test_a_cpu_cannot_be_isolated_and_housekeeping(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--cpus and cpus.housekeeping both list CPU 3; remove it from one"):
        choose(facts(tmp_path, machine(cpus=4)), "2-3", "siblings", 4, "--cpus", "0,3")


@pytest.mark.parametrize(
    ("nodes", "where"),
    [
        ({0: "0-7", 1: ""}, "on the only NUMA node"),  # memory only: expanders, high-bandwidth memory
        ({0: "", 1: "0-7"}, "on the only NUMA node"),
        ({0: "0-3", 1: "4-7", 2: "", 3: ""}, "on NUMA node 1"),
        ({0: "0-1", 1: "2-3", 2: "4-5", 3: "6-7"}, "on NUMA node 3"),  # sub-NUMA clusters of one package
        ({0: "0-5", 4: "6-7"}, "on NUMA node 4"),
    ],
)
def test_nodes_without_cpus_and_nodes_that_are_parts_of_packages(
    tmp_path: Path, nodes: dict[int, str], where: str
) -> None:
    files = {name: text for name, text in machine(cpus=8).items() if "/node/" not in name}
    files |= {f"sys/devices/system/node/node{node}/cpulist": cpus for node, cpus in nodes.items()}
    assert where in pick(tmp_path, files).why


@pytest.mark.parametrize("threads", [4, 8])
def test_of_cores_with_many_threads_one_thread_each_stays(tmp_path: Path, threads: int) -> None:
    found = pick(tmp_path, machine(cpus=4 * threads, threads=threads))
    assert found.isolated == {2, 3}
    assert len(found.offline) == 2 * (threads - 1)
    assert len(found.housekeeping) == 2 * threads


def test_the_first_cpu_may_be_requested(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=8, threads=2), "0-1")
    assert (found.isolated, found.offline, found.housekeeping) == ({0, 1}, {4, 5}, {2, 3, 6, 7})


def test_a_first_cpu_without_a_switch_is_not_taken_offline_with_its_sibling_isolated(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=8, threads=2), "4")
    assert (found.isolated, found.offline) == ({4}, frozenset())
    assert 0 in found.housekeeping


def test_masks_of_more_than_a_thousand_cpus_are_read(tmp_path: Path) -> None:
    base = {name: text for name, text in machine(cpus=1030).items() if "/cpu1" not in name}
    both = ",".join(["0000003f", *["00000000"] * 32])
    masks = {f"{CPU}/cpu{cpu}/topology/thread_siblings": both for cpu in (1024, 1029)}
    known = facts(tmp_path, base | masks)
    assert known.siblings(1029) == set(range(1024, 1030))
    found = choose(known, "1025-1026", "leave", 4, "--cpus")
    assert found.isolated == {1025, 1026}
    assert cpulist.parse_mask(cpulist.format_mask(found.housekeeping)) == found.housekeeping


def test_cores_that_save_power_are_slow_ones_too(tmp_path: Path) -> None:
    kinds = {"sys/devices/cpu_core/cpus": "0-3", "sys/devices/cpu_atom/cpus": "4-7"}
    files = machine(cpus=10) | kinds | {"sys/devices/cpu_lowpower/cpus": "8-9"}
    known = facts(tmp_path, files)
    assert known.slow_cpus == set(range(4, 10))
    assert pick(tmp_path, files).isolated == {1, 2, 3}


def test_of_three_sizes_of_cores_the_largest_are_taken(tmp_path: Path) -> None:
    sizes = {0: 160, 1: 160, 2: 160, 3: 160, 4: 498, 5: 498, 6: 498, 7: 1024}
    found = pick(tmp_path, machine(cpus=8) | {f"{CPU}/cpu{cpu}/cpu_capacity": str(size) for cpu, size in sizes.items()})
    assert found.isolated == {7}


def test_books_and_drawers_are_not_cores(tmp_path: Path) -> None:
    files = machine(cpus=8, threads=2)
    for cpu in range(8):
        files |= {f"{CPU}/cpu{cpu}/topology/{name}_siblings_list": "0-7" for name in ("book", "drawer", "core")}
        files |= {f"{CPU}/cpu{cpu}/topology/cluster_cpus_list": "0-7"}
    assert facts(tmp_path, files).siblings(1) == {1, 5}


def test_smt_off_keeps_a_core_whose_first_thread_is_off_already_out(tmp_path: Path) -> None:
    files = machine(cpus=8, threads=2) | {
        f"{CPU}/online": "0-2,4-7",
        f"{CPU}/smt/control": "on",
        f"{CPU}/cpu3/online": "0",
    }
    found = pick(tmp_path, files, smt="off")
    assert found.isolated == {1, 2}
    assert 7 in found.offline
    assert found.housekeeping == {0}
    with pytest.raises(UsageError, match="CPU 7 goes offline with smt"):
        pick(tmp_path, files, "7", smt="off")


def test_cpus_that_are_only_possible_or_only_plugged_in_are_not_chosen(tmp_path: Path) -> None:
    files = machine(cpus=4) | {f"{CPU}/possible": "0-127", f"{CPU}/present": "0-7", f"{CPU}/online": "0-3"}
    assert pick(tmp_path, files).isolated == {2, 3}
    with pytest.raises(UsageError, match="CPU 7 is offline"):
        pick(tmp_path, files, "7")

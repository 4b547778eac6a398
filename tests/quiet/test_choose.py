"""Which CPUs get isolated, on machines of every shape."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiet import cpulist
from quiet.choose import Choice, choose
from quiet.errors import QuietError, Refused, UsageError
from quiet.facts import Facts
from quiet.host import Reader
from tests.trees import CPU, hybrid, machine, plant, sparse


def facts(root: Path, files: dict[str, str]) -> Facts:
    return Facts(Reader(str(plant(root, files))))


def pick(root: Path, files: dict[str, str], wish: str = "auto", smt: str = "siblings", max_cores: int = 4) -> Choice:
    return choose(facts(root, files), wish, smt, max_cores, "--cpus")


def test_cpus_isolated_at_boot_come_first(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=8) | {f"{CPU}/isolated": "1-2"})
    assert found.isolated == {1, 2}
    assert "isolated at boot" in found.why


def test_cpus_isolated_at_boot_are_taken_although_their_siblings_are_all_the_others(tmp_path: Path) -> None:
    files = machine(cpus=4, threads=2) | {f"{CPU}/isolated": "2-3", f"{CPU}/cpu0/online": "1"}
    found = pick(tmp_path, files)
    assert found[:3] == (frozenset({2, 3}), frozenset({0, 1}), frozenset())


def test_boot_isolation_of_every_cpu_is_not_taken(tmp_path: Path) -> None:
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
def test_cores_of_different_size_are_told_apart_without_core_types(tmp_path: Path, name: str) -> None:
    sizes = {f"{CPU}/cpu{cpu}/{name}": "1000000" if cpu in (2, 3) else "400000" for cpu in range(6)}
    found = pick(tmp_path, machine(cpus=6) | sizes)
    assert found.isolated == {2, 3}


def test_favoured_cores_of_one_kind_are_not_a_kind_of_their_own(tmp_path: Path) -> None:
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
    with pytest.raises(Refused, match=r"no whole core is left besides CPU 0.*nothing can be isolated"):
        pick(tmp_path, machine(cpus=cpus, threads=threads))


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("", "--cpus: no CPU given; name at least one of 0-1,3"),
        ("9", "--cpus: CPU 9 does not exist here; online are 0-1,3"),
        ("1,40-41", "--cpus: CPU 40-41 does not exist here; online are 0-1,3"),
        ("2", "--cpus: CPU 2 is offline; online are 0-1,3"),
    ],
)
def test_a_wrong_wish_is_refused_with_its_key_and_what_there_is(tmp_path: Path, wish: str, said: str) -> None:
    files = machine(cpus=4) | {f"{CPU}/online": "0-1,3"}
    with pytest.raises(UsageError) as caught:
        pick(tmp_path, files, wish)
    assert str(caught.value) == said


def test_all_cpus_cannot_be_isolated(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no housekeeping CPU of 0-3; give --cpus fewer"):
        pick(tmp_path, machine(cpus=4), "0-3")


def test_a_thread_that_smt_off_takes_away_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="CPU 3 goes offline with smt"):
        pick(tmp_path, machine(cpus=4, threads=2) | {f"{CPU}/smt/control": "on"}, "3", smt="off")


def test_smt_that_cannot_be_switched_off_takes_no_thread_away(tmp_path: Path) -> None:
    found = pick(tmp_path, machine(cpus=4, threads=2), "1", smt="off")
    assert found.housekeeping == {0, 2, 3}


def test_a_housekeeping_cpu_that_is_not_there_is_refused_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cpus\.housekeeping: CPU 9 does not exist"):
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
    assert wish != "auto" or known.boot_isolated or min(known.online) in found.housekeeping


def test_the_housekeeping_cpus_of_a_profile_are_never_chosen(tmp_path: Path) -> None:
    found = choose(facts(tmp_path, machine(cpus=8)), "auto", "siblings", 4, "cpus.isolated", "4-7")
    assert found.isolated == {1, 2, 3}
    assert found.housekeeping == {4, 5, 6, 7}


def test_a_cpu_cannot_be_isolated_and_housekeeping(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--cpus and cpus.housekeeping both name CPU 3; a CPU can be only one"):
        choose(facts(tmp_path, machine(cpus=4)), "2-3", "siblings", 4, "--cpus", "0,3")

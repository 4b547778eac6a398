"""Where loads are put: on small trees of our own, and on trees recorded by other projects where there are some."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from cbench.machine.topology import CACHE, FAR, NODE, SIBLING, caches, places
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from tests import CHECKOUT
from tests.trees import CPU, machine, plant

RECORDED = CHECKOUT.parent / "shared" / "hosts"
MOST_CPUS = 16
"""Of a large machine every so many are looked at."""
ARCHIVES = sorted(RECORDED.glob("*.tar.*")) if RECORDED.is_dir() else []


def cached(cpus: int, shared: dict[int, str], level: int = 3) -> dict[str, str]:
    """A first-level cache of each CPU, and a last-level one shared according to the lists."""
    files = {}
    for cpu in range(cpus):
        for index, (number, kind, size, list_) in enumerate(
            [(1, "Data", "32K", str(cpu)), (1, "Instruction", "32K", str(cpu)), (level, "Unified", "16M", shared[cpu])]
        ):
            base = f"{CPU}/cpu{cpu}/cache/index{index}/"
            files |= {base + "level": str(number), base + "type": kind, base + "size": size}
            files[base + "shared_cpu_list"] = list_
    return files


def found(root: Path, cpu: int) -> dict[str, int | str]:
    """The CPU of each place, or why there is none."""
    return {p.name: p.reason if p.cpu is None else p.cpu for p in places(Facts(Reader(str(root))), cpu)}


def test_a_machine_with_everything_has_one_cpu_for_each_place(tmp_path: Path) -> None:
    """Two nodes of four cores of two threads; two cores share a cache. CPU n's sibling is n + 8."""
    pairs = ("0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15")
    shared = {cpu: pairs[cpu % 8 // 2] for cpu in range(16)}
    root = plant(tmp_path, machine(cpus=16, threads=2, nodes=2) | cached(16, shared))
    assert found(root, 2) == {SIBLING: 10, CACHE: 3, FAR: 1, NODE: 4}
    assert found(root, 13) == {SIBLING: 5, CACHE: 4, FAR: 6, NODE: 1}


def test_a_place_that_a_machine_lacks_has_a_reason(tmp_path: Path) -> None:
    root = plant(tmp_path, machine(cpus=2) | cached(2, {0: "0-1", 1: "0-1"}))
    assert found(root, 1) == {
        SIBLING: "no SMT sibling is online",
        CACHE: 0,
        FAR: "all cores of the node share the L3 cache",
        NODE: "no other node has online CPUs",
    }


def test_cores_with_caches_of_their_own_are_far_from_each_other(tmp_path: Path) -> None:
    root = plant(tmp_path, machine(cpus=3) | cached(3, {cpu: str(cpu) for cpu in range(3)}, level=2))
    assert found(root, 1)[CACHE] == "no other core shares the L2 cache"
    assert found(root, 1)[FAR] == 2


def test_without_caches_a_cluster_shows_which_cpus_are_near(tmp_path: Path) -> None:
    files = machine(cpus=8)
    for cpu in range(8):
        files[f"{CPU}/cpu{cpu}/topology/cluster_cpus_list"] = "0-3" if cpu < 4 else "4-7"
    root = plant(tmp_path, files)
    assert (found(root, 5)[CACHE], found(root, 5)[FAR]) == (4, 1)


def test_without_caches_and_clusters_nothing_is_guessed(tmp_path: Path) -> None:
    root = plant(tmp_path, machine(cpus=4))
    assert "does not report which CPUs share a cache" in str(found(root, 3)[CACHE])
    assert "does not report which CPUs share a cache" in str(found(root, 3)[FAR])


def test_a_lone_cpu_has_no_place_at_all(tmp_path: Path) -> None:
    root = plant(tmp_path, machine(cpus=1) | cached(1, {0: "0"}))
    assert all(isinstance(place, str) for place in found(root, 0).values())


def test_cpus_that_may_be_used_come_first_and_the_host_s_first_one_last(tmp_path: Path) -> None:
    root = plant(tmp_path, machine(cpus=8) | cached(8, dict.fromkeys(range(8), "0-7")))
    facts = Facts(Reader(str(root)))
    assert places(facts, 7)[1].cpu == 1
    assert places(facts, 7, preferred={0, 5, 7})[1].cpu == 5


def test_the_caches_of_data_are_read_with_their_sizes(tmp_path: Path) -> None:
    root = plant(tmp_path, machine(cpus=2) | cached(2, {0: "0-1", 1: "0-1"}))
    assert [(c.name, c.size) for c in caches(Reader(str(root)), 0)] == [("L1d", 32 << 10), ("L3", 16 << 20)]


def test_a_cache_without_a_size_is_known_without_it(tmp_path: Path) -> None:
    files = machine(cpus=1) | cached(1, {0: "0"})
    del files[f"{CPU}/cpu0/cache/index2/size"]
    assert caches(Reader(str(plant(tmp_path, files))), 0)[-1].size is None


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_on_recorded_machines_every_place_matches_its_name(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter=_plain)
    facts = Facts(Reader(str(next(path for path in tmp_path.iterdir() if path.is_dir()))))
    assert facts.online
    for cpu in sorted(facts.online)[:: max(len(facts.online) // MOST_CPUS, 1)]:
        near = {place.name: place for place in places(facts, cpu)}
        assert all((place.cpu is None) == bool(place.reason) for place in near.values())
        assert cpu not in {place.cpu for place in near.values()}
        node = next(cpus for cpus in facts.nodes.values() if cpu in cpus)
        last = caches(facts.reader, cpu)[-1].cpus
        if near[SIBLING].cpu is not None:
            assert near[SIBLING].cpu in facts.siblings(cpu)
        if near[CACHE].cpu is not None:
            assert near[CACHE].cpu in last - facts.siblings(cpu)
        if near[FAR].cpu is not None:
            assert near[FAR].cpu in node - last
        if near[NODE].cpu is not None:
            assert near[NODE].cpu not in node
        assert (near[NODE].cpu is None) == (node == facts.online)


def _plain(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    name = "/" + member.name.partition("/")[2]
    if not name.startswith(("/sys/devices/system/cpu/", "/sys/devices/system/node/")) or ".." in name:
        return None
    folder, _, last = name.rpartition("/")
    if "/cache/" in folder and last not in ("type", "size", "level", "shared_cpu_list"):
        return None
    if not member.isfile() or last.endswith(("siblings", "cpus", "_map")) or "/huge" in folder:
        return None
    return member.replace(mode=member.mode | 0o400, deep=False)

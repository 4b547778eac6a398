"""Laws that hold on every machine: chosen CPUs run, are whole cores, and leave some; never a traceback.

On small trees of our own, on the machines of tests/hosts, and on trees of other projects where a directory
of them stands beside the checkout.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quiet import cpulist
from quiet.errors import Refused
from quiet.host.reader import Reader
from quiet.machine import virtualization
from quiet.machine.facts import Facts
from quiet.settings.apply import apply
from quiet.settings.profile import bundled, load
from quiet.settings.restore import restore
from quiet.settings.verify import plan_now
from tests import CHECKOUT, hosts
from tests.hosts.record import RECORDED as RECORDED_IN_THE_LAB
from tests.hosts.record import without_marks
from tests.quiet.commands import Quiet
from tests.quiet.lives import changed
from tests.quiet.memory import Memory
from tests.trees import cpufreq, hybrid, machine, plant, sparse

HOSTS = {path.name.removesuffix(".tar.gz"): path for path in hosts.ARCHIVES}
RECORDED = CHECKOUT.parent / "shared" / "hosts"
ARCHIVES = sorted(RECORDED.glob("*.tar.*")) if RECORDED.is_dir() else []
WANTED = (
    *("/sys/devices/system/cpu/", "/sys/devices/system/node/", "/sys/devices/cpu", "/proc/", "/sys/hypervisor"),
    "/sys/class/dmi",
)
UNREAD = (
    *(
        "/cache/index0/",
        "/cache/index1/",
        "/cpuidle/",
        "/thermal_throttle/",
        "/microcode/",
        "/power/",
        "/hugepages/",
        "/uevent",
        "/stats/",
    ),
    *(f"/topology/{name}" for name in ("die", "package", "physical", "book", "drawer", "core_s", "core_id")),
)
OWN: dict[str, Callable[[], dict[str, str]]] = {
    "plain": lambda: machine(cpus=2),
    "smt": lambda: machine(cpus=8, threads=2, nodes=2, irqs=20) | cpufreq(8, "acpi-cpufreq"),
    "power": lambda: machine(cpus=32, threads=8),
    "large": lambda: machine(cpus=128, threads=2, nodes=4),
    "hybrid": hybrid,
    "sparse": sparse,
    "bare": lambda: {"sys/devices/system/cpu/cpu0/topology/core_id": "0", "sys/devices/system/cpu/cpu1/online": "1"},
}


@pytest.fixture(scope="module", params=[*OWN, *sorted(HOSTS), *(path.name for path in ARCHIVES)])
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("host")
    if request.param in OWN:
        return plant(root, OWN[request.param]())
    if request.param in HOSTS:
        return hosts.unpack(HOSTS[request.param], root)
    with tarfile.open(RECORDED / request.param) as tar:
        tar.extractall(root, filter=_plain)
    return next(path for path in root.iterdir() if path.is_dir())


def _plain(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    """What quiet reads of CPUs, nodes and processes: files, directories and relative links, readable for this user."""
    name = "/" + member.name.partition("/")[2]
    if not name.startswith(WANTED) or any(part in name for part in UNREAD) or member.linkname.startswith("/"):
        return None
    if not (member.isfile() or member.isdir() or (member.issym() and "/node/" not in name)) or ".." in name:
        return None
    return member.replace(mode=member.mode | 0o700 if member.isdir() else member.mode | 0o400, deep=False)


def check_plan(made: dict[str, Any], facts: Facts) -> None:
    isolated, rest, offline = (cpulist.parse(made["cpus"][key]) for key in ("isolated", "housekeeping", "offline"))
    assert isolated
    assert rest
    assert isolated | rest | offline == facts.online
    assert not isolated & rest
    for cpu in isolated:
        assert facts.siblings(cpu) & facts.online <= isolated | offline
    if facts.slow_cpus and any(not core & facts.slow_cpus for core in facts.cores if min(facts.online) not in core):
        assert not isolated & facts.slow_cpus


@pytest.mark.slow
def test_a_plan_is_valid_or_refused_in_one_line(quiet: Quiet, host: Path) -> None:
    done = quiet("plan", "--root", host, "--json")
    if done.code == 3:
        assert done.err.startswith("quiet: error: ")
        assert done.err.count("\n") == 1
        assert "nothing can be isolated" in done.err
    else:
        assert (done.code, done.err) == (0, "")
        check_plan(done.json, Facts(Reader(str(host))))


@pytest.mark.slow
def test_plan_and_status_as_text_succeed(quiet: Quiet, host: Path) -> None:
    assert quiet("plan", "--root", host).code in (0, 3)
    status = quiet("status", "--root", host)
    assert status.code == 0
    assert "applied: nothing" in status.out


@pytest.mark.slow
def test_every_core_by_itself_can_be_requested_except_when_it_is_the_only_one(quiet: Quiet, host: Path) -> None:
    facts = Facts(Reader(str(host)))
    for core in facts.cores[1:4]:
        done = quiet("plan", "--root", host, "--cpus", cpulist.format(core), "--json")
        assert done.code == 0
        assert cpulist.parse(done.json["cpus"]["isolated"]) <= core


def test_the_recorded_folder_is_read_completely_or_absent() -> None:
    if not RECORDED.is_dir():
        pytest.skip("no directory of recorded machines beside the checkout")
    assert ARCHIVES


@pytest.fixture(params=sorted(HOSTS))
def copy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return hosts.unpack(HOSTS[request.param], tmp_path / "copy")


def test_every_recorded_machine_is_small_and_has_a_row_that_says_what_it_is() -> None:
    rows = re.findall(r"^\| ([\w.-]+) \|", (hosts.FOLDER / "README.md").read_text(), re.MULTILINE)
    assert len(HOSTS) >= 6
    assert set(HOSTS) == set(rows) - {"archive", "---"}
    assert set(RECORDED_IN_THE_LAB) <= set(HOSTS)
    assert all(path.stat().st_size < 100_000 for path in HOSTS.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED_IN_THE_LAB)
def test_a_guest_of_the_lab_is_not_a_container_and_is_packed_as_quiet_packs(name: str, tmp_path: Path) -> None:
    data = HOSTS[name].read_bytes()
    assert without_marks(data) == data
    assert "container" not in virtualization.virtual(Facts(Reader(str(hosts.unpack(HOSTS[name], tmp_path)))))


@pytest.mark.parametrize("name", sorted(HOSTS))
def test_a_recorded_machine_contains_no_name_address_or_identifier(name: str) -> None:
    for path, data in hosts.files(HOSTS[name]).items():
        text = data.decode("utf-8", "replace")
        assert not re.search(r"(?<!0)(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", text.replace("02:00:00:00:00:", "")), path
        assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-(?!4000-8000)", text), path
        assert not re.search(r"/(work|home|root)/\w", text), path


@pytest.mark.slow
@pytest.mark.parametrize("profile", bundled())
def test_a_profile_applied_to_a_recorded_machine_is_restored(copy: Path, tmp_path: Path, profile: str) -> None:
    host = Memory(str(tmp_path), whole(copy), unwritable(copy))
    found = dict(host.files)
    try:
        done = apply(host, load(profile))
    except Refused:
        assert host.files == found
        return
    assert done.changes
    assert host.files != found
    assert plan_now(host, load(profile), None)[0].changes == ()
    outcome = restore(host)
    assert (outcome.conflicts, outcome.failures) == ((), ())
    assert list(changed(found, host.files)) == []


def whole(root: Path) -> dict[str, str]:
    """Every file and directory of a tree, for a host in memory."""
    paths = [path for path in root.rglob("*") if "run/quiet/" not in str(path)]
    return {
        f"{path.relative_to(root)}{'/' * path.is_dir()}": "" if path.is_dir() else path.read_text().strip()
        for path in paths
    }


def unwritable(root: Path) -> frozenset[str]:
    """The files that the kernel does not offer for writing."""
    return frozenset(f"/{p.relative_to(root)}" for p in root.rglob("*") if p.is_file() and not p.stat().st_mode & 0o200)

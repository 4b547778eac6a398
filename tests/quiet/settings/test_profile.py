"""Profiles: read, checked, and every wrong one refused with file and key."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from quiet.errors import UsageError
from quiet.host.reader import Reader
from quiet.knobs.effects import effect_seen
from quiet.knobs.registry import BY_NAME, KNOBS
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.settings import profile
from tests.trees import machine, plant


def test_there_are_three_bundled_profiles() -> None:
    assert profile.bundled() == ["as-is", "bench", "strict"]


PLACES = {"cpuset", "cpuset.members", "irq", "irq.default", "irqbalance", "modules", "net.rps", "net.rps_default"}


def test_as_is_moves_other_work_away_and_changes_nothing_that_affects_speed() -> None:
    changed = {name for name, choice in profile.load("as-is").knobs.items() if choice != "leave"}
    assert changed == PLACES | {"slices", "tasks", "watchdog.cpus", "workqueue"}
    assert not [word for word in profile.load("as-is").boot if "nohz_full" in word]


def test_bench_leaves_alone_settings_that_disturb_users_without_helping_the_isolated_cpus() -> None:
    knobs = profile.load("bench").knobs
    left = "rt_throttling perf.sample_rate perf.cpu_time thp thp.shmem ksm numa_balancing resctrl sched.servers"
    assert {knobs[name] for name in left.split()} == {"leave"}
    assert knobs["services"] == "quiet"


def test_bench_sets_no_knob_without_an_effect_seen_unless_a_reason_is_stated() -> None:
    stays = {  # docs/decisions.md has the reasons
        *("irq.default", "mce.interval", "watchdog.cpus", "vm.stat_interval"),
        *("vm.compaction", "vm.compact_unevictable"),
    }
    knobs = profile.load("bench").knobs
    chosen = {
        name for name in knobs if knobs[name] != "leave" and effect_seen(BY_NAME[name]).startswith("none detected")
    }
    assert chosen == stays


@pytest.mark.parametrize("name", profile.bundled())
def test_a_bundled_profile_names_every_knob_with_one_of_its_choices(name: str) -> None:
    bundled = profile.load(name)
    assert set(bundled.knobs) == {knob.name for knob in KNOBS}
    assert bundled.isolated == "auto"
    assert bundled.summary.endswith(".")


def test_a_custom_profile_is_identified_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[cpus]\nisolated = "2"\n[knobs]\nirq = "quiet"\n')
    mine = profile.load(str(path))
    assert (mine.name, mine.source, mine.isolated) == ("mine.toml", str(path), "2")
    assert mine.knobs == {"irq": "quiet"}


def test_the_same_file_by_another_path_is_the_same_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert profile.load("mine.toml").source == profile.load("./mine.toml").source == str(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("nmae = 'x'", "unknown key 'nmae'; known keys here: name, summary"),
        ("[cpus]\nisolate = '1'", "unknown key 'cpus.isolate'; known keys here: isolated, housekeeping, max_cores"),
        ("[boot]\nwant = []", "unknown key 'boot.want'"),
        ("[knobs]\nturbo = 'quiet'", "unknown knob 'knobs.turbo'; `quiet explain` lists"),
        ("[knobs]\nirq = 'off'", """key 'knobs.irq' must be "quiet" or "leave", not 'off'"""),
        ("[knobs]\nirq.default = 'quiet'", """must be quoted: write "irq.default" ="""),
        ("[knobs]\ncpufreq.turbo = 'all'", """must be quoted: write "cpufreq.turbo" ="""),
        ("[knobs]\nirq = true", "key 'knobs.irq' must be"),
        ("[knobs]\nirq = 3", "key 'knobs.irq' must be"),
        ('[knobs]\n"vm.stat_interval" = -1', "key 'knobs.vm.stat_interval' must be"),
        ('[knobs]\n"vm.stat_interval" = true', "or a number of at least 1, not True"),
        ('[knobs]\n"vm.stat_interval" = 1.5', "or a number of at least 1, not 1.5"),
        ("cpus = 3", "'cpus' must be a table: write [cpus]"),
        ("knobs = ['irq']", "'knobs' must be a table"),
        ("name = 3", "key 'name' must be a string in quotes, not 3"),
        ("[cpus]\nisolated = 3", "key 'cpus.isolated' must be a string in quotes, not 3"),
        ("[cpus]\nisolated = ''", "key 'cpus.isolated' lists no CPU"),
        ("[cpus]\nisolated = '3-1'", "key 'cpus.isolated': '3-1' is not a CPU list"),
        ("[cpus]\nhousekeeping = ','", "key 'cpus.housekeeping': ',' is not a CPU list"),
        (
            "[cpus]\nisolated = '2-3'\nhousekeeping = '0,3'",
            "keys 'cpus.isolated' and 'cpus.housekeeping' both list CPU 3",
        ),
        ('[knobs]\n"cpuset.mems" = "0-"', 'must be "quiet", "leave" or a list such as "0-1", not \'0-\''),
        ('[knobs]\n"cpuset.mems" = ""', "or a list such as \"0-1\", not ''"),
        ("[cpus]\nmax_cores = 0", "key 'cpus.max_cores' must be a whole number of at least 1, not 0"),
        ("[cpus]\nmax_cores = true", "key 'cpus.max_cores' must be a whole number of at least 1, not True"),
        ("[cpus]\nmax_cores = 1.5", "key 'cpus.max_cores' must be"),
        ("[boot]\nwanted = 'nohz_full=3'", "key 'boot.wanted' must be a list"),
        ("[boot]\nwanted = [3]", "key 'boot.wanted' must be a list"),
        ("[cpus\n", "line 1"),
    ],
)
def test_a_wrong_profile_is_refused_with_its_file_and_key(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content)
    with pytest.raises(UsageError, match=re.escape(said)) as caught:
        profile.load(str(path))
    assert str(caught.value).startswith(f"profile {path}: ")
    assert "\n" not in str(caught.value)


def test_a_missing_profile_is_refused_with_the_existing_ones() -> None:
    with pytest.raises(
        UsageError,
        match=r"profile bnech: no such profile; bundled profiles: as-is, bench, strict; or give the path of a "
        r".toml file; did you mean bench\?$",
    ):
        profile.load("bnech")
    with pytest.raises(UsageError, match=r"profile \./none\.toml: no such file"):
        profile.load("./none.toml")


def test_a_folder_and_a_binary_file_are_not_profiles(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "bytes.toml"):
        with pytest.raises(UsageError, match=f"profile {path}"):
            profile.load(str(path))


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("quiet", ["isolcpus=managed_irq,2-3", "nohz_full=2-3"]),
        ("nohz_full=2-3 rcu_nocbs=2,3", ["isolcpus=managed_irq,2-3"]),
        ("nohz_full=1-7 isolcpus=domain,managed_irq,1-7 rcu_nocbs=0-7", []),
        ("nohz_full=2 isolcpus=2-3 rcu-nocbs=2-3", ["isolcpus=managed_irq,domain,2-3", "nohz_full=2-3"]),
        ("nohz-full=2-3 rcu_nocbs", ["isolcpus=managed_irq,2-3"]),
        ("nohz_full=1-N isolcpus=managed_irq,domain,1-N rcu_nocbs=all", []),
        ("xnohz_full=2-3 nohz_full=", ["isolcpus=managed_irq,2-3", "nohz_full=2-3"]),
    ],
)
def test_missing_boot_parameters_are_named(tmp_path: Path, given: str, missing: list[str]) -> None:
    files = {"proc/cmdline": f"{given} irqaffinity=0 skew_tick=1"}
    facts = Facts(Reader(str(plant(tmp_path, machine() | files))))
    cpus = CpuPartition(frozenset({2, 3}), frozenset({0, 1}), frozenset(), "")
    assert list(profile.load("bench").missing_boot(facts, cpus)) == missing


def test_parameters_that_this_kernel_does_not_support_are_not_missing(tmp_path: Path) -> None:
    without = {path: text for path, text in machine().items() if not path.endswith("/nohz_full")}
    facts = Facts(Reader(str(plant(tmp_path, without | {"proc/cmdline": "irqaffinity=0-3"}))))
    cpus = CpuPartition(frozenset({2, 3}), frozenset({0, 1}), frozenset(), "")
    wanted = ["isolcpus=managed_irq,2-3", "irqaffinity=0-1", "skew_tick=1"]
    assert list(profile.load("bench").missing_boot(facts, cpus)) == wanted


@pytest.mark.parametrize("name", ["bench", "strict"])
def test_domain_isolation_at_boot_is_wanted_only_if_no_partition_is_possible(tmp_path: Path, name: str) -> None:
    shield = {"proc/mounts": "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0"}
    cpus = CpuPartition(frozenset({2, 3}), frozenset({0, 1}), frozenset(), "")
    for number, (files, word) in enumerate([({}, "managed_irq,2-3"), (shield, "managed_irq,domain,2-3")]):
        root = plant(tmp_path / str(number), machine() | files)
        missing = profile.load(name).missing_boot(Facts(Reader(str(root))), cpus)
        assert f"isolcpus={word}" in missing


@pytest.mark.parametrize(
    "content",
    ["a=" + "[" * 5000, "{a=" * 5000, "max=" + "9" * 10_000, "x = 1\n" * 100_000, 'name = "a\\u001b]0;title\\u0007"'],
    ids=["deep list", "deep table", "long number", "long file", "terminal escape"],
)
def test_a_hostile_profile_is_reported_in_one_line_that_names_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content)
    with pytest.raises(UsageError, match=re.escape(f"profile {path}: ")) as refused:
        profile.load(str(path))
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "/dev/full", "FIFO"])
def test_a_profile_is_a_regular_file(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "FIFO")
    with pytest.raises(UsageError, match="not a regular file"):
        profile.load(str(tmp_path / path))

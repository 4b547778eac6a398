"""The passport of a host: known facts, reasons for unknown ones, and differences from another host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cbench.machine import describe, noise, passport
from cbench.machine.passport import Passport, merged, take, unlike
from cbench.results import json_object
from quiet.errors import Refused
from quiet.host.reader import Reader
from tests.trees import plant

HOST = {
    "proc/cpuinfo": "processor\t: 0\nmicrocode\t: 0xd0003b9\n\nprocessor\t: 1\nmicrocode\t: 0xd0003b9\n",
    "proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz root=UUID=0f3c isolcpus=1 my.secret=hunter2 quiet\n",
    "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "proc/meminfo": "MemTotal:       65693112 kB\nMemFree:          812344 kB\n",
    "sys/devices/system/cpu/online": "0-15\n",
    "sys/devices/system/cpu/smt/active": "1\n",
    "sys/devices/system/node/online": "0-1\n",
    "sys/class/dmi/id/bios_vendor": "Some Vendor Inc.\n",
    "sys/class/dmi/id/bios_version": "2.14.1\n",
    "sys/class/dmi/id/bios_date": "03/02/2026\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq": "800000\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq": "3500000\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
}


@pytest.fixture
def whole(tmp_path: Path) -> Passport:
    return take(Reader(str(plant(tmp_path, HOST))), [1], "Some CPU")


def test_each_fact_of_a_host_is_in_its_passport(whole: Passport) -> None:
    assert whole == Passport(
        cpu="Some CPU",
        microcode="0xd0003b9",
        firmware="Some Vendor Inc. 2.14.1 03/02/2026",
        kernel="6.1.0-18-amd64",
        command_line="BOOT_IMAGE=masked root=masked isolcpus=1 quiet",
        profile="none",
        frequency="performance, 800 to 3500 MHz, boost off",
        memory="63 GiB",
        topology="16 CPUs, SMT on, 2 NUMA nodes",
    )


def test_a_fact_that_the_host_does_not_show_is_none_with_the_reason(tmp_path: Path) -> None:
    bare = take(Reader(str(plant(tmp_path, {"proc/cpuinfo": "processor\t: 0\n"}))), [0], "Some CPU")
    assert (bare.microcode, bare.firmware, bare.command_line, bare.frequency) == (None,) * 4
    assert bare.unknown["microcode"] == "/proc/cpuinfo has no microcode"
    assert bare.unknown["firmware"] == "no /sys/class/dmi/id/bios_version"
    assert bare.unknown["command_line"] == "/proc/cmdline is not readable"
    assert bare.unknown["frequency"] == "no /sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"


def test_two_hosts_differ_in_what_both_know(whole: Passport) -> None:
    other = replace(whole, kernel="6.12.3", profile="bench", firmware=None, noise="quiet")
    assert whole.differences(other) == ("kernel 6.1.0-18-amd64 and 6.12.3", "profile none and bench")
    assert whole.differences(whole) == ()


def test_of_two_command_lines_the_words_of_only_one_are_named(whole: Passport) -> None:
    other = replace(whole, command_line="BOOT_IMAGE=masked root=masked quiet nosmt")
    assert whole.differences(other) == ("command line isolcpus=1 and nosmt",)
    fewer = replace(whole, command_line="BOOT_IMAGE=masked root=masked quiet")
    assert whole.differences(fewer) == ("command line isolcpus=1 and nothing more",)


def test_a_passport_is_restored_from_a_store(whole: Passport) -> None:
    stored = {"cpu": "Some CPU", "passport": json_object(whole)}
    assert Passport.parse(stored, "cycles") == replace(whole, counter="cycles")


def test_a_store_without_passports_has_cpu_and_kernel() -> None:
    assert Passport.parse({"cpu": "Some CPU", "kernel": "6.12"}) == Passport(cpu="Some CPU", kernel="6.12")
    assert Passport.parse({}) is None


@pytest.mark.parametrize("damage", ["text", 7, ["list"], {"unknown": 7}])
def test_an_invalid_passport_is_a_value_error(damage: object) -> None:
    with pytest.raises(ValueError, match="is not an object"):
        Passport.parse({"passport": damage})


def test_runs_with_different_profiles_have_both_in_their_passport(whole: Passport) -> None:
    both = merged([whole, replace(whole, profile="bench", noise="quiet")])
    assert both is not None
    assert (both.profile, both.noise, both.cpu) == ("bench or none", "quiet", "Some CPU")
    assert merged([]) is None


@pytest.mark.parametrize(
    ("found", "text", "why"),
    [
        (noise.NoiseVerdict(True, "", {}), "quiet", None),
        (noise.NoiseVerdict(False, "", {}), "not quiet", None),
        (noise.NoiseVerdict(None, "no clock", {}), None, "no clock"),
        (None, None, noise.NO_PROFILE),
        (Refused("the journal is damaged"), None, "the journal is damaged"),
    ],
)
def test_stored_host_facts_include_the_verdict_on_noise(
    found: noise.NoiseVerdict | Refused | None, text: str | None, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verified() -> noise.NoiseVerdict | None:
        if isinstance(found, Refused):
            raise found
        return found

    monkeypatch.setattr(noise, "verified", verified)
    stored = passport.Passport.parse(describe.to_store(describe.describe([0], frozenset())))
    assert stored is not None
    assert (stored.noise, stored.unknown.get("noise")) == (text, why)


def test_facts_in_which_hosts_differ_name_each_value_and_its_hosts() -> None:
    like = Passport(cpu="Some CPU", microcode="0x2b", kernel="6.1.0", memory="64 GiB", noise="quiet")
    hosts = {"node1": like, "node2": replace(like, noise="not quiet"), "node7": replace(like, microcode="0x11")}
    (fact,) = unlike(hosts)
    assert fact.values == {"0x2b": ("node1", "node2"), "0x11": ("node7",)}
    assert str(fact) == "microcode 0x2b (node1, node2) and 0x11 (node7)"


def test_a_fact_that_a_host_does_not_know_is_not_a_difference() -> None:
    assert not unlike({"a": Passport(cpu="one", memory="64 GiB"), "b": Passport(cpu="one")})


def test_of_unlike_command_lines_only_the_words_that_differ_are_named() -> None:
    lines = {"a": "quiet isolcpus=1", "b": "quiet isolcpus=1", "c": "quiet isolcpus=1 nosmt"}
    (fact,) = unlike({host: Passport(command_line=line) for host, line in lines.items()})
    assert fact.values == {"nothing more": ("a", "b"), "nosmt": ("c",)}


def test_unlike_command_lines_of_the_same_words_are_named_in_full() -> None:
    lines = {"a": "maxcpus=2 quiet", "b": "quiet maxcpus=2"}
    (fact,) = unlike({host: Passport(command_line=line) for host, line in lines.items()})
    assert fact.values == {"maxcpus=2 quiet": ("a",), "quiet maxcpus=2": ("b",)}

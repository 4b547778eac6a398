"""A kernel's options come from its configuration, else from their visible effects; each missing one states its cost."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from quiet.boot.parameters.registry import known
from quiet.host.reader import Reader
from quiet.kernel import check, config, fragments
from quiet.machine.facts import Facts
from quiet.record.recorder import Recording, record
from tests.hosts import unpack
from tests.quiet.commands import Quiet
from tests.trees import machine, plant

VERSION = "6.12.0-test"
NOHZ = "sys/devices/system/cpu/nohz_full"


def whole(**changed: str) -> str:
    """A configuration of x86 with everything in it, except for changes: NAME="n"."""
    values = {option.name: option.wanted for option in fragments.load()}
    values |= {"CONFIG_X86": "y"} | {f"CONFIG_{name}": value for name, value in changed.items()}
    lines = [f"# {k} is not set" if v == "n" else f"{k}={v}" for k, v in values.items()]
    return "\n".join(["# Linux/x86 6.12.0 Kernel Configuration", *lines])


def host(folder: Path, files: dict[str, str] | None = None) -> Path:
    asked = {"proc/sys/kernel/osrelease": VERSION, f"run/quiet-recorded/{check.ASKED}": "yes"}
    return plant(folder, machine(cpus=2) | asked | (files or {}))


def test_a_complete_kernel_is_reported_as_complete(tmp_path: Path, quiet: Quiet) -> None:
    done = quiet("kernel", "check", "--root", host(tmp_path, {f"boot/config-{VERSION}": whole()}))
    assert done.code == 0
    assert "**" not in done.out
    assert done.out.endswith("all present\n")


def test_missing_options_are_named_with_their_cost(tmp_path: Path, quiet: Quiet) -> None:
    done = quiet("kernel", "check", "--root", host(tmp_path, {f"boot/config-{VERSION}": whole(NO_HZ_FULL="n")}))
    assert done.code == 1
    assert "missing (1):" in done.out
    assert "NO_HZ_FULL (isolation)" in done.out
    assert "without it: CONFIG_HZ interrupts per second remain" in done.out


def test_an_enabled_debug_option_is_reported(tmp_path: Path, quiet: Quiet) -> None:
    done = quiet("kernel", "check", "--root", host(tmp_path, {f"boot/config-{VERSION}": whole(KASAN="y")}))
    assert done.code == 1
    assert "KASAN (debug, should be off)" in done.out
    assert "with it: the kernel is several times slower" in done.out


def test_only_the_named_fragments_count(tmp_path: Path, quiet: Quiet) -> None:
    tree = host(tmp_path, {f"boot/config-{VERSION}": whole(OSNOISE_TRACER="n")})
    assert quiet("kernel", "check", "isolation", "cgroup", "--root", tree).code == 0
    assert quiet("kernel", "check", "tracing", "--root", tree).code == 1
    assert "no such fragment" in quiet("kernel", "check", "frob", "--root", tree).err


def test_the_running_kernels_own_configuration_takes_precedence(tmp_path: Path, quiet: Quiet) -> None:
    tree = host(tmp_path, {f"boot/config-{VERSION}": whole(NO_HZ_FULL="n")})
    (tree / "proc/config.gz").write_bytes(gzip.compress(whole().encode()))
    done = quiet("kernel", "check", "--root", tree, "--json")
    assert (done.code, done.json["source"], done.json["missing"]) == (0, "/proc/config.gz", 0)


@pytest.mark.parametrize("place", ["boot/config-{}", "lib/modules/{}/config", "usr/lib/modules/{}/config"])
def test_a_configuration_is_found_where_distributions_put_it(tmp_path: Path, place: str) -> None:
    path = place.format(VERSION)
    found = config.running(Reader(str(host(tmp_path, {path: whole()}))))
    assert found.source == f"/{path}"


def test_the_configuration_of_another_version_is_not_used(tmp_path: Path) -> None:
    assert config.running(Reader(str(host(tmp_path, {"boot/config-6.1.0": whole()})))).source == ""


def test_a_broken_config_gz_is_ignored(tmp_path: Path) -> None:
    tree = host(tmp_path, {f"boot/config-{VERSION}": whole()})
    (tree / "proc/config.gz").write_bytes(gzip.compress(whole().encode())[:100])
    assert config.running(Reader(str(tree))).source == f"/boot/config-{VERSION}"


@pytest.mark.slow
def test_a_configuration_that_expands_to_far_more_memory_is_ignored(tmp_path: Path) -> None:
    tree = host(tmp_path, {f"boot/config-{VERSION}": whole()})
    bomb = gzip.compress(bytes(64 << 20), 1)
    (tree / "proc/config.gz").write_bytes(gzip.compress(whole().encode()) + bomb + bomb)  # other members are not read
    assert config.running(Reader(str(tree))).source == "/proc/config.gz"
    (tree / "proc/config.gz").write_bytes(bomb)
    tracemalloc.start()
    assert config.running(Reader(str(tree))).source == f"/boot/config-{VERSION}"
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 40 << 20


def test_another_kernels_configuration_can_be_checked(tmp_path: Path, quiet: Quiet) -> None:
    (tmp_path / "mine").write_text(whole(HWLAT_TRACER="n"))
    (tmp_path / "mine.gz").write_bytes(gzip.compress(whole().encode()))
    done = quiet("kernel", "check", "--config", tmp_path / "mine", "--json")
    assert done.code == 1
    assert [o["option"] for o in done.json["options"] if o["state"] == "missing"] == ["CONFIG_HWLAT_TRACER"]
    assert quiet("kernel", "check", "--config", tmp_path / "mine.gz").code == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "x: no such file"),
        (b"SMP=y\n", "x: no line CONFIG_...=; give the configuration of a kernel"),
        (b"\x1f\x8bx", "x: the gzip data is damaged"),
        pytest.param(
            gzip.compress(bytes(17 << 20), 1),
            "x: larger than 16 MiB, so it is not the configuration of a kernel",
            id="zip",
        ),
    ],
)
def test_anything_but_a_configuration_is_refused_in_one_line(
    tmp_path: Path, quiet: Quiet, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "x").write_bytes(content)
    done = quiet("kernel", "check", "--config", tmp_path / "x")
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_module_is_as_good_as_built_in(tmp_path: Path, quiet: Quiet) -> None:
    tree = host(tmp_path, {f"boot/config-{VERSION}": whole(X86_MSR="m")})
    assert quiet("kernel", "check", "--root", tree).code == 0


def test_an_option_is_known_by_its_older_names() -> None:
    made = config.Config("x", config.parse(whole(X86_CPU_RESCTRL="n", INTEL_RDT="y")))
    (answer,) = check.check(fragments.load(["resctrl"]), made, None)
    assert (answer.state, answer.seen) == (check.THERE, "CONFIG_INTEL_RDT=y")


def test_an_option_of_another_architecture_is_not_reported_missing() -> None:
    made = config.Config("x", config.parse(whole(X86="n", ARM64="y", X86_MSR="n", ACPI_CPPC_CPUFREQ="n")))
    states = {a.option: a.state for a in check.check(fragments.load(["cpufreq"]), made, None)}
    assert states["CONFIG_X86_MSR"] == check.ELSEWHERE
    assert states["CONFIG_ACPI_CPPC_CPUFREQ"] == check.MISSING


def test_without_a_configuration_an_option_is_recognized_by_its_effects(tmp_path: Path) -> None:
    tree = host(tmp_path, {NOHZ: "", "proc/filesystems": "nodev\tresctrl", "proc/cpuinfo": "vendor_id\t: x"})
    reader = Reader(str(tree))
    states = {a.option: a.state for a in check.check(fragments.load(), config.running(reader), reader)}
    assert states["CONFIG_NO_HZ_FULL"] == check.THERE
    assert states["CONFIG_X86_CPU_RESCTRL"] == check.THERE
    assert states["CONFIG_CPU_IDLE"] == check.MISSING  # its directory's neighbours are there
    assert states["CONFIG_OSNOISE_TRACER"] == check.UNKNOWN  # tracefs is not mounted
    assert states["CONFIG_CPU_ISOLATION"] == check.UNKNOWN  # nothing shows it
    assert states["CONFIG_ACPI_CPPC_CPUFREQ"] == check.ELSEWHERE


def test_the_vendor_of_a_mainframe_is_not_taken_for_x86(tmp_path: Path) -> None:
    reader = Reader(str(host(tmp_path, {"proc/cpuinfo": "vendor_id       : IBM/S390\n"})))
    assert check._architecture(reader) == ""
    parameter = known("clocksource=tsc")
    assert parameter is not None
    assert "only x86" in parameter.needs(Facts(reader))


def test_hardware_that_is_absent_does_not_make_its_option_missing(tmp_path: Path) -> None:
    reader = Reader(str(host(tmp_path, {"proc/filesystems": "nodev\tproc", "proc/cpuinfo": "vendor_id\t: x"})))
    (answer,) = check.check(fragments.load(["resctrl"]), config.running(reader), reader)
    assert answer.state == check.UNKNOWN


def test_unknown_options_are_not_called_complete(tmp_path: Path, quiet: Quiet) -> None:
    done = quiet("kernel", "check", "isolation", "--root", host(tmp_path, {NOHZ: ""}))
    assert done.code == 1
    assert "unknown" in done.out
    assert "--config FILE" in done.out


def test_status_has_a_line_about_the_configuration(tmp_path: Path, quiet: Quiet) -> None:
    tree = host(tmp_path, {f"boot/config-{VERSION}": whole(NO_HZ_FULL="n", MEMCG="n")})
    done = quiet("status", "--root", tree)
    assert "kernel options" in done.out
    assert "missing NO_HZ_FULL, MEMCG (`quiet kernel check`)" in done.out
    found = quiet("status", "--root", tree, "--json").json["kernel_options"]
    assert found["missing"] == ["CONFIG_NO_HZ_FULL", "CONFIG_MEMCG"]


def test_a_recording_without_evidence_of_options_calls_none_missing(tmp_path: Path) -> None:
    reader = Reader(str(plant(tmp_path, machine(cpus=2) | {"proc/cpuinfo": "vendor_id\t: x"})))
    answers = check.check(fragments.load(), config.running(reader), reader)
    assert {answer.option for answer in answers if answer.state == check.MISSING} == set()


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("known", [True, False], ids=["configuration", "evidence"])
def test_a_recording_has_the_options_that_the_host_has(tmp_path: Path, masked: bool, known: bool) -> None:
    there = {
        NOHZ: "",
        "proc/filesystems": "nodev\tresctrl",
        "proc/cpuinfo": "vendor_id\t: x",
        "proc/kallsyms": "secret",
    }
    there |= {"sys/kernel/mm/hugepages/": "", "proc/sys/vm/compact_memory": "", "proc/cgroups": "cpuset 1 1 1"}
    root = host(tmp_path / "machine", there)
    if known:
        (root / "proc/config.gz").write_bytes(gzip.compress(whole(CPU_FREQ="n", LOCALVERSION='"-mine"').encode()))
    record(Recording(str(root)), str(tmp_path / "a.tar.gz"), masked)
    copy = unpack(tmp_path / "a.tar.gz", tmp_path / "copy")
    readers = [Reader(str(place)) for place in (root, copy)]
    answers = [check.check(fragments.load(), config.running(reader), reader) for reader in readers]
    assert answers[0] == answers[1]
    assert {answer.state for answer in answers[0]} >= {check.THERE, check.MISSING}
    assert masked is not ("mine" in (copy / "proc/config.gz").read_text()) if known else True
    assert (copy / "proc/kallsyms").read_text() == "\n"

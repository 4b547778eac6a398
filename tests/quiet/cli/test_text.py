"""Text output: the same facts as in JSON, in words, shortened where there are many."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet.cli import text
from quiet.settings.plan import Change, Skipped
from tests.quiet.commands import Quiet
from tests.quiet.kernels import tree
from tests.trees import cpufreq, hybrid, machine, plant, task


def test_a_plan_says_the_cpus_and_each_change_with_both_values(quiet: Quiet, tmp_path: Path) -> None:
    out = quiet("plan", "--all", "--root", tree(tmp_path / "machine")).out
    assert "isolated CPUs      1   (1 whole physical core on the only NUMA node, away from CPU 0;" in out
    assert "; sibling threads 3 go offline" in out
    assert "housekeeping CPUs  0,2" in out
    assert "/sys/kernel/mm/transparent_hugepage/defrag" in out
    assert "f (CPUs 0-3) -> 5 (CPUs 0,2)" in out
    assert "absent -> present" in out
    assert "**" not in out
    assert "nohz_full=1" in out


def test_many_targets_of_a_knob_are_counted_or_all_listed(quiet: Quiet, tmp_path: Path) -> None:
    root = plant(tmp_path, machine(cpus=4, irqs=50))
    out = quiet("verify", "--root", root).out
    assert "and 47 more" in out
    assert "irq:3" not in out
    every = quiet("plan", "--all", "--root", root).out
    assert [f"irq:{number} " in every for number in range(50)] == [True] * 50
    assert " more" not in every


def test_the_command_that_applies_a_plan_has_its_profile_and_cpus(quiet: Quiet, tmp_path: Path) -> None:
    root = plant(tmp_path / "host", machine(cpus=4))
    mine = tmp_path / "mine.toml"
    mine.write_text('name = "bench"\nsummary = "x"\n[knobs]\ncpuset = "quiet"\n')
    out = quiet("plan", "--root", root, "--profile", mine, "--cpus", "1").out
    assert f"`quiet apply --profile {mine} --cpus 1` makes these changes" in out


def test_interrupts_and_tasks_come_with_their_names(quiet: Quiet, tmp_path: Path) -> None:
    out = quiet("plan", "--all", "--root", plant(tmp_path, machine(cpus=4, irqs=1) | task(812, "sshd", "0-3"))).out
    assert "irq:0 nvme0q0" in out
    assert "task:812 sshd" in out


def test_changes_of_one_row_more_than_few_are_all_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text.changes([Change("irq", f"irq:{n}", "0-3", "0-2", "why", "cpulist") for n in range(4)])
    out = capsys.readouterr().out
    assert "irq:3" in out
    assert "more" not in out


def test_skips_with_the_same_reason_are_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    skipped = [Skipped("irq", f"irq:{n}", "managed", f"nvme0q{n}") for n in range(5)]
    text.skips([*skipped, Skipped("ksm", "file:/sys/kernel/mm/ksm/run", "absent")])
    assert capsys.readouterr().out.splitlines() == [
        "",
        "left alone (6):",
        "  irq: irq:0 nvme0q0, irq:1 nvme0q1, irq:2 nvme0q2 and 2 more: managed",
        "  ksm: /sys/kernel/mm/ksm/run: absent",
    ]


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    text.columns([("a", "b", "c"), ("long", "x", "")], "")
    assert capsys.readouterr().out == "a     b  c\nlong  x\n"


def test_messages_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    text.note("hello")
    assert capsys.readouterr() == ("", "quiet: hello\n")


def test_status_reports_the_hosts_capabilities(quiet: Quiet, tmp_path: Path) -> None:
    root = plant(tmp_path, hybrid() | cpufreq(8, "intel_pstate"))
    out = quiet("status", "--root", root).out
    assert "0-7 in 6 cores" in out
    assert "slower cores" in out
    assert "intel_pstate" in out
    assert "applied: nothing" in out


def test_a_quiet_host_is_reported_as_quiet(quiet: Quiet, tmp_path: Path) -> None:
    root = plant(tmp_path, machine(cpus=4, cgroup=0))
    assert "no change: every setting already has the profile's value" in quiet("plan", "--root", root).out
    assert (
        "not applied by quiet, but the host already has the profile's settings" in quiet("verify", "--root", root).out
    )


@pytest.mark.parametrize(
    ("files", "virtual"),
    [
        ({"proc/version": "Linux version 5.15.0-microsoft-standard-WSL2"}, "WSL"),
        ({"sys/hypervisor/type": "xen"}, "hypervisor xen"),
        ({"proc/cpuinfo": "flags\t\t: fpu hypervisor"}, "hypervisor"),
        ({"proc/cpuinfo": "flags\t\t: fpu hypervisor", "sys/class/dmi/id/sys_vendor": "QEMU"}, "hypervisor (QEMU)"),
        ({".dockerenv": ""}, "container (Docker)"),
        ({"proc/cpuinfo": "flags\t\t: fpu"}, None),
    ],
)
def test_status_reports_the_hosts_environment(
    quiet: Quiet, tmp_path: Path, files: dict[str, str], virtual: str | None
) -> None:
    done = quiet("status", "--root", plant(tmp_path, machine() | files), "--json")
    assert done.json["virtual"] == virtual

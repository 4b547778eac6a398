"""The summary of `quiet plan` and `quiet apply`: short, and about the changes that are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet.cli import text_summary
from quiet.cpulist import parse
from quiet.knobs.registry import BY_NAME, KNOBS
from quiet.machine.cpu_selection import CpuPartition
from quiet.settings.apply import Receipt
from quiet.settings.plan import Change, Skipped
from tests.quiet.commands import Quiet
from tests.quiet.kernels import tree
from tests.trees import machine, plant

CPUS = CpuPartition(parse("1"), parse("0"), parse(""), "named")


def change(knob: str) -> Change:
    return Change(knob, f"file:/{knob}", "0", "1", "", "text")


@pytest.mark.parametrize("profile", ["bench", "strict", "as-is"])
def test_a_plan_and_an_apply_take_at_most_15_lines(quiet: Quiet, tmp_path: Path, profile: str) -> None:
    root = tree(tmp_path / "machine")
    for command in ("plan", "apply"):
        done = quiet(command, "--root", root, "--profile", profile)
        assert done.err == ""
        assert 3 <= len(done.out.splitlines()) <= 15


def test_every_knob_at_once_and_many_failures_take_at_most_15_lines(capsys: pytest.CaptureFixture[str]) -> None:
    changes = tuple(change(knob.name) for knob in KNOBS)
    failures = tuple(Skipped("irq", f"irq:{n}", "refused") for n in range(20))
    for failed in ((), failures):
        text_summary.receipt(Receipt("mine", CPUS, changes, failures, failed, ("nohz_full=1",)))
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 15
        assert "could not be applied (20):" in lines or not failed
        assert "nohz_full=1" in lines[-2]


@pytest.mark.parametrize(("isolated", "title"), [("1", "Gains on CPU 1:"), ("1-2", "Gains on CPUs 1-2:")])
def test_one_cpu_is_named_in_the_singular(isolated: str, title: str, capsys: pytest.CaptureFixture[str]) -> None:
    cpus = CpuPartition(parse(isolated), parse("0"), parse(""), "named")
    text_summary.receipt(Receipt("mine", cpus, (change("ksm"),), (), (), ()))
    assert title in capsys.readouterr().out.splitlines()


def test_only_what_the_changes_of_this_host_affect_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    text_summary.receipt(Receipt("mine", CPUS, (change("ksm"),), (), (), ()))
    out = capsys.readouterr().out
    assert BY_NAME["ksm"].noticed in out
    assert BY_NAME["console.loglevel"].noticed not in out
    assert "reboot" not in out


@pytest.mark.parametrize("option", [[], ["--all"]])
def test_in_a_container_boot_parameters_are_the_hosts(quiet: Quiet, tmp_path: Path, option: list[str]) -> None:
    root = plant(tmp_path / "outside", machine(cpus=4))
    inside = plant(tmp_path / "inside", machine(cpus=4) | {".dockerenv": ""})
    assert "container" not in quiet("plan", "--root", root, *option).out
    for command in ("plan", "apply"):
        out = quiet(command, "--root", inside, *option).out
        (line,) = [line for line in out.splitlines() if "`quiet boot" in line]
        assert "on the host, not in this container" in line


def test_a_knob_that_others_may_notice_has_a_short_notice() -> None:
    assert [knob.name for knob in KNOBS if len(knob.noticed) > 70] == []


def test_a_plan_names_the_largest_measured_effect(quiet: Quiet, tmp_path: Path) -> None:
    out = quiet("plan", "--root", plant(tmp_path, machine(cpus=4, irqs=3))).out
    assert "no interrupts of devices" in out
    assert "IRQ 39 virtio1-requests 45 → 0/s" in out

"""An apply on top of an apply, after a kill or a refused write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quiet.host.host import Host
from quiet.settings import plan
from quiet.settings.apply import apply
from quiet.settings.restore import restore
from tests.quiet.kernels import killed, profile, settings, tree
from tests.trees import CPU, contents

PERCENT = f"{CPU}/intel_pstate/min_perf_pct"


class Turbo(Host):
    """Switching turbo changes min_perf_pct for good, as intel_pstate does."""

    def write(self, path: str, value: str) -> None:
        super().write(path, value)
        if path.endswith("no_turbo"):
            super().write("/" + PERCENT, "40")


@pytest.mark.slow
def test_side_effects_of_a_killed_second_apply_are_ours(tmp_path: Path) -> None:
    for step in range(1, 30):
        root = tree(tmp_path / str(step), settings() | {f"{CPU}/intel_pstate/no_turbo": "1"})
        found = contents(root)
        wanted = profile("cpufreq.turbo", "cpufreq.governor")
        apply(Turbo(str(root)), wanted)
        (root / f"{CPU}/intel_pstate/no_turbo").write_text("0\n")
        died = killed(lambda root=root, wanted=wanted: apply(Turbo(str(root)), wanted), step)
        apply(Turbo(str(root)), wanted)
        restore(Turbo(str(root)))
        assert contents(root)[PERCENT] == found[PERCENT], step
        if not died:
            break
    assert step > 3


class Busy(Host):
    """Refuses the governor while `busy`."""

    busy = True

    def write(self, path: str, value: str) -> None:
        if self.busy and path.endswith("scaling_governor"):
            raise OSError(16, "Device or resource busy")
        super().write(path, value)


def test_a_refused_change_is_tried_again_by_the_next_apply(tmp_path: Path) -> None:
    host = Busy(str(tree(tmp_path / "m", settings())))
    wanted = profile("cpufreq.governor")
    assert apply(host, wanted).failures
    host.busy = False
    again = apply(host, wanted)
    assert not again.failures
    assert [change.wanted for change in again.changes] == ["performance"] * len(again.changes) != []
    assert restore(host).complete


@pytest.mark.parametrize("knobs", [1, 2])  # a unit can be a target of two knobs
def test_a_setting_that_another_program_changes_back_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knobs: int
) -> None:
    root = tree(tmp_path / "m", settings())
    governor = next(root.glob("sys/devices/system/cpu/cpufreq/*/scaling_governor"))
    original = plan.make

    def after_the_other_program(*of: Any) -> plan.Plan:
        governor.write_text("powersave\n")
        made = original(*of)
        made.changes *= knobs
        return made

    monkeypatch.setattr(plan, "make", after_the_other_program)
    done = apply(Host(str(root)), profile("cpufreq.governor"))
    assert [(each.target, each.reason) for each in done.failures] == [
        (f"file:/{governor.relative_to(root)}", "it changes again after every write; another program may set it")
    ]
    assert f"file:/{governor.relative_to(root)}" not in [each.target for each in done.changes]
    governor.write_text("schedutil\n")
    assert [each.target for each in restore(Host(str(root))).conflicts] == [f"file:/{governor.relative_to(root)}"]


def test_a_restore_leaves_a_value_alone_that_another_program_wrote_during_the_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path / "m", settings())
    governor = next(root.glob("sys/devices/system/cpu/cpufreq/*/scaling_governor"))
    original = plan.make

    def before_the_other_program(*of: Any) -> plan.Plan:
        made = original(*of)
        if made.changes:
            monkeypatch.setattr(plan, "make", after_the_other_program)
        return made

    def after_the_other_program(*of: Any) -> plan.Plan:
        governor.write_text("conservative\n")
        return original(*of)

    monkeypatch.setattr(plan, "make", before_the_other_program)
    done = apply(Host(str(root)), profile("cpufreq.governor"))
    assert [each.target for each in done.failures] == [f"file:/{governor.relative_to(root)}"]
    outcome = restore(Host(str(root)))
    assert [each.target for each in outcome.conflicts] == [f"file:/{governor.relative_to(root)}"]
    assert governor.read_text() == "conservative\n"

"""Levels that quiet sets, on machines made of files: applied, read back and restored through its journal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cbench.screen.config.file import parse
from cbench.screen.config.model import Level
from cbench.screen.execute import quiet_levels
from cbench.screen.execute.host_levels import HostLevels
from quiet.errors import Incomplete, Refused
from quiet.host.host import Host
from quiet.settings import journal
from tests.cbench.screen.running import experiment, factor
from tests.trees import CPU, contents, cpufreq, machine, plant

GOVERNOR = f"/{CPU}/cpufreq/policy2/scaling_governor"
TIMERS = "/proc/sys/kernel/timer_migration"
KNOB = factor("timers", {"found": "found = true", "quiet": "knob = 'timer_migration'"})
GOVERNED = factor("governor", {"found": "found = true", "save": "governor = 'powersave'"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = machine(cpus=4) | cpufreq(4, "acpi-cpufreq") | {TIMERS: "0"}
    return plant(tmp_path / "root", files)


def levels(root: Path, *factors: str) -> HostLevels:
    screen = parse(experiment(*factors), "e.toml", str(root.parent))
    return HostLevels(screen, root.parent / "e.db", "1-2-3", {"PATH": "/usr/bin:/bin"}, Host(str(root)))


def text(root: Path, path: str) -> str:
    return (root / path.lstrip("/")).read_text().strip()


def test_a_knob_and_a_governor_are_applied_together_read_back_and_restored(root: Path) -> None:
    before = contents(root)
    host = levels(root, KNOB, GOVERNED)
    kept = host.mark
    found = host.set({"timers": "quiet", "governor": "save"})
    assert (text(root, TIMERS), text(root, GOVERNOR)) == ("1", "powersave")
    assert found.texts == {"timers": f"file:{TIMERS}=1", "governor": "governor powersave"}
    host.restore(kept)
    assert contents(root) == before
    assert journal.load(Host(str(root))) is None


def test_a_governor_alone_is_restored(root: Path) -> None:
    before = contents(root)
    host = levels(root, GOVERNED)
    host.set({"governor": "save"})
    assert [text(root, f"/{CPU}/cpufreq/policy{n}/scaling_governor") for n in range(4)] == ["powersave"] * 4
    host.restore()
    assert contents(root) == before


def test_a_level_as_found_touches_nothing(root: Path) -> None:
    before = contents(root)
    host = levels(root, KNOB, GOVERNED)
    assert host.set({"timers": "found", "governor": "found"}).texts == {}
    assert contents(root) == before


def test_settings_of_a_killed_process_are_restored_by_its_resume_and_by_no_other_experiment(root: Path) -> None:
    before = contents(root)
    levels(root, KNOB).set({"timers": "quiet"})  # and then it is killed
    other = HostLevels(parse(experiment(KNOB), "e.toml", "/"), root.parent / "o.db", "another", {}, Host(str(root)))
    assert other.left_behind() == []
    with pytest.raises(Refused, match=r"timers=quiet cannot be set: .* is applied to this host; run `quiet restore`"):
        other.set({"timers": "quiet"})
    assert text(root, TIMERS) == "1"  # not ours to restore
    assert levels(root, KNOB).left_behind() == ["settings that quiet had applied"]
    assert contents(root) == before


def test_settings_that_another_program_changes_are_noticed_at_the_next_check_and_left_alone(root: Path) -> None:
    host = levels(root, KNOB)
    host.set({"timers": "quiet"})
    assert host.confirm({"timers": "quiet"}).texts
    (root / TIMERS.lstrip("/")).write_text("7\n")
    with pytest.raises(Refused, match="timer_migration is '7' instead of the applied '1': another program changed it"):
        host.confirm({"timers": "quiet"})
    with pytest.raises(Incomplete, match=r"not restored: .*timer_migration: changed to '7' after the apply"):
        host.restore()
    assert text(root, TIMERS) == "7"


def test_an_impossible_level_is_reported_before_anything_is_set(root: Path) -> None:
    host = Host(str(root))
    before = contents(root)
    assert "policy 0 offers no governor 'fast'" in quiet_levels.obstacle(host, Level("x", governor="fast"), None)
    assert quiet_levels.obstacle(host, Level("x", governor="powersave"), None) == ""
    assert quiet_levels.obstacle(host, Level("x", knobs={"timer_migration": "quiet"}), None) == ""
    (root / TIMERS.lstrip("/")).write_text("1\n")
    said = quiet_levels.obstacle(host, Level("x", knobs={"timer_migration": "quiet"}), None)
    assert said == "the knob timer_migration: is already quiet, so nothing would change"
    (root / TIMERS.lstrip("/")).unlink()
    said = quiet_levels.obstacle(host, Level("x", knobs={"timer_migration": "quiet"}), None)
    assert said == "the knob timer_migration: this kernel does not have this setting"
    own = root.parent / "own.toml"
    own.write_text("[knobs]\ntimer_migration = 'quiet'\n")
    said = quiet_levels.obstacle(host, Level("x", profile=str(own)), None)
    assert said == "the profile own.toml has nothing to change here"
    said = quiet_levels.obstacle(host, Level("x", profile=str(own)), "9")
    assert "9" in said
    (root / TIMERS.lstrip("/")).write_text("0\n")
    assert contents(root) == before


def test_a_governor_that_the_host_already_has_is_refused_beside_a_level_that_keeps_it(root: Path) -> None:
    host, found, save = Host(str(root)), Level("found", found=True), Level("save", governor="powersave")
    for policy in range(4):
        assert quiet_levels.obstacle(host, save, None, [found]) == ""
        (root / f"{CPU}/cpufreq/policy{policy}/scaling_governor").write_text("powersave\n")
    said = quiet_levels.obstacle(host, save, None, [Level("env", environment={"A": "1"})])
    assert said == "every cpufreq policy already has the governor powersave, so nothing would change"
    assert quiet_levels.obstacle(host, save, None, [Level("fast", governor="performance")]) == ""


def test_a_batchs_settings_stay_while_a_trials_are_restored(root: Path) -> None:
    hard = KNOB.replace("name = 'timers'\n", "name = 'timers'\nhard = true\n", 1)
    easy = factor("c", {"off": "found = true", "on": "command = 'touch set'\nrestore = 'rm set'"})
    host = levels(root, hard, easy)
    host.set({"timers": "quiet"})
    kept = host.mark
    host.set({"c": "on"})
    assert json.loads((root.parent / "e.db.set").read_text()) == [{"factor": "c", "level": "on", "restore": "rm set"}]
    host.restore(kept)
    assert text(root, TIMERS) == "1"
    assert not (root.parent / "e.db.set").exists()
    host.restore()
    assert text(root, TIMERS) == "0"


def test_words_of_the_kernels_command_line_are_read_back(root: Path) -> None:
    boot = factor("smt", {"on": "kernel = []", "off": "kernel = ['nosmt']"}, "hard = true")
    screen = parse(experiment(boot, more="[reset]\nkind = 'reboot'\ncommand = 'x'\n"), "e.toml", str(root.parent))
    host = HostLevels(screen, root.parent / "e.db", "1", {}, Host(str(root)))
    assert host.set({"smt": "on"}).texts == {"smt": "none of the parameters"}
    with pytest.raises(Refused, match="smt=off cannot be confirmed: the kernel was booted without nosmt"):
        host.set({"smt": "off"})
    (root / "proc/cmdline").write_text("root=/dev/vda nosmt\n")
    assert host.set({"smt": "off"}).texts == {"smt": "nosmt"}
    with pytest.raises(Refused, match="smt=on cannot be confirmed: the kernel was booted with nosmt"):
        host.set({"smt": "on"})


def test_a_profile_can_be_a_level_and_determines_the_cpus_of_its_trials(root: Path) -> None:
    own = root.parent / "own.toml"
    own.write_text("[cpus]\nisolated = '2-3'\n[knobs]\ntimer_migration = 'quiet'\naslr = 'command'\n")
    profiled = factor("p", {"found": "found = true", "own": f"profile = '{own}'"})
    before = contents(root)
    host = levels(root, profiled)
    applied = host.set({"p": "own"}).applied
    assert applied is not None
    assert (applied.isolated, applied.fixed) == (frozenset({2, 3}), True)
    assert text(root, TIMERS) == "1"
    host.restore()
    assert contents(root) == before

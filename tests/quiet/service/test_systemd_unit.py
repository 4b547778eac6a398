"""The units: their content, and that systemd reads it as intended."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quiet.errors import UsageError
from quiet.service import systemd_unit
from tests.quiet.commands import Quiet
from tests.quiet.service.units import AFTER, MINE, UNIT, start, unit
from tests.trees import plant


def test_the_unit_applies_the_profile_with_this_program_and_restores_when_it_is_stopped(
    quiet: Quiet, root: Path
) -> None:
    assert quiet("install-service", "--profile", "strict", "--cpus", "2-3", "--root", root).code == 0
    program = [sys.executable, "-P", "-B", "-m", "quiet"]
    assert start(root) == [*program, "apply", "--profile", "strict", "--cpus", "2-3"]
    assert shlex.split(unit(root)["Service"]["ExecStop"]) == [*program, "restore"]
    assert unit(root)["Service"]["Type"] == "oneshot"
    assert unit(root)["Service"]["RemainAfterExit"] == "yes"
    assert unit(root)["Service"]["SuccessExitStatus"] == "1"


def test_the_cpus_in_the_unit_are_in_the_kernels_notation(quiet: Quiet, root: Path) -> None:
    assert quiet("install-service", "--cpus", "2,\n3", "--root", root).code == 0
    assert start(root)[-2:] == ["--cpus", "2-3"]


@pytest.mark.parametrize("text", ["a\nb", "a\x1bb", "a\x7f"])
def test_a_word_of_a_unit_holds_no_control_character(text: str) -> None:
    with pytest.raises(UsageError, match="a systemd unit cannot contain unprintable characters"):
        systemd_unit.word(text)


def test_the_unit_waits_for_services_that_would_overwrite_settings(quiet: Quiet, root: Path) -> None:
    plant(root, {"usr/lib/systemd/system/tuned.service": "[Unit]\nAfter=network.target", "etc/init.d/cpufrequtils": ""})
    quiet("install-service", "--root", root)
    assert unit(root)["Unit"]["Wants"] == "quiet-after.target"
    # And not after multi-user.target: what waits for the service can be part of that.
    assert unit(root)["Unit"]["After"] == "quiet-after.target"
    waits = unit(root, AFTER)["Unit"]["After"].split()
    assert {"systemd-sysctl.service", "network-online.target", "tuned.service", "cpufrequtils.service"} <= set(waits)
    assert "tlp.service" not in waits  # it is not there


def test_the_unit_is_not_ordered_with_a_daemon_that_restoring_starts(quiet: Quiet, root: Path) -> None:
    """Or the start would wait for the stop that waits for it (systemd.unit(5), Before=, After=)."""
    plant(root, {"usr/lib/systemd/system/irqbalance.service": "[Service]\nExecStart=/usr/sbin/irqbalance"})
    quiet("install-service", "--root", root)
    assert "irqbalance.service" not in (root / UNIT).read_text()
    assert "irqbalance.service" in unit(root, AFTER)["Unit"]["After"].split()


def test_the_unit_also_waits_for_a_daemon_that_waits_for_the_target(quiet: Quiet, root: Path) -> None:
    plant(root, {"usr/lib/systemd/system/tlp.service": "[Unit]\nAfter=multi-user.target NetworkManager.service"})
    quiet("install-service", "--root", root)
    assert "multi-user.target" in unit(root)["Unit"]["After"].split()
    assert "tlp.service" in unit(root, AFTER)["Unit"]["After"].split()


def test_names_with_spaces_and_characters_special_to_systemd_are_preserved(
    quiet: Quiet, root: Path, tmp_path: Path
) -> None:
    path = tmp_path / 'a b%c$d"e.toml'
    path.write_text(MINE)
    quiet("install-service", "--profile", path, "--root", root)
    command = unit(root)["Service"]["ExecStart"]
    assert command.endswith(' apply --profile "/etc/quiet/a b%%c$$d\\"e.toml"')
    assert quiet("status", "--root", root, "--json").json["service"]["profile"] == '/etc/quiet/a b%c$d"e.toml'


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="not here: systemd-analyze: hosts with systemd have it")
@pytest.mark.parametrize("name", ["mine", 'a b%c$d"e\\f'])
def test_systemd_analyze_accepts_the_unit(quiet: Quiet, root: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.toml"
    path.write_text(MINE)
    plant(root, {"usr/lib/systemd/system/tlp.service": "[Unit]\nAfter=multi-user.target"})
    quiet("install-service", "--profile", path, "--root", root)
    units = [str(root / file) for file in (UNIT, AFTER)]
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_no_unit_can_hold_is_refused(quiet: Quiet, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "two\nlines.toml"
    path.write_text(MINE)
    done = quiet("install-service", "--profile", path, "--root", root)
    assert done.code == 2
    assert "rename the file" in done.err


def watch_unit(quiet: Quiet, folder: Path, *options: str) -> Path:
    """The output of `quiet watch --unit`, as a file."""
    done = quiet("watch", "--unit", *options)
    assert done.code == 0, done.err
    assert "systemctl enable --now quiet-watch.service" in done.err
    path = folder / "quiet-watch.service"
    path.write_text(done.out)
    return path


def test_the_watchs_unit_lives_as_long_as_the_profile_and_changes_nothing(quiet: Quiet, tmp_path: Path) -> None:
    path = watch_unit(quiet, tmp_path, "--textfile", "/var/lib/node exporter/quiet.prom")
    said = unit(tmp_path, path.name)
    program = [sys.executable, "-P", "-B", "-m", "quiet", "watch"]
    assert shlex.split(said["Service"]["ExecStart"]) == [*program, "--textfile", "/var/lib/node exporter/quiet.prom"]
    assert (said["Unit"]["PartOf"], said["Install"]["WantedBy"]) == ("quiet.service", "quiet.service")
    assert (said["Service"]["StateDirectory"], said["Service"]["ReadWritePaths"]) == (
        "quiet",
        '"/var/lib/node exporter"',
    )
    assert (said["Service"]["ProtectSystem"], said["Service"]["CapabilityBoundingSet"]) == ("strict", "CAP_NET_ADMIN")


def test_a_watch_of_cpus_needs_no_profile_and_no_capability(quiet: Quiet, tmp_path: Path) -> None:
    said = unit(tmp_path, watch_unit(quiet, tmp_path, "--cpus", "2,3", "--interval", "5").name)
    assert shlex.split(said["Service"]["ExecStart"])[-5:] == ["watch", "--interval", "5", "--cpus", "2-3"]
    assert "PartOf" not in said["Unit"]
    assert said["Install"]["WantedBy"] == "multi-user.target"
    assert said["Service"]["CapabilityBoundingSet"] == ""


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="not here: systemd-analyze: hosts with systemd have it")
@pytest.mark.parametrize("options", [(), ("--cpus", "3", "--store", "/srv/a b%c"), ("--textfile", "/run/x/quiet.prom")])
def test_systemd_analyze_accepts_the_watchs_unit(quiet: Quiet, tmp_path: Path, options: tuple[str, ...]) -> None:
    path = watch_unit(quiet, tmp_path, *options)
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

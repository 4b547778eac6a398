"""The service: what its unit says, and that removal leaves no trace. That systemd does so is shown in the lab."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quiet.errors import Refused, UsageError
from quiet.host.host import Host
from quiet.service import service, systemd_unit
from quiet.settings.profile import load
from tests.quiet.commands import Quiet
from tests.trees import machine, plant

UNITS = "etc/systemd/system"
UNIT = f"{UNITS}/quiet.service"
AFTER = f"{UNITS}/quiet-after.target"
LINK = f"{UNITS}/multi-user.target.wants/quiet.service"
MINE = 'name = "mine"\n[knobs]\nksm = "quiet"\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host with systemd, and a folder of links as on any."""
    return plant(tmp_path / "root", {**machine(4), f"{UNITS}/multi-user.target.wants/": "", "run/": ""})


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    return path


def listing(root: Path) -> dict[str, tuple[int, str]]:
    """Every path with its mode and content."""
    found = {}
    for path in root.rglob("*"):
        content = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else ""
        found[str(path.relative_to(root))] = (path.lstat().st_mode, content)
    return found


def unit(root: Path, file: str = UNIT) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(root / file)
    return parser


def start(root: Path) -> list[str]:
    return shlex.split(unit(root)["Service"]["ExecStart"])


def test_the_unit_applies_the_profile_with_this_very_program_and_restores_when_it_is_stopped(
    quiet: Quiet, root: Path
) -> None:
    assert quiet("install-service", "--profile", "strict", "--cpus", "2-3", "--root", root).code == 0
    program = [sys.executable, "-P", "-B", "-m", "quiet"]
    assert start(root) == [*program, "apply", "--profile", "strict", "--cpus", "2-3"]
    assert shlex.split(unit(root)["Service"]["ExecStop"]) == [*program, "restore"]
    assert unit(root)["Service"]["Type"] == "oneshot"
    assert unit(root)["Service"]["RemainAfterExit"] == "yes"
    assert unit(root)["Service"]["SuccessExitStatus"] == "1"


VENV = "home/u/venv"
PROGRAM = {f"{VENV}/bin/python3.11": "", f"{VENV}/lib/quiet/__init__.py": "", f"{VENV}/lib/site/other/": ""}


@pytest.fixture
def program(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment below the root, from which this `quiet` seems to run; all of it root's."""
    plant(root, PROGRAM | {"usr/bin/": ""})
    (root / VENV / "bin/python").symlink_to("python3.11")
    monkeypatch.setattr("sys.executable", f"/{VENV}/bin/python")
    monkeypatch.setattr("site.getsitepackages", lambda: [f"/{VENV}/lib/site"])
    monkeypatch.setattr("quiet.__file__", f"/{VENV}/lib/quiet/__init__.py")
    for path in [root, *root.rglob("*")]:
        os.chown(path, 0, 0, follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o022)
    return root / VENV


def test_a_program_that_only_root_can_change_is_one_for_root(quiet: Quiet, root: Path, program: Path) -> None:
    assert quiet("install-service", "--root", root).code == 0


@pytest.mark.parametrize("path", [".", "..", "bin", "bin/python3.11", "lib/quiet", "lib/quiet/__init__.py", "lib/site"])
@pytest.mark.parametrize("way", ["owner", "everybody", "group"])
def test_one_that_somebody_else_can_change_is_not_what_root_runs_at_each_boot(
    quiet: Quiet, root: Path, program: Path, path: str, way: str
) -> None:
    place = program / path
    os.chown(place, 4242 if way == "owner" else 0, 4242 if way == "group" else 0)
    place.chmod(place.stat().st_mode | {"owner": 0, "everybody": 0o002, "group": 0o020}[way])
    before = listing(root)
    done = quiet("install-service", "--root", root)
    who = {"owner": "user 4242", "everybody": "everybody", "group": "group 4242"}[way]
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert f"{who} can change /{os.path.normpath(f'{VENV}/{path}')}; install quiet for root" in done.err
    assert listing(root) == before
    assert quiet("install-service", "--root", root, "--trust-program").code == 0


def test_a_tree_that_has_no_such_program_gets_its_own(quiet: Quiet, root: Path, program: Path) -> None:
    os.chown(root, 4242, 0)
    assert quiet("install-service", "--root", root).code == 3
    shutil.rmtree(program)
    assert quiet("install-service", "--root", root).code == 0


def test_it_is_found_behind_links_and_among_what_quiet_needs(quiet: Quiet, root: Path, program: Path) -> None:
    os.chown(program / "lib/site/other", 4242, 0)
    assert "can change /home/u/venv/lib/site/other;" in quiet("install-service", "--root", root).err
    os.chown(program / "lib/site/other", 0, 0)
    plant(root, {"home/u/pyenv/python": ""})
    (program / "bin/python3.11").unlink()
    (program / "bin/python3.11").symlink_to("/home/u/pyenv/python")
    os.chown(root / "home/u/pyenv", 4242, 0)
    assert "can change /home/u/pyenv;" in quiet("install-service", "--root", root).err


def test_in_a_folder_where_names_stay_their_owners_root_keeps_its_own(quiet: Quiet, root: Path, program: Path) -> None:
    program.parent.chmod(0o1777)
    assert quiet("install-service", "--root", root).code == 0


def test_it_is_enabled_for_each_boot(quiet: Quiet, root: Path) -> None:
    quiet("install-service", "--root", root)
    assert unit(root)["Install"]["WantedBy"] == "multi-user.target"
    assert os.readlink(root / LINK) == f"/{UNIT}"


def test_nothing_of_it_lies_where_a_reboot_takes_it_away(quiet: Quiet, root: Path, mine: Path) -> None:
    done = quiet("install-service", "--profile", mine, "--root", root, "--json").json
    assert done["files"]
    assert all(path.startswith("/etc/") for path in done["files"])
    assert list((root / "run").iterdir()) == []


@pytest.mark.parametrize("profile", ["bench", "own"])
@pytest.mark.parametrize("wants", ["there", "absent"])
def test_removal_leaves_every_folder_as_it_was(quiet: Quiet, root: Path, mine: Path, profile: str, wants: str) -> None:
    if wants == "absent":
        (root / LINK).parent.rmdir()
    before = listing(root)
    quiet("install-service", "--profile", mine if profile == "own" else profile, "--root", root)
    assert listing(root) != before
    assert quiet("remove-service", "--root", root).code == 0
    assert listing(root) == before


def test_it_says_which_files_it_made_and_which_it_took_away(quiet: Quiet, root: Path, mine: Path) -> None:
    made = quiet("install-service", "--profile", mine, "--root", root, "--json").json
    assert made["files"] == [f"/{UNIT}", "/etc/quiet/", "/etc/quiet/mine.toml", f"/{AFTER}", f"/{LINK}"]
    assert quiet("remove-service", "--root", root, "--json").json["files"] == made["files"][::-1]


def test_on_a_tree_the_commands_are_shown_and_not_run(quiet: Quiet, root: Path) -> None:
    done = quiet("install-service", "--root", root, "--json").json
    assert (done["commands"], done["ran"]) == (["systemctl daemon-reload"], False)
    assert "to run on that host: systemctl daemon-reload" in quiet("install-service", "--root", root).out
    done = quiet("remove-service", "--root", root, "--json").json
    stop = ["systemctl stop quiet.service", "systemctl stop quiet-after.target"]  # not at once, see decisions.md
    assert (done["commands"], done["ran"]) == ([*stop, "systemctl daemon-reload"], False)


def test_a_profile_of_ones_own_is_copied_to_where_only_root_writes(quiet: Quiet, root: Path, mine: Path) -> None:
    quiet("install-service", "--profile", mine, "--root", root)
    assert start(root)[-1] == "/etc/quiet/mine.toml"
    assert (root / "etc/quiet/mine.toml").read_text().endswith(MINE)
    assert (root / "etc/quiet/mine.toml").stat().st_mode & 0o777 == 0o644
    mine.write_text("name = 'another'\n")
    assert quiet("plan", "--profile", root / "etc/quiet/mine.toml", "--root", root, "--json").json["profile"] == "mine"


def test_a_profile_in_etc_is_used_where_it_is_and_stays(quiet: Quiet, root: Path) -> None:
    plant(root, {"etc/quiet/site.toml": MINE})
    before = listing(root)
    done = quiet("install-service", "--profile", root / "etc/quiet/site.toml", "--root", root, "--json").json
    assert start(root)[-1] == "/etc/quiet/site.toml"
    assert done["files"] == [f"/{UNIT}", f"/{AFTER}", f"/{LINK}"]
    quiet("remove-service", "--root", root)
    assert listing(root) == before


def open_to_all(path: Path) -> None:
    path.chmod(0o666)


def link_to_a_user(path: Path) -> None:
    theirs = plant(path.parents[2], {"home/user/site.toml": MINE}) / "home/user/site.toml"
    theirs.chmod(0o666)
    path.unlink()
    path.symlink_to("../../home/user/site.toml")


def in_an_open_folder(path: Path) -> None:
    path.parent.chmod(0o777)


@pytest.mark.parametrize("change", [open_to_all, link_to_a_user, in_an_open_folder])
def test_a_profile_in_etc_that_others_can_change_is_refused_until_it_is_trusted(
    quiet: Quiet, root: Path, change: Callable[[Path], None]
) -> None:
    change(plant(root, {"etc/quiet/site.toml": MINE}) / "etc/quiet/site.toml")
    before = listing(root)
    command = ("install-service", "--profile", root / "etc/quiet/site.toml", "--root", root)
    done = quiet(*command)
    assert (done.code, "everybody can change" in done.err) == (3, True)
    assert listing(root) == before
    assert quiet(*command, "--trust-program").code == 0


def test_a_folder_for_the_copy_that_others_can_change_is_refused(quiet: Quiet, root: Path, mine: Path) -> None:
    (root / "etc/quiet").mkdir()
    (root / "etc/quiet").chmod(0o777)
    before = listing(root)
    done = quiet("install-service", "--profile", mine, "--root", root)
    assert (done.code, "everybody can change /etc/quiet" in done.err) == (3, True)
    assert listing(root) == before


def test_a_linked_profile_is_not_read_from_outside_of_the_tree(quiet: Quiet, root: Path, mine: Path) -> None:
    (root / "etc/link.toml").symlink_to(mine)
    done = quiet("install-service", "--profile", root / "etc/link.toml", "--root", root)
    assert (done.code, "does not lead to a file of the tree" in done.err) == (3, True)


def test_the_cpus_in_the_unit_are_in_the_kernels_notation(quiet: Quiet, root: Path) -> None:
    assert quiet("install-service", "--cpus", "2,\n3", "--root", root).code == 0
    assert start(root)[-2:] == ["--cpus", "2-3"]


@pytest.mark.parametrize("text", ["a\nb", "a\x1bb", "a\x7f"])
def test_a_word_of_a_unit_holds_no_control_character(text: str) -> None:
    with pytest.raises(UsageError, match="a unit cannot hold such a word"):
        systemd_unit.word(text)


def test_somebody_elses_profile_of_that_name_is_not_written_over(quiet: Quiet, root: Path, mine: Path) -> None:
    plant(root, {"etc/quiet/mine.toml": "name = 'theirs'"})
    before = listing(root)
    done = quiet("install-service", "--profile", mine, "--root", root)
    assert done.code == 3
    assert "/etc/quiet/mine.toml is there already" in done.err
    assert listing(root) == before


def test_installing_again_replaces_it_with_what_belonged_to_it(quiet: Quiet, root: Path, mine: Path) -> None:
    before = listing(root)
    quiet("install-service", "--root", root)
    once = listing(root)
    quiet("install-service", "--root", root)
    assert listing(root) == once
    quiet("install-service", "--profile", mine, "--root", root)
    quiet("install-service", "--profile", root / "etc/quiet/mine.toml", "--root", root)
    assert start(root)[-1] == "/etc/quiet/mine.toml"
    quiet("install-service", "--root", root)
    assert listing(root) == once
    quiet("remove-service", "--root", root)
    assert listing(root) == before


def test_what_somebody_put_into_a_folder_of_ours_stays(quiet: Quiet, root: Path, mine: Path) -> None:
    quiet("install-service", "--profile", mine, "--root", root)
    plant(root, {"etc/quiet/theirs.toml": "name = 'theirs'"})
    assert quiet("remove-service", "--root", root).code == 0
    assert os.listdir(root / "etc/quiet") == ["theirs.toml"]


@pytest.mark.parametrize("folder", [UNITS, "run/systemd/system", "usr/lib/systemd/system"])
def test_somebody_elses_unit_of_that_name_is_refused_and_left_alone(quiet: Quiet, root: Path, folder: str) -> None:
    plant(root, {f"{folder}/quiet.service": "[Service]\nExecStart=/bin/true"})
    before = listing(root)
    for command in ("install-service", "remove-service"):
        done = quiet(command, "--root", root)
        assert done.code == 3
        assert f"/{folder}/quiet.service is there already and was not made by quiet" in done.err
    assert listing(root) == before


def test_a_mask_is_an_administrators_word(quiet: Quiet, root: Path) -> None:
    (root / UNIT).symlink_to("/dev/null")
    done = quiet("install-service", "--root", root)
    assert done.code == 3
    assert "systemctl unmask quiet.service" in done.err


def test_without_systemd_it_is_refused(quiet: Quiet, tmp_path: Path) -> None:
    root = plant(tmp_path / "root", machine(4))
    done = quiet("install-service", "--root", root)
    assert done.code == 3
    assert "there is no systemd" in done.err
    assert not (root / "etc").exists()


def test_removing_what_is_not_there_changes_nothing(quiet: Quiet, root: Path) -> None:
    before = listing(root)
    done = quiet("remove-service", "--root", root)
    assert done.code == 0
    assert "nothing was changed" in done.out
    assert listing(root) == before


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--profile", "nosuch"), 2, "no such profile"),
        (("--cpus", "2-"), 2, "--cpus"),
        (("--cpus", "7"), 2, "CPU 7 does not exist"),
        (("--cpus", "0-3"), 3, "no housekeeping CPU"),
    ],
)
def test_what_would_fail_at_every_boot_is_said_now(
    quiet: Quiet, root: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    before = listing(root)
    done = quiet("install-service", *arguments, "--root", root)
    assert done.code == code
    assert said in done.err
    assert listing(root) == before


def test_a_tree_whose_links_lead_out_of_it_is_not_written_to(quiet: Quiet, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / LINK).parent.rmdir()
    (root / LINK).parent.symlink_to(tmp_path / "outside")
    before = listing(root)
    done = quiet("install-service", "--root", root)
    assert done.code == 3
    assert "the service was not installed" in done.err
    assert listing(root) == before
    assert not [*(tmp_path / "outside").iterdir()]


@pytest.mark.parametrize("command", ["install", "remove"])
def test_without_root_the_way_out_is_said_and_nothing_is_changed(quiet: Quiet, root: Path, command: str) -> None:
    if command == "remove":
        quiet("install-service", "--root", root)
    before = listing(root)
    for folder in (root, *root.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.setuid(65534)
            host = Host(str(root))
            service.install(host, load("bench")) if command == "install" else service.remove(host)
        except Refused as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writing)
    with os.fdopen(reading) as said:
        assert said.read() == "a service takes root; run it with sudo"
    assert listing(root) == before


def test_status_says_what_the_service_does(quiet: Quiet, root: Path) -> None:
    assert quiet("status", "--root", root, "--json").json["service"] is None
    quiet("install-service", "--cpus", "3", "--root", root)
    found = quiet("status", "--root", root, "--json").json["service"]
    assert found == {"unit": "quiet.service", "profile": "bench", "cpus": "3", "at_boot": True}
    assert "service: bench on CPUs 3, after each boot" in quiet("status", "--root", root).out
    (root / LINK).unlink()
    assert "disabled" in quiet("status", "--root", root).out


def test_it_waits_for_what_would_change_settings_again(quiet: Quiet, root: Path) -> None:
    plant(root, {"usr/lib/systemd/system/tuned.service": "[Unit]\nAfter=network.target", "etc/init.d/cpufrequtils": ""})
    quiet("install-service", "--root", root)
    assert unit(root)["Unit"]["Wants"] == "quiet-after.target"
    # And not after multi-user.target: what waits for the service can be part of that.
    assert unit(root)["Unit"]["After"] == "quiet-after.target"
    waits = unit(root, AFTER)["Unit"]["After"].split()
    assert {"systemd-sysctl.service", "network-online.target", "tuned.service", "cpufrequtils.service"} <= set(waits)
    assert "tlp.service" not in waits  # it is not there


def test_it_is_not_ordered_with_a_daemon_that_restoring_starts(quiet: Quiet, root: Path) -> None:
    """Or the start would wait for the stop that waits for it (systemd.unit(5), Before=, After=)."""
    plant(root, {"usr/lib/systemd/system/irqbalance.service": "[Service]\nExecStart=/usr/sbin/irqbalance"})
    quiet("install-service", "--root", root)
    assert "irqbalance.service" not in (root / UNIT).read_text()
    assert "irqbalance.service" in unit(root, AFTER)["Unit"]["After"].split()


def test_with_a_daemon_that_waits_for_the_target_it_waits_too(quiet: Quiet, root: Path) -> None:
    plant(root, {"usr/lib/systemd/system/tlp.service": "[Unit]\nAfter=multi-user.target NetworkManager.service"})
    quiet("install-service", "--root", root)
    assert "multi-user.target" in unit(root)["Unit"]["After"].split()
    assert "tlp.service" in unit(root, AFTER)["Unit"]["After"].split()


@pytest.mark.parametrize("name", ["quiet.service", "quiet-after.target"])
def test_nothing_of_that_name_that_is_not_ours_is_written_over(quiet: Quiet, root: Path, name: str) -> None:
    plant(root, {f"{UNITS}/{name}": "[Unit]"})
    before = listing(root)
    assert quiet("install-service", "--root", root).code == 3
    assert listing(root) == before


def test_names_with_spaces_and_systemds_own_letters_arrive_as_they_are(
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
def test_systemds_own_reader_has_no_word_against_it(quiet: Quiet, root: Path, tmp_path: Path, name: str) -> None:
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

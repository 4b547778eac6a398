"""The service: installing and removing it, without a trace. That systemd does so is shown in the lab."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quiet.errors import Refused
from quiet.host.host import Host
from quiet.service import service
from quiet.settings.profile import load
from tests.quiet.commands import Quiet
from tests.quiet.service.units import AFTER, LINK, MINE, UNIT, UNITS, listing, start, unit
from tests.trees import machine, plant


def test_the_service_is_enabled_for_each_boot(quiet: Quiet, root: Path) -> None:
    quiet("install-service", "--root", root)
    assert unit(root)["Install"]["WantedBy"] == "multi-user.target"
    assert os.readlink(root / LINK) == f"/{UNIT}"


def test_no_file_of_the_service_is_lost_in_a_reboot(quiet: Quiet, root: Path, mine: Path) -> None:
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


def test_the_created_and_the_removed_files_are_reported(quiet: Quiet, root: Path, mine: Path) -> None:
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


def test_a_custom_profile_is_copied_to_a_folder_that_only_root_can_write(quiet: Quiet, root: Path, mine: Path) -> None:
    quiet("install-service", "--profile", mine, "--root", root)
    assert start(root)[-1] == "/etc/quiet/mine.toml"
    assert (root / "etc/quiet/mine.toml").read_text().endswith(MINE)
    assert (root / "etc/quiet/mine.toml").stat().st_mode & 0o777 == 0o644
    mine.write_text("name = 'another'\n")
    assert quiet("plan", "--profile", root / "etc/quiet/mine.toml", "--root", root, "--json").json["profile"] == "mine"


def test_a_profile_in_etc_is_used_in_place_and_kept(quiet: Quiet, root: Path) -> None:
    plant(root, {"etc/quiet/site.toml": MINE})
    before = listing(root)
    done = quiet("install-service", "--profile", root / "etc/quiet/site.toml", "--root", root, "--json").json
    assert start(root)[-1] == "/etc/quiet/site.toml"
    assert done["files"] == [f"/{UNIT}", f"/{AFTER}", f"/{LINK}"]
    quiet("remove-service", "--root", root)
    assert listing(root) == before


def test_a_foreign_profile_of_that_name_is_not_overwritten(quiet: Quiet, root: Path, mine: Path) -> None:
    plant(root, {"etc/quiet/mine.toml": "name = 'theirs'"})
    before = listing(root)
    done = quiet("install-service", "--profile", mine, "--root", root)
    assert done.code == 3
    assert "/etc/quiet/mine.toml already exists" in done.err
    assert listing(root) == before


def test_installing_again_replaces_the_service_and_its_files(quiet: Quiet, root: Path, mine: Path) -> None:
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


def test_files_that_another_program_put_into_our_folder_are_kept(quiet: Quiet, root: Path, mine: Path) -> None:
    quiet("install-service", "--profile", mine, "--root", root)
    plant(root, {"etc/quiet/theirs.toml": "name = 'theirs'"})
    assert quiet("remove-service", "--root", root).code == 0
    assert os.listdir(root / "etc/quiet") == ["theirs.toml"]


@pytest.mark.parametrize("folder", [UNITS, "run/systemd/system", "usr/lib/systemd/system"])
def test_a_foreign_unit_of_that_name_is_refused_and_left_alone(quiet: Quiet, root: Path, folder: str) -> None:
    plant(root, {f"{folder}/quiet.service": "[Service]\nExecStart=/bin/true"})
    before = listing(root)
    for command in ("install-service", "remove-service"):
        done = quiet(command, "--root", root)
        assert done.code == 3
        assert f"/{folder}/quiet.service already exists and was not created by quiet" in done.err
    assert listing(root) == before


def test_an_administrators_mask_is_respected(quiet: Quiet, root: Path) -> None:
    (root / UNIT).symlink_to("/dev/null")
    done = quiet("install-service", "--root", root)
    assert done.code == 3
    assert "systemctl unmask quiet.service" in done.err


def test_without_systemd_it_is_refused(quiet: Quiet, tmp_path: Path) -> None:
    root = plant(tmp_path / "root", machine(4))
    done = quiet("install-service", "--root", root)
    assert done.code == 3
    assert "contains no systemd" in done.err
    assert not (root / "etc").exists()


def test_removing_a_missing_service_changes_nothing(quiet: Quiet, root: Path) -> None:
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
        (("--cpus", "7"), 2, "no such CPU: 7"),
        (("--cpus", "0-3"), 3, "no housekeeping CPU"),
    ],
)
def test_errors_that_would_occur_at_every_boot_are_reported_at_installation(
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
def test_without_root_the_remedy_is_reported_and_nothing_is_changed(quiet: Quiet, root: Path, command: str) -> None:
    quiet("install-service", "--root", root)  # imports modules, which another user may be unable to read
    if command == "install":
        quiet("remove-service", "--root", root)
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
        assert said.read() == "installing or removing the service needs root; run this command with sudo"
    assert listing(root) == before


def test_status_reports_the_service(quiet: Quiet, root: Path) -> None:
    assert quiet("status", "--root", root, "--json").json["service"] is None
    quiet("install-service", "--cpus", "3", "--root", root)
    found = quiet("status", "--root", root, "--json").json["service"]
    assert found == {"unit": "quiet.service", "profile": "bench", "cpus": "3", "at_boot": True}
    assert "service: bench on CPUs 3, after each boot" in quiet("status", "--root", root).out
    (root / LINK).unlink()
    assert "disabled" in quiet("status", "--root", root).out


@pytest.mark.parametrize("name", ["quiet.service", "quiet-after.target"])
def test_foreign_files_of_that_name_are_not_overwritten(quiet: Quiet, root: Path, name: str) -> None:
    plant(root, {f"{UNITS}/{name}": "[Unit]"})
    before = listing(root)
    assert quiet("install-service", "--root", root).code == 3
    assert listing(root) == before

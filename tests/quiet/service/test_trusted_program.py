"""Who can change what root runs at each boot: the program, the profile, and the directories on the way."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.quiet.commands import Quiet
from tests.quiet.service.units import MINE, VENV, listing
from tests.trees import plant


def test_a_program_that_only_root_can_change_is_accepted(quiet: Quiet, root: Path, program: Path) -> None:
    assert quiet("install-service", "--root", root).code == 0


@pytest.mark.parametrize("path", [".", "..", "bin", "bin/python3.11", "lib/quiet", "lib/quiet/__init__.py", "lib/site"])
@pytest.mark.parametrize("way", ["owner", "everybody", "group"])
def test_a_program_that_another_user_can_change_is_not_run_by_root_at_boot(
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


def test_an_untrusted_file_is_found_behind_links_and_among_dependencies(
    quiet: Quiet, root: Path, program: Path
) -> None:
    os.chown(program / "lib/site/other", 4242, 0)
    assert "can change /home/u/venv/lib/site/other;" in quiet("install-service", "--root", root).err
    os.chown(program / "lib/site/other", 0, 0)
    plant(root, {"home/u/pyenv/python": ""})
    (program / "bin/python3.11").unlink()
    (program / "bin/python3.11").symlink_to("/home/u/pyenv/python")
    os.chown(root / "home/u/pyenv", 4242, 0)
    assert "can change /home/u/pyenv;" in quiet("install-service", "--root", root).err


def test_files_of_root_in_a_sticky_folder_are_trusted(quiet: Quiet, root: Path, program: Path) -> None:
    program.parent.chmod(0o1777)
    assert quiet("install-service", "--root", root).code == 0


def test_a_link_of_another_user_in_a_sticky_folder_is_not_trusted(quiet: Quiet, root: Path, program: Path) -> None:
    (program / "bin").chmod(0o1777)
    os.chown(program / "bin/python", 4242, 0, follow_symlinks=False)
    done = quiet("install-service", "--root", root)
    assert (done.code, f"user 4242 can change /{VENV}/bin/python;" in done.err) == (3, True)


def test_a_program_that_a_user_can_change_by_an_access_control_list_is_not_run_by_root(
    quiet: Quiet, root: Path, program: Path
) -> None:
    path = program / "lib/quiet/__init__.py"
    entries = [(0x01, 6, -1), (0x02, 6, 4242), (0x04, 4, -1), (0x10, 6, -1), (0x20, 4, -1)]  # as setfacl -m u:4242:rw
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *each) for each in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", acl)
    except OSError:
        pytest.skip("the file system has no access control lists")
    assert path.stat().st_gid == 0
    done = quiet("install-service", "--root", root)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert (
        f"another user (`getfacl` shows the access control list) can change /{VENV}/lib/quiet/__init__.py" in done.err
    )
    path.chmod(0o644)  # the mask denies what the entry permits
    assert quiet("install-service", "--root", root).code == 0


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


def test_a_linked_profile_is_not_read_from_outside_the_tree(quiet: Quiet, root: Path, mine: Path) -> None:
    (root / "etc/link.toml").symlink_to(mine)
    done = quiet("install-service", "--profile", root / "etc/link.toml", "--root", root)
    assert (done.code, "no such file inside the tree" in done.err) == (3, True)

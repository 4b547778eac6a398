"""Stores of other users: they are not resumed unattended, and nothing is created through another user's link."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench.store import trust
from cbench.study import auto_resume, lock
from quiet.errors import Refused
from tests.cbench.running import cbench, error_line
from tests.cbench.store.storing import stored

NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to another user")


def writable(store: Path) -> Path:
    store.chmod(0o666)
    return store


def in_writable_directory(store: Path) -> Path:
    store.parent.chmod(0o777)
    return store.parent


def in_sticky_directory(store: Path) -> Path:
    store.parent.chmod(0o1777)  # a journal that another user creates there would be played back into the store
    return store.parent


def with_writable_restores(store: Path) -> Path:
    beside = store.with_name("s.db.set")
    beside.touch()
    beside.chmod(0o666)
    return beside


def without_a_store(store: Path) -> Path:
    store.unlink()
    store.parent.chmod(0o1777)
    return store.parent


CHANGEABLE = [writable, in_writable_directory, in_sticky_directory, with_writable_restores, without_a_store]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return stored(tmp_path / "folder" / "s.db", [[1]])


@pytest.mark.parametrize("change", CHANGEABLE)
def test_a_store_that_every_user_can_change_is_refused(change: Callable[[Path], Path], store: Path) -> None:
    trust.check(store)
    place = change(store)
    with pytest.raises(Refused, match=re.escape(f"{store}: everybody can change {place}, and so the commands")):
        trust.check(store)


@root
def test_a_store_of_another_user_is_refused_unless_this_user_called_sudo(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    os.chown(store.parent, NOBODY, NOBODY)
    with pytest.raises(Refused, match="user nobody can change"):
        trust.check(store)
    monkeypatch.setenv("SUDO_UID", "1")
    with pytest.raises(Refused, match="user nobody can change"):
        trust.check(store)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    trust.check(store)


@root
def test_a_users_private_group_may_write_and_another_group_may_not(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "1")  # daemon, whose group has this name and no other member
    os.chown(store, 1, 1)
    store.chmod(0o664)
    trust.check(store)
    os.chown(store, 1, NOBODY)
    with pytest.raises(Refused, match="group nogroup can change"):
        trust.check(store)


@pytest.mark.slow
def test_status_reports_another_users_store_unless_it_must_be_trusted(store: Path) -> None:
    writable(store)
    assert cbench("status", str(store)).returncode == 0
    done = cbench("status", "--trusted", str(store))
    assert (done.returncode, "everybody can change" in error_line(done)) == (3, True)
    store.chmod(0o644)
    assert cbench("status", "--trusted", str(store)).returncode == 0


def test_no_unit_is_installed_for_a_store_that_every_user_can_change(store: Path, tmp_path: Path) -> None:
    auto_resume.install(store, {}, tmp_path)
    auto_resume.remove(store, tmp_path)
    writable(store)
    with pytest.raises(Refused, match="everybody can change"):
        auto_resume.install(store, {}, tmp_path)
    assert not auto_resume.installed(store, tmp_path)


def test_the_unit_checks_the_store_before_each_resume_and_knows_who_called_sudo(store: Path) -> None:
    lines = auto_resume.unit(store, {"SUDO_UID": "1000", "SUDO_USER": "alice"}).splitlines()
    assert f'ExecStartPre="{sys.executable}" "-P" "-m" "cbench.store.trust" "{store}"' in lines
    assert [line for line in lines if "SUDO" in line] == ['Environment="SUDO_UID=1000"']


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "code"), [(0o644, 0), (0o666, 3)])
def test_the_check_of_the_unit_exits_with_3_for_a_store_that_every_user_can_change(
    mode: int, code: int, store: Path
) -> None:
    store.chmod(mode)
    command = [sys.executable, "-P", "-m", "cbench.store.trust", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, bool(done.stderr)) == (code, bool(code))


@root
def test_no_store_is_created_where_another_users_link_points(tmp_path: Path) -> None:
    link, target = tmp_path / "s.db", tmp_path / "target.db"
    link.symlink_to(target)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(Refused, match="a link that another user has created"), lock.alone(link, create=True):
        pass
    with pytest.raises(Refused, match="a link that another user has created"):
        stored(link, [[1]])
    assert not target.exists()
    target.touch()  # empty, such as a lock file
    with pytest.raises(Refused, match="a link that another user has created"):
        stored(link, [[1]])
    assert target.stat().st_size == 0


def test_a_users_own_link_may_point_to_a_new_store(tmp_path: Path) -> None:
    link = tmp_path / "s.db"
    link.symlink_to(tmp_path / "target.db")
    with lock.alone(link, create=True):
        stored(link, [[1]])
    assert (tmp_path / "target.db").stat().st_size

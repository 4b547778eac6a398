"""The comparison of a disk's files detects changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.guest import disk_state


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    (top / "etc/folder").mkdir(parents=True)
    (top / "etc/file").write_text("one\n")
    (top / "etc/link").symlink_to("file")
    (top / "usr/bin").mkdir(parents=True)
    (top / "usr/bin/program").write_text("one\n")
    return top


def replace_link(top: Path) -> None:
    (top / "etc/link").unlink()
    (top / "etc/link").symlink_to("folder")


CHANGES: dict[str, Callable[[Path], object]] = {
    "another content": lambda top: (top / "etc/file").write_text("two\n"),
    "a program written again": lambda top: (top / "usr/bin/program").write_text("one\n"),
    "another mode": lambda top: (top / "etc/file").chmod(0o600),
    "another directory's mode": lambda top: (top / "etc/folder").chmod(0o700),
    "a new file": lambda top: (top / "etc/new").touch(),
    "a new directory": lambda top: (top / "etc/folder/inner").mkdir(),
    "a file gone": lambda top: (top / "etc/file").unlink(),
    "a directory gone": lambda top: (top / "etc/folder").rmdir(),
    "a link to somewhere else": replace_link,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_is_seen(disk: Path, change: Callable[[Path], object]) -> None:
    before = disk_state.take(str(disk))
    change(disk)
    assert len(disk_state.compare(before, disk_state.take(str(disk)))) == 1


def test_a_time_is_not_a_change(disk: Path) -> None:
    before = disk_state.take(str(disk))
    os.utime(disk / "etc/file", (1, 1))
    assert disk_state.compare(before, disk_state.take(str(disk))) == []


def test_the_sectors_ahead_of_the_partition_count(disk: Path, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(disk_state.AHEAD + 512))
    before = disk_state.take(str(disk), str(image))
    with open(image, "r+b") as file:
        file.seek(disk_state.AHEAD - 1)
        file.write(b"x")
    assert len(disk_state.compare(before, disk_state.take(str(disk), str(image)))) == 1

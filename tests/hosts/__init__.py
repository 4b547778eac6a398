"""Recorded machines: recordings by `quiet record` of guests of the lab and of real hosts; see README.md."""

from __future__ import annotations

import tarfile
from pathlib import Path

FOLDER = Path(__file__).parent
ARCHIVES = sorted(FOLDER.glob("*.tar.gz"))


def files(archive: Path) -> dict[str, bytes]:
    """Every file of an archive with its bytes."""
    with tarfile.open(archive) as tar:
        opened = {each.name: tar.extractfile(each) for each in tar if not each.isdir() and not each.issym()}
        return {name: file.read() for name, file in opened.items() if file is not None}


def unpack(archive: Path, folder: Path) -> Path:
    """The tree of an archive, to write in. Returns its root."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="tar")
    return folder

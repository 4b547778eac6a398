"""Run one test of the study, or an action around the tests: files.py TEST, check, make, reset or remove.

All files are in one directory: $SCRATCH, or else $TMPDIR/cbench-file-system-UID. The study creates this directory, and
marks it with a file. It removes an existing directory only if the directory is empty or has this mark. Tests that fio
supports are in jobs.fio. The other tests print the number of operations per second as JSON in the format of fio.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SCRATCH = Path(os.environ.get("SCRATCH") or Path(tempfile.gettempdir(), f"cbench-file-system-{os.getuid()}"))
MARK = SCRATCH / ".made-by-the-file-system-study"
DATA, TREE = SCRATCH / "data", SCRATCH / "tree"
DATA_BYTES, FILES, APPENDS = 64 << 20, 1000, 200
FIO = ("read-sequential", "read-random", "write-sequential", "write-random")


def create() -> int:
    """Create empty files in a new directory, and sync the directory at the end."""
    folder = SCRATCH / "created"
    folder.mkdir()
    for number in range(FILES):
        (folder / str(number)).touch()
    sync(folder)
    return FILES


def stat() -> int:
    """Read the status of every file that remains in the tree."""
    return len([each.stat() for each in TREE.iterdir()])


def append() -> int:
    """Append blocks of 4 KiB to one file, and sync it after each block."""
    block = bytes(4096)
    with (SCRATCH / "log").open("ab", buffering=0) as file:
        for _ in range(APPENDS):
            file.write(block)
            os.fdatasync(file.fileno())
    return APPENDS


def unlink() -> int:
    """Remove all files of the tree except the first hundred, so that `stat` finds files even if it runs later."""
    gone = [TREE / str(number) for number in range(100, FILES)]
    for each in gone:
        each.unlink()
    sync(TREE)
    return len(gone)


OWN: dict[str, Callable[[], int]] = {"create": create, "stat": stat, "append": append, "unlink": unlink}


def reset() -> None:
    """Recreate the directory with the file and the tree, write both to the disk, and drop the file's pages from the
    cache.
    """
    remove()
    SCRATCH.mkdir(mode=0o700)
    MARK.touch()
    with DATA.open("wb") as file:
        for _ in range(DATA_BYTES >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    TREE.mkdir()
    for number in range(FILES):
        (TREE / str(number)).write_bytes(b"x" * 100)
    sync(TREE)


def make() -> None:
    """Create the directory if it has no data; a study that resumes after a kill keeps the existing directory."""
    if not DATA.exists():
        reset()


def remove() -> None:
    if not SCRATCH.exists():
        return
    if not MARK.exists() and any(SCRATCH.iterdir()):
        sys.exit(
            f"files.py: {SCRATCH} is not empty and was not created by this study: "
            "set SCRATCH to a new or an empty directory"
        )
    shutil.rmtree(SCRATCH)


def check() -> None:
    if shutil.which("fio") is None:
        sys.exit("files.py: fio is not installed: apt-get install fio")
    there = SCRATCH.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        sys.exit(f"files.py: cannot create a directory in {there}: set SCRATCH to a directory elsewhere")
    if shutil.disk_usage(there).free < 4 * DATA_BYTES:
        sys.exit(
            f"files.py: {there} has less than {4 * DATA_BYTES >> 20} MiB free: set SCRATCH to a directory elsewhere"
        )


def sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def main(what: str) -> int:
    around = {"check": check, "make": make, "reset": reset, "remove": remove}
    if what in around:
        around[what]()
    elif what in FIO:
        jobs = str(Path(__file__).with_name("jobs.fio"))
        command = [shutil.which("fio") or "fio", "--output-format=json", f"--section={what}", jobs]
        return subprocess.run(command, env={**os.environ, "SCRATCH": str(SCRATCH)}, check=False).returncode
    elif what in OWN:
        begun = time.perf_counter()
        operations = OWN[what]()
        seconds = time.perf_counter() - begun
        sys.stdout.write(json.dumps({"jobs": [{"iops": operations / seconds, "seconds": seconds}]}) + "\n")
    else:
        sys.exit(f"files.py: {what!r}: must be one of {', '.join((*FIO, *OWN, *around))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))

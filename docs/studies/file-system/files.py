"""The study's tests, and what is around them: files.py TEST, check, make, reset or remove.

Everything happens in one directory, $SCRATCH, or else $TMPDIR/cbench-file-system-UID; it is made, and one that is
there is removed only when it bears the mark of having been made here. Tests that fio can do are in jobs.fio; the others
print how many operations they did in a second, as JSON like fio's own results.
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
    """Empty files in a directory of their own, which is synced in the end."""
    folder = SCRATCH / "created"
    folder.mkdir()
    for number in range(FILES):
        (folder / str(number)).touch()
    sync(folder)
    return FILES


def stat() -> int:
    """Every file that is left of the tree that the reset has made."""
    return len([each.stat() for each in TREE.iterdir()])


def append() -> int:
    """4 KiB at a time to one file, each synced."""
    block = bytes(4096)
    with (SCRATCH / "log").open("ab", buffering=0) as file:
        for _ in range(APPENDS):
            file.write(block)
            os.fdatasync(file.fileno())
    return APPENDS


def unlink() -> int:
    """The tree's files but the first hundred: `stat` has something left whenever it runs."""
    gone = [TREE / str(number) for number in range(100, FILES)]
    for each in gone:
        each.unlink()
    sync(TREE)
    return len(gone)


OWN: dict[str, Callable[[], int]] = {"create": create, "stat": stat, "append": append, "unlink": unlink}


def reset() -> None:
    """Recreate the directory with its file and its tree, all on the disk and the file's pages out of the cache."""
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
    """The directory where there is none; a study that is resumed after a kill finds it unchanged."""
    if not DATA.exists():
        reset()


def remove() -> None:
    if not SCRATCH.exists():
        return
    if not MARK.exists() and any(SCRATCH.iterdir()):
        sys.exit(f"files.py: {SCRATCH} belongs to another user: name an empty or a new directory by SCRATCH")
    shutil.rmtree(SCRATCH)


def check() -> None:
    if shutil.which("fio") is None:
        sys.exit("files.py: fio is not installed: apt-get install fio")
    there = SCRATCH.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        sys.exit(f"files.py: no directory can be made in {there}: name another one by SCRATCH")
    if shutil.disk_usage(there).free < 4 * DATA_BYTES:
        sys.exit(f"files.py: {there} has less than {4 * DATA_BYTES >> 20} MiB left: name another directory by SCRATCH")


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
        sys.exit(f"files.py: {what!r}: one of {', '.join((*FIO, *OWN, *around))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))

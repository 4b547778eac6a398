"""Record the lab's machines again: boot each and keep the output of `quiet record`.

    python -m tests.hosts.record [MACHINE...]

The archives are the same for the same kernel, but for the processes that happen to run.
"""

from __future__ import annotations

import base64
import gzip
import io
import sys
import tarfile

from tests.hosts import FOLDER
from tests.lab.harness.boot import boot
from tests.lab.harness.machines import MACHINES

RECORDED = ("isolated-6.12", "smt", "numa", "cpufreq", "cgroup-v1", "a72", "host")
# a guest's root is a view of the machine that it runs on, which may be a container: the guest is none
MARKS = (".dockerenv", "run/.containerenv")
SCRIPT = """
quiet record /tmp/recorded.tar.gz && base64 /tmp/recorded.tar.gz >$LAB_OUT/recorded
"""


def without_marks(data: bytes) -> bytes:
    """An archive without a container manager's marks, packed as `quiet record` packs."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data)) as found,
        gzip.GzipFile("", "wb", fileobj=made, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for member in found.getmembers():
            if member.name not in MARKS:
                tar.addfile(member, found.extractfile(member) if member.isfile() else None)
    return made.getvalue()


def main() -> None:
    for name in sys.argv[1:] or RECORDED:
        result = boot(MACHINES[name], SCRIPT, timeout=900)
        if result.code:
            sys.exit(f"{name}: {result.output}")
        data = without_marks(base64.b64decode(result.files["recorded"]))
        (FOLDER / f"{name}.tar.gz").write_bytes(data)
        print(f"{name}: {len(data)} bytes, {result.seconds:.0f} s")


if __name__ == "__main__":
    main()

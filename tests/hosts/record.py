"""Record machines of the lab anew: boots each and keeps what `quiet record` says there.

    python -m tests.hosts.record [MACHINE...]

The archives are the same for the same kernel, but for the processes that happen to run.
"""

from __future__ import annotations

import base64
import sys

from tests.hosts import FOLDER
from tests.lab.guest import boot
from tests.lab.machines import MACHINES

RECORDED = ("isolated-6.12", "smt", "numa", "cpufreq", "cgroup-v1", "a72", "host")
SCRIPT = "quiet record /tmp/recorded.tar.gz && base64 /tmp/recorded.tar.gz >$LAB_OUT/recorded"


def main() -> None:
    for name in sys.argv[1:] or RECORDED:
        result = boot(MACHINES[name], SCRIPT, timeout=900)
        if result.code:
            sys.exit(f"{name}: {result.output}")
        data = base64.b64decode(result.files["recorded"])
        (FOLDER / f"{name}.tar.gz").write_bytes(data)
        print(f"{name}: {len(data)} bytes, {result.seconds:.0f} s")


if __name__ == "__main__":
    main()

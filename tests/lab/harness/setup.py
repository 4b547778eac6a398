"""`make lab-setup`: cache the files that the machines boot from. `python -m tests.lab.harness.setup x86_64|arm64`.

Prints only slow steps and failures.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.lab.harness import arm_root, disk_grub, disk_root, kernels
from tests.lab.harness.debian import PackageError

KERNELS = {"x86_64": ("6.12", "6.1"), "arm64": ("6.1-arm64", "6.12-arm64")}
Part = tuple[
    str, Callable[[], Path], Callable[[], Path]
]  # its description, its place in the cache, the function that creates it
PARTS: dict[str, tuple[Part, ...]] = {
    "x86_64": (
        ("disk with systemd", disk_root.final, disk_root.ensure),
        (
            "disk with GRUB and systemd",
            lambda: disk_grub.final(kernels.ensure(disk_grub.SERIES)),
            lambda: disk_grub.ensure(kernels.ensure(disk_grub.SERIES)),
        ),
    ),
    "arm64": (("arm64 root", arm_root.final, arm_root.ensure),),
}


def made(what: str, final: Callable[[], Path], ensure: Callable[[], Path]) -> bool:
    """Make it unless it is cached; False, and the reason on stderr, when that fails."""
    started = time.monotonic()
    try:
        if final().is_dir():
            return True
        print(f"==> making the {what} from Debian's packages (some 60 MB to fetch)", flush=True)
        ensure()
    except (PackageError, subprocess.TimeoutExpired, OSError) as error:
        print(f"no {what}: {error}", file=sys.stderr)
        return False
    print(f"    done in {time.monotonic() - started:.0f} s", flush=True)
    return True


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in PARTS:
        print("usage: python -m tests.lab.harness.setup x86_64|arm64", file=sys.stderr)
        return 2
    failed = kernels.main(["--quiet", *KERNELS[arguments[0]]]) != 0
    for part in PARTS[arguments[0]]:
        failed |= not made(*part)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Kernel build trees of Debian's kernels, unpacked into the lab's cache: what an out-of-tree module is built against.

    tree("6.1.0-56-amd64", "x86_64")        # for `make -C TREE M=...`
    make_command("6.1.0-56-arm64", "arm64") # the same with what a cross-build needs

`python -m tests.lab.harness.headers VERSION ARCH` prints the tree. Both architectures build on this x86-64 machine: the
programs of the kernel's build (modpost, fixdep, ...) come from the amd64 package, headers and symbols from the
kernel's own architecture, the compiler for arm64 is gcc-12-aarch64-linux-gnu.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.lab.harness import cache, debian
from tests.lab.harness.debian import PackageError

# The kernel's word for an architecture, and Debian's.
ARCHITECTURES = {"x86_64": debian.NATIVE, "arm64": debian.ARM}
CROSS = "aarch64-linux-gnu-"


def tree(kernel_version: str, arch: str) -> Path:
    """The build tree of exactly this kernel (`uname -r`): cached, or fetched now.

    PackageError when Debian's archive does not have this version (any more), or cannot be reached.
    """
    if arch not in ARCHITECTURES:
        raise PackageError(f"unknown architecture {arch!r}; known: {', '.join(ARCHITECTURES)}")
    if not kernel_version.endswith(f"-{ARCHITECTURES[arch]}"):
        raise PackageError(f"{kernel_version} is not a kernel of Debian's for {arch}")
    final = cache.cache_dir() / "headers" / kernel_version
    cache.make(final, lambda folder: _build(kernel_version, ARCHITECTURES[arch], folder, final))
    return final / f"usr/src/linux-headers-{kernel_version}"


def make_command(kernel_version: str, arch: str) -> list[str]:
    """`make -C TREE` and what a cross-build needs (kbuild/modules.rst); M= and the targets are to follow."""
    cross = [f"CROSS_COMPILE={CROSS}"] if arch == "arm64" else []
    return ["make", "-C", str(tree(kernel_version, arch)), f"ARCH={arch}", *cross]


def packages(version: str, arch: str) -> tuple[list[str], list[str]]:
    """(of the kernel's architecture, of this machine's): the names of what makes up the tree."""
    common = version.removesuffix(f"-{arch}")
    # 6.1's build programs are those of the series, later ones belong to one version.
    kbuild = "6.1" if re.match(r"6\.1\.", common) else common
    return [f"linux-headers-{version}", f"linux-headers-{common}-common"], [f"linux-kbuild-{kbuild}"]


def _build(version: str, arch: str, folder: Path, final: Path) -> None:
    theirs, ours = packages(version, arch)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as temporary:
        archives = Path(temporary)
        for wanted, of in ((theirs, arch), (ours, debian.NATIVE)):
            try:
                debian.download(wanted, archives, of)
            except PackageError as error:
                raise PackageError(f"no {' and '.join(wanted)} in Debian's archive (any more?): {error}") from None
        debian.unpack(archives, folder)
    _relocate(folder, version, arch, final)


def _relocate(folder: Path, version: str, arch: str, final: Path) -> None:
    """The packages expect to lie in /usr/src; all other links in them are relative."""
    common = f"linux-headers-{version.removesuffix(f'-{arch}')}-common"
    own = folder / f"usr/src/linux-headers-{version}"
    (own / "Makefile").write_text(f"include {final}/usr/src/{common}/Makefile\n")
    # Type information, which only pahole could add to a module; without the file the build says that it leaves it out.
    (own / "vmlinux").unlink(missing_ok=True)
    for name in ("source", "build"):
        (folder / "lib/modules" / version / name).unlink(missing_ok=True)


def main(arguments: list[str]) -> int:
    try:
        print(tree(arguments[0], arguments[1]))
    except IndexError:
        print("usage: python -m tests.lab.harness.headers VERSION x86_64|arm64", file=sys.stderr)
        return 2
    except (PackageError, subprocess.TimeoutExpired, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

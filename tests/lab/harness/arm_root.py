"""The arm64 machines' root: Debian's arm64 packages and Python's, unpacked on this machine and packed as a cpio.

`ensure()` gives the directory of it in the lab's cache: `base.cpio` (the root, without the project), and `include`
(Python's headers for arm64, see arm_c.py).
The guest's Python finds its modules compiled already, where this machine's is of the same version: emulated, that
would take longer than the rest of the boot.
"""

from __future__ import annotations

import compileall
import fnmatch
import os
import py_compile
import shutil
import sys
import tempfile
from pathlib import Path

from tests import CHECKOUT
from tests.lab.harness import cache, debian, wheels
from tests.lab.harness.cpio import Archive

PACKAGES = (
    *("bash", "busybox-static", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip", "hostname", "kmod"),
    *("libc-bin", "libstdc++6", "mawk", "mount", "procps", "python3", "sed", "tar", "util-linux"),
)
HEADERS = "libpython3.11-dev"
# Dependencies of these only when they are installed (not just unpacked), or not at all here.
UNWANTED = ("*perl*", "debconf_*", "dpkg_*", "libdb5.3_*", "usrmerge_*", "init-system-helpers_*", "media-types_*")
# Directories and files that no test needs; a Python without its tests and its own C library for embedding.
PRUNED = (
    *("usr/share", "usr/include", "boot", "home", "var", "*.a", "*/gconv", "*/perl-base", "*/__pycache__/*.opt-*"),
    *("usr/lib/python3.11/config-*", "usr/lib/python3.11/lib2to3", "usr/lib/python3.11/pydoc_data"),
    *("usr/lib/python3.11/ensurepip", "usr/lib/aarch64-linux-gnu/libpython3.11.so*"),
)
LINKS = {"bin/sh": "dash", "usr/bin/awk": "mawk", "etc/mtab": "/proc/self/mounts"}
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\n",
    "etc/group": "root:x:0:\n",
    "etc/hostname": "lab\n",
    "etc/hosts": "127.0.0.1 localhost lab\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
SITE = "usr/lib/python3/dist-packages"


def ensure() -> Path:
    """The directory with the root: cached, or made now. PackageError when Debian or PyPI cannot be reached."""
    return cache.make(final(), _build, keep=3)


def final() -> Path:
    """Where the root is kept: another place when anything changes that it is made from."""
    folder = Path(__file__).parent
    parts = [(folder / name).read_bytes() for name in ("arm_root.py", "cpio.py", "wheels.py")]
    key = cache.digest([*parts, *wheels.wanted(*_requirements()), str(sys.implementation.cache_tag)])
    return cache.cache_dir() / "arm64-roots" / key


def _requirements() -> tuple[str, str]:
    return (CHECKOUT / "pyproject.toml").read_text(), (CHECKOUT / "requirements.lock").read_text()


def _build(made: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=made.parent) as temporary:
        work = Path(temporary)
        packages, headers, root = (work / name for name in ("packages", "headers", "root"))
        for each in (packages, headers, root):
            each.mkdir()
        debian.download_with_dependencies(list(PACKAGES), packages, debian.ARM)
        for archive in packages.glob("*.deb"):
            if any(fnmatch.fnmatch(archive.name, pattern) for pattern in UNWANTED):
                archive.unlink()
        debian.unpack(packages, root)
        debian.download([HEADERS], headers, debian.ARM)
        debian.unpack(headers, headers)
        shutil.copytree(headers / "usr/include", made / "include")
        wheels.install(*_requirements(), root / SITE)
        compile_python(root, "/")
        with open(made / "base.cpio", "wb") as file:
            _pack(Archive(file), root)
        names = sorted(archive.name for archive in packages.glob("*.deb"))
        (made / "packages.txt").write_text("\n".join(names) + "\n")


def _pack(archive: Archive, root: Path) -> None:
    archive.tree(root, kept)
    for name, target in LINKS.items():
        if not os.path.lexists(root / name):
            archive.link(name, target)
    for name, text in FILES.items():
        archive.data(name, text.encode())
    for name in ("root", "var/tmp", "var/log"):
        archive.folder(name)
    archive.device("dev/console", 5, 1)  # for the first process, before /dev is mounted
    archive.close()


def kept(name: str) -> bool:
    """Whether a file or directory of the unpacked packages, by its path, goes into the root."""
    return not any(fnmatch.fnmatch(name, pattern) for pattern in PRUNED)


def compile_python(root: Path, at: str) -> None:
    """Compile every module under a directory, which the guest will see at another path and not look at for changes."""
    if sys.version_info[:2] != (3, 11):
        return
    compileall.compile_dir(
        root,
        stripdir=str(root),
        prependdir=at,
        quiet=2,
        workers=0,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )

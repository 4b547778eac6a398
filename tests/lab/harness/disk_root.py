"""The disk of a guest that boots as a host does: systemd, services, and files that are still there after a reboot.

Made of Debian's packages, unpacked and never installed, so that it takes neither root nor a running package manager:
what their installation would have done for a test to run (users, links) is written out here. `ensure()` gives the image
of an ext4 file system in the lab's cache.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests import CHECKOUT
from tests.lab.harness import arm_root, cache, debian, wheels
from tests.lab.harness.arm_root import SITE

SYSTEM = (
    *("systemd-sysv", "dbus", "udev", "bash", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip"),
    *("hostname", "iproute2", "kmod", "libc-bin", "libstdc++6", "mawk", "mount", "procps", "python3", "sed", "tar"),
    *("util-linux", "base-files", "netbase", "perl-base"),
)
PACKAGES = (*SYSTEM, "memcached", "fio")
UNWANTED = ("debconf_*", "dpkg_*", "usrmerge_*", "media-types_*")
PRUNED = (
    *("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/i18n", "usr/share/zoneinfo"),
    *("usr/lib/python3.11/lib2to3", "usr/lib/python3.11/pydoc_data"),
)
PYTHON_MORE = ("numpy",)  # needed by the shipped studies
LINKS = {
    "bin/sh": "dash",
    "usr/bin/awk": "mawk",
    "etc/mtab": "/proc/self/mounts",
    "var/run": "/run",
    "etc/systemd/system/multi-user.target.wants/lab.service": "/etc/systemd/system/lab.service",
    "etc/systemd/system/default.target": "/lib/systemd/system/multi-user.target",
}
# Nobody is at this guest, it has no hardware that comes and goes, and an emulated processor has better things to do.
MASKED = (
    *("getty.target", "fstrim.timer", "systemd-tmpfiles-clean.timer", "systemd-udevd.service"),
    *("systemd-udev-trigger.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket"),
    *("systemd-sysusers.service", "systemd-remount-fs.service", "systemd-update-utmp.service"),
    *("systemd-update-utmp-runlevel.service", "systemd-user-sessions.service", "systemd-journal-flush.service"),
    *("systemd-random-seed.service", "systemd-pstore.service", "systemd-binfmt.service", "dev-hugepages.mount"),
    *("dev-mqueue.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount"),
    *("sys-fs-fuse-connections.mount", "modprobe@.service", "kmod-static-nodes.service", "e2scrub_reap.service"),
)
FILES = {
    "etc/passwd": (
        "root:x:0:0:root:/root:/bin/bash\nmessagebus:x:100:100::/nonexistent:/usr/sbin/nologin\n"
        "memcache:x:101:101::/nonexistent:/usr/sbin/nologin\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n"
    ),
    "etc/group": (
        "root:x:0:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nkmem:x:15:\ndialout:x:20:\ncdrom:x:24:\nvideo:x:44:\naudio:x:29:\n"
        "utmp:x:43:\nrender:x:104:\ninput:x:105:\nkvm:x:106:\nsgx:x:107:\nlp:x:7:\ntape:x:26:\nshadow:x:42:\nstaff:x:50:\n"
        "users:x:100:\nmessagebus:x:110:\nmemcache:x:101:\nsystemd-journal:x:111:\nnogroup:x:65534:\n"
    ),
    "etc/hostname": "lab\n",
    "etc/hosts": "127.0.0.1 localhost lab\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/fstab": "",
    "etc/machine-id": "6c616200000000000000000000000001\n",  # one that is there: else it would be a first boot
    "etc/memcached.conf": "-m 64\n-p 11211\n-u memcache\n-l 127.0.0.1\n",
    "etc/default/locale": "LANG=C.UTF-8\n",
    "etc/systemd/system/lab.service": (
        "[Unit]\nDescription=What the lab asks this guest to do\nAfter=dbus.service systemd-logind.service\n\n"
        "[Service]\nExecStart=/bin/sh /etc/lab-start\nKillMode=mixed\nTimeoutStopSec=20\n"
    ),
    "etc/lab-start": (
        "mkdir -p /run/quiet-lab\n"
        "mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 lab /run/quiet-lab || exit 1\n"
        "exec sh /run/quiet-lab/enter\n"
    ),
}
FOLDERS = ("root", "proc", "sys", "dev", "run", "tmp", "var/tmp", "var/log", "var/lib/systemd", "srv", "mnt")
SIZE = "1200M"


def ensure() -> Path:
    """The image: cached, or made now. PackageError when Debian or PyPI cannot be reached."""
    return cache.make(final(), _build, keep=2) / "disk.img"


def _requirements() -> tuple[str, str]:
    return (CHECKOUT / "pyproject.toml").read_text(), (CHECKOUT / "requirements.lock").read_text()


def parts(*more: str) -> list[str | bytes]:
    """The sources of a disk, for `cache.digest`: these files of the lab, and Python's packages."""
    folder = Path(__file__).parent
    wanted = wheels.wanted(*_requirements(), PYTHON_MORE)
    files = [(folder / name).read_bytes() for name in ("disk_root.py", "wheels.py", *more)]
    return [*files, *wanted, str(sys.implementation.cache_tag)]


def final() -> Path:
    return cache.cache_dir() / "disks" / cache.digest(parts())


def _build(made: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=made.parent) as temporary:
        root = unpacked(Path(temporary), PACKAGES, UNWANTED, PYTHON_MORE)
        furnish(root, FILES, LINKS)
        with open(made / "disk.img", "wb") as image:
            image.truncate(0)
        command = ["mkfs.ext4", "-q", "-F", "-E", "root_owner=0:0", "-d", str(root), str(made / "disk.img"), SIZE]
        debian.run(command)


def unpacked(folder: Path, names: Iterable[str], unwanted: Iterable[str], python: Iterable[str] = ()) -> Path:
    """A root in this directory: Debian's packages and all that they need but the `unwanted`, and Python's."""
    packages, root = folder / "packages", folder / "root"
    packages.mkdir()
    root.mkdir()
    debian.download_with_dependencies(list(names), packages, debian.NATIVE)
    for archive in packages.glob("*.deb"):
        if any(fnmatch.fnmatch(archive.name, pattern) for pattern in unwanted):
            archive.unlink()
    debian.unpack(packages, root)
    for name in PRUNED:
        shutil.rmtree(root / name, ignore_errors=True)
    wheels.install(*_requirements(), root / SITE, "x86_64", python)
    arm_root.compile_python(root, "/")
    return root


def furnish(root: Path, files: Mapping[str, str], links: Mapping[str, str]) -> None:
    """Add the files that an installation of the packages would have created, and mask units that no guest needs."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    masked = {f"etc/systemd/system/{unit}": "/dev/null" for unit in MASKED}
    for name, target in {**links, **masked}.items():
        if not os.path.lexists(root / name):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(target)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).unlink(missing_ok=True)
        (root / name).write_text(text)
    (root / "tmp").chmod(0o1777)
    (root / "var/tmp").chmod(0o1777)

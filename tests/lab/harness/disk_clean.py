"""The disk of a guest without this project: a Debian release with systemd, dpkg, apt, man and shells.

Made as disk_root.py makes its own, of unpacked packages; dpkg's database is written out, so that packages can be
installed and removed in the guest, which needs no network for it.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests import CHECKOUT
from tests.lab.harness import cache, debian, disk, disk_root
from tests.lab.harness.kernels import Kernel
from tests.lab.harness.model import SHARED, Machine

PACKAGES = (*disk_root.SYSTEM, "apt", "dpkg", "bash-completion", "fish", "man-db", "zsh")
SIZE = "1500M"
CPU = "Nehalem"  # without AVX: with QEMU's most capable processor, apt's programs die of illegal instructions
FILES = {
    **disk_root.FILES,
    "etc/passwd": disk_root.FILES["etc/passwd"]
    + "man:x:6:12::/var/cache/man:/usr/sbin/nologin\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n",
    "etc/group": disk_root.FILES["etc/group"] + "man:x:12:\n",
    "etc/apt/sources.list": "",
    "var/lib/dpkg/available": "",
}
FOLDERS = (
    "var/lib/dpkg/updates",
    "var/lib/dpkg/triggers",
    "var/cache/apt/archives/partial",
    "var/lib/apt/lists/partial",
)


@dataclass(frozen=True)
class CleanDisk:
    """Boots the disk of a Debian release, by its name."""

    release: str

    def missing(self) -> list[str]:
        return disk.missing()

    def prepare(self, kernel: Kernel) -> tuple[Path, ...]:
        return (self.ensure(),)

    def command(self, machine: Machine, kernel: Kernel, made: tuple[Path, ...], work: Path) -> list[str]:
        return [CPU if word == disk.CPU else word for word in disk.command(machine, kernel, made, work)]

    def entering(self) -> list[str]:
        view = "trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro"
        return [
            f"mkdir -p {CHECKOUT}",
            f"mount -t 9p -o {view} checkout {CHECKOUT}",
            f"echo 1 >{SHARED}/boots",
        ]

    def ensure(self) -> Path:
        """The image: cached, or made now. PackageError when Debian cannot be reached."""
        return cache.make(self.final(), self._build) / "disk.img"

    def final(self) -> Path:
        parts: list[str | bytes] = [Path(__file__).read_bytes(), Path(disk_root.__file__).read_bytes(), self.release]
        return cache.cache_dir() / "clean-disks" / f"{self.release}-{cache.digest(parts)}"

    def _build(self, made: Path) -> None:
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=made.parent) as temporary:
            packages, root = Path(temporary, "packages"), Path(temporary, "root")
            packages.mkdir()
            root.mkdir()
            debian.download_with_dependencies(list(PACKAGES), packages, debian.NATIVE, self.release)
            debian.unpack(packages, root)
            disk_root.furnish(root, FILES, disk_root.LINKS)
            for name in FOLDERS:
                (root / name).mkdir(parents=True, exist_ok=True)
            _register(packages, root / "var/lib/dpkg")
            (made / "disk.img").touch()
            command = ["mkfs.ext4", "-q", "-F", "-E", "root_owner=0:0", "-d", str(root), str(made / "disk.img"), SIZE]
            debian.run(command)


def _register(packages: Path, database: Path) -> None:
    """Tell dpkg that these packages are installed, and which files they have."""
    (database / "info").mkdir(exist_ok=True)
    (database / "info/format").write_text("1\n")
    entries = []
    for archive in sorted(packages.glob("*.deb")):
        control = debian.run(["dpkg-deb", "--field", str(archive)])
        name, arch = (re.search(rf"^{key}: (.+)$", control, re.MULTILINE) for key in ("Package", "Architecture"))
        assert name
        assert arch
        same = "\nMulti-Arch: same\n" in control
        listed = f"{name[1]}:{arch[1]}" if same else name[1]
        contents = debian.run(["dpkg-deb", "--contents", str(archive)])
        paths = re.findall(r"^\S+ +\S+ +\S+ +\S+ +\S+ +\.(/.*?)/?(?: -> .*| link to .*)?$", contents, re.MULTILINE)
        (database / "info" / f"{listed}.list").write_text(
            "".join("/.\n" if path == "/" else f"{path}\n" for path in paths)
        )
        entries.append(control.replace("\n", "\nStatus: install ok installed\n", 1))
    (database / "status").write_text("\n".join(entries))

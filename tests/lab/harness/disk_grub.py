"""x86-64 guests that boot as a PC does: a partition table, GRUB before the partition, Debian's kernel in /boot.

Kernel, initrd and command line are the disk's own. All else is as with the guests of disk.py: the script is run once a
boot, $LAB_BOOT counts from 1, and what is written on the disk is there after a reboot and gone with the guest.

The disk is made as disk_root.py makes its own, without root and without a loop device: the file system is written at
its offset in the image, and GRUB's two parts into the sectors before it, where grub-install would put them on a disk.
In the guest `update-grub` works as on any Debian.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
from pathlib import Path

from tests.lab.harness import cache, debian, disk, disk_root
from tests.lab.harness.kernels import Kernel
from tests.lab.harness.model import Machine

SERIES = "6.12"
PACKAGES = (
    *(*disk_root.SYSTEM, "grub-pc-bin", "grub2-common", "kexec-tools", "irqbalance"),
    *("openssh-server", "python3-venv"),  # started only by guest/fleet.py; a node installs into an environment
)
UNWANTED = ("debconf_*", "usrmerge_*", "media-types_*")  # update-grub compares versions with dpkg
SECTOR, FIRST = 512, 2048  # the partition begins where every tool of today lets it begin: at 1 MiB
SIZE_MIB = 800
ROOT = "/dev/vda1"
IRQBALANCE = "irqbalance.service"  # runs as on a server: quieting stops it, restoring starts it
UUID = "6c616200-0000-4000-8000-000000000002"
MODULES = "usr/lib/grub/i386-pc"
COMMAND_LINE = "console=ttyS0 panic=0 systemd.show_status=0"
DEFAULTS = f"""\
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="{COMMAND_LINE}"
GRUB_DISABLE_OS_PROBER=true
GRUB_DISABLE_RECOVERY=true
GRUB_DISABLE_LINUX_UUID=true
GRUB_TERMINAL=serial
GRUB_SERIAL_COMMAND="serial --unit=0 --speed=115200"
"""
# Until update-grub has written its own, which takes a running system.
FIRST_MENU = """\
linux /boot/vmlinuz-{version} root={root} ro {line} quiet
initrd /boot/initrd.img-{version}
boot
"""


def ensure(kernel: Kernel) -> Path:
    """The image: cached, or made now. PackageError when Debian or PyPI cannot be reached."""
    return cache.make(final(kernel), lambda made: _build(made, kernel), keep=2) / "disk.img"


def final(kernel: Kernel) -> Path:
    made_from = disk_root.parts("disk_grub.py", "disk.py", "disk_init.sh", "cpio.py")
    return cache.cache_dir() / "grub-disks" / cache.digest([*made_from, kernel.version])


def _build(made: Path, kernel: Kernel) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=made.parent) as temporary:
        root = disk_root.unpacked(Path(temporary), PACKAGES, UNWANTED)
        disk_root.furnish(
            root,
            {
                **disk_root.FILES,
                "etc/passwd": f"{disk_root.FILES['etc/passwd']}sshd:x:102:65534::/run/sshd:/usr/sbin/nologin\n",
                "etc/default/grub": DEFAULTS,
                "boot/grub/grub.cfg": FIRST_MENU.format(version=kernel.version, root=ROOT, line=COMMAND_LINE),
            },
            {
                **disk_root.LINKS,
                f"etc/systemd/system/multi-user.target.wants/{IRQBALANCE}": f"/lib/systemd/system/{IRQBALANCE}",
            },
        )
        for name in ("vmlinuz", "config"):
            shutil.copy(kernel.root / "boot" / f"{name}-{kernel.version}", root / "boot")
        disk.initrd(kernel, root / "boot" / f"initrd.img-{kernel.version}")
        shutil.copytree(root / MODULES, root / "boot/grub/i386-pc")
        _write(made / "disk.img", root, _core(root, Path(temporary)))


def _core(root: Path, folder: Path) -> bytes:
    """GRUB as far as it finds its menu and modules in the partition; by Debian's own tool, not installed."""
    libraries = ":".join(str(root / name) for name in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"))
    tool = [str(root / "lib64/ld-linux-x86-64.so.2"), "--library-path", libraries, str(root / "usr/bin/grub-mkimage")]
    image = folder / "core.img"
    tool += ["-O", "i386-pc", "-d", str(root / MODULES), "-p", "(hd0,msdos1)/boot/grub", "-o", str(image)]
    debian.run([*tool, "biosdisk", "part_msdos", "ext2"])
    return image.read_bytes()


def _write(image: Path, root: Path, core: bytes) -> None:
    """The disk. As they come, boot.img reads sector 1 and the first sector of core.img the rest from sector 2 on."""
    assert len(core) <= (FIRST - 1) * SECTOR
    with open(image, "wb") as file:
        file.truncate((SIZE_MIB + 1) << 20)
    offset = f"offset={FIRST * SECTOR},root_owner=0:0"
    debian.run(["mkfs.ext4", "-q", "-F", "-U", UUID, "-E", offset, "-d", str(root), str(image), f"{SIZE_MIB}M"])
    boot = bytearray((root / MODULES / "boot.img").read_bytes())
    # Active, from and to beyond what cylinders can say, Linux, first sector, number of sectors.
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", FIRST, (SIZE_MIB << 20) // SECTOR)
    boot[446:510] = entry.ljust(64, b"\0")  # of four; boot.img has code for floppies there
    with open(image, "r+b") as file:
        file.write(boot)
        file.write(core)


def missing() -> list[str]:
    return disk.missing()


def prepare(kernel: Kernel) -> tuple[Path, ...]:
    return (ensure(kernel),)


def command(machine: Machine, kernel: Kernel, made: tuple[Path, ...], work: Path) -> list[str]:
    return disk.emulator(machine, made[0], work)


def entering() -> list[str]:
    return disk.entering()

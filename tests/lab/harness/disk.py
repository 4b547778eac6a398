"""x86-64 guests that boot from a disk of their own (disk_root.py), with systemd, and that can be rebooted.

The script is run once a boot, by a service: $LAB_BOOT counts from 1. What it writes on the disk is there after a reboot
and gone with the guest. The checkout is a read-only view of this machine's.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from tests import CHECKOUT
from tests.lab.harness import disk_root
from tests.lab.harness.arm_root import SITE
from tests.lab.harness.cpio import Archive
from tests.lab.harness.kernels import Kernel, modules
from tests.lab.harness.model import SHARED, Machine, commands

MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "9pnet_virtio", "9p", "virtio_net")
# No "-no-reboot", and a panic does not reboot: a guest that has panicked is not done in time.
# QEMU 7.2 gets AVX2 wrong: there NumPy's argsort of 64-bit integers is not an order at all in one of four cases.
CPU = "max,avx2=off"
APPEND = "console=ttyS0 quiet panic=0 systemd.show_status=0 rw"
INIT = Path(__file__).with_name("disk_init.sh")


def missing() -> list[str]:
    tools = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "mkfs.ext4": "e2fsprogs"}
    return [package for tool, package in tools.items() if not shutil.which(tool, path=_path())]


def prepare(kernel: Kernel) -> tuple[Path, ...]:
    return (disk_root.ensure(),)


def command(machine: Machine, kernel: Kernel, made: tuple[Path, ...], work: Path) -> list[str]:
    initrd(kernel, work / "boot.cpio")
    line = [*emulator(machine, made[0], work), "-kernel", str(kernel.image), "-initrd", str(work / "boot.cpio")]
    return [*line, "-append", " ".join(part for part in (APPEND, machine.append) if part)]


def emulator(machine: Machine, image: Path, work: Path) -> list[str]:
    """The command for a machine with this disk, its writes thrown away, and the shared directories."""
    line = ["qemu-system-x86_64", "-M", "q35", "-cpu", CPU, "-smp", str(machine.cpus), "-m", machine.memory]
    line += ["-nodefaults", "-display", "none", "-serial", "stdio", "-accel", f"tcg,thread={machine.threads}"]
    line += ["-drive", f"file={image},format=raw,if=virtio,snapshot=on", *machine.qemu_options]
    for tag, path, options in (("lab", work / "share", ""), ("checkout", CHECKOUT, ",readonly=on")):
        line += ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{options}"]
        line += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return line


def initrd(kernel: Kernel, path: Path) -> None:
    """Write the archive that finds the disk and hands over to it: busybox, the modules, disk_init.sh."""
    busybox = shutil.which("busybox", path=_path())
    assert busybox is not None
    with open(path, "wb") as file:
        archive = Archive(file)
        archive.data("bin/busybox", Path(busybox).read_bytes(), 0o755)
        archive.data("init", INIT.read_bytes(), 0o755)
        for number, (name, content) in enumerate(modules(kernel, MODULES)):
            archive.data(f"modules/{number:02}-{name}", content)
        archive.device("dev/console", 5, 1)
        archive.close()


def entering() -> list[str]:
    lines = [
        f"mkdir -p {CHECKOUT}",
        f"mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro checkout {CHECKOUT}",
        f"mount -t tmpfs commands {CHECKOUT}/.venv",  # those of the machine beside it need that machine's Python
        f"mkdir {CHECKOUT}/.venv/bin",
        f"ln -s /usr/bin/python3 {CHECKOUT}/.venv/bin/python",
        f"echo {CHECKOUT} >/{SITE}/checkout.pth",
        f"boots=$(($(cat {SHARED}/boots 2>/dev/null || echo 0) + 1))",
        f"echo $boots >{SHARED}/boots",
        "export LAB_BOOT=$boots",
    ]
    for name, text in commands().items():
        path = f"{CHECKOUT}/.venv/bin/{name}"
        lines += [f"printf %s {shlex.quote(text)} >{path}", f"chmod +x {path}"]
    return lines


def _path() -> str:
    return "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

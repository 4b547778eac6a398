"""arm64 guests: time counted in instructions, which makes them exact.

QEMU's `virt` machine with Cortex-A72 processors and a PMU. With `-icount shift=0` every instruction takes one
nanosecond, on whatever machine and however busy it is; all processors share that clock. Root and checkout come as
two archives that the kernel unpacks into memory (arm_root.py, arm_project.py).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.lab.harness import arm_project, arm_root
from tests.lab.harness.kernels import Kernel
from tests.lab.harness.model import Machine

TOOLS = {"qemu-system-aarch64": "qemu-system-arm", "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu"}
# "panic=-1" and "-no-reboot": a panic ends the emulator.
APPEND = "console=ttyAMA0 quiet panic=-1"


def missing() -> list[str]:
    absent = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    if not Path("/usr/aarch64-linux-gnu/include/stdio.h").exists():
        absent.append("libc6-dev-arm64-cross")
    if not shutil.which("depmod", path="/usr/sbin:/sbin:/usr/bin:/bin"):
        absent.append("kmod")
    return absent


def prepare(kernel: Kernel) -> tuple[Path, ...]:
    return arm_root.ensure() / "base.cpio", arm_project.ensure(kernel)


def command(machine: Machine, kernel: Kernel, made: tuple[Path, ...], work: Path) -> list[str]:
    with open(work / "root.cpio", "wb") as whole:
        for archive in made:
            with open(archive, "rb") as part:
                shutil.copyfileobj(part, whole, 1 << 20)
    return emulator(machine, kernel.image, work / "root.cpio", work / "share")


def emulator(machine: Machine, image: Path, root: Path, share: Path) -> list[str]:
    """The command that starts it; nothing is checked."""
    line = ["qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "cortex-a72", "-m", machine.memory]
    line += ["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"]
    line += ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
    line += ["-fsdev", f"local,id=lab,path={share},security_model=none"]
    line += ["-device", "virtio-9p-pci,fsdev=lab,mount_tag=lab"]
    line += ["-kernel", str(image), "-initrd", str(root)]
    line += ["-append", " ".join(part for part in (APPEND, machine.append) if part)]
    return [*line, *(machine.qemu_options or ("-smp", str(machine.cpus)))]


def entering() -> list[str]:
    return []

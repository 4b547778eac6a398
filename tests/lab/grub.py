"""x86-64 guests that boot from a disk by GRUB (disk_grub.py): kernel, initrd and command line are the disk's own.

Like those of disk.py in all else: the script is run once a boot, $LAB_BOOT counts from 1, and what is written on the
disk is there after a reboot and gone with the guest.
"""

from __future__ import annotations

from pathlib import Path

from tests.lab import disk, disk_grub
from tests.lab.kernels import Kernel
from tests.lab.model import Machine


def missing() -> list[str]:
    return disk.missing()


def prepare(kernel: Kernel) -> tuple[Path, ...]:
    return (disk_grub.ensure(kernel),)


def command(machine: Machine, kernel: Kernel, made: tuple[Path, ...], work: Path) -> list[str]:
    return disk.emulator(machine, made[0], work)


def entering() -> list[str]:
    return disk.entering()

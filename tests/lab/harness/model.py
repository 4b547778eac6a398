"""The types of the lab: machines, their results, and errors."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests import CHECKOUT
from tests.lab.harness import kernels

SHARED = "/run/quiet-lab"  # where the guest sees the shared directory


@dataclass(frozen=True)
class Machine:
    """The emulated machine. `prelude` prepares the guest (as root, sh -e) before every script.

    `series` names the kernel, and with it the architecture; `vng_options` and `cpufreq` are for x86-64 only.
    """

    name: str
    series: str
    cpus: int = 4
    memory: str = "2G"
    append: str = ""
    vng_options: tuple[str, ...] = ()
    qemu_options: tuple[str, ...] = ()
    cpufreq: bool = False
    # One emulator thread for all processors: with one each, the emulator now and then runs code that the guest's
    # kernel has just patched in its old form, and the kernel panics ("Oops: int3").
    threads: str = "single"
    prelude: str = ""
    queues: int = 0  # of a network device (x86-64); none without
    disk: bool = False  # boots from a disk of its own, with systemd, and can be rebooted (x86-64)
    grub: bool = False  # the same, by its disk's own boot loader, kernel and command line
    clean: str = ""  # a release of Debian: boots its disk with systemd, on which nothing of this project is (x86-64)

    @property
    def arch(self) -> str:
        """The kernel's word for it."""
        return "arm64" if self.series.endswith("-arm64") else "x86_64"

    @property
    def kind(self) -> str:
        """How it is started: "disk", "grub" or a clean disk's release, else its architecture."""
        return self.clean or ("grub" if self.grub else "disk" if self.disk else self.arch)


@dataclass(frozen=True)
class Result:
    code: int
    output: str
    seconds: float
    console_tail: str
    files: dict[str, str] = field(default_factory=dict)


class GuestError(Exception):
    """The guest could not be booted, or ended before its script did; ends with the console's last lines."""


class EmulatorFaultError(GuestError):
    """The guest's kernel died of the emulator's known fault (see `Machine.threads`), not of its own."""


class GuestTimeoutError(GuestError):
    """The script was not done in time; `output` is what it had printed until then."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


def commands() -> dict[str, str]:
    """Name -> script of each command that this checkout's pyproject.toml installs, for guests without its .venv."""
    scripts: dict[str, str] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["scripts"]
    texts = {}
    for name, entry in scripts.items():
        module, _, function = entry.partition(":")
        texts[name] = (
            f"#!/usr/bin/python3 -P\nimport sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
        )
    return texts


class Architecture(Protocol):
    """How the guests of one architecture are started: a module of this shape for each."""

    def missing(self) -> list[str]:
        """The packages to install before anything can boot, by the names of packages."""

    def prepare(self, kernel: kernels.Kernel) -> tuple[Path, ...]:
        """Make what else is needed and is then kept. PackageError when it cannot be fetched."""

    def command(self, machine: Machine, kernel: kernels.Kernel, made: tuple[Path, ...], work: Path) -> list[str]:
        """Starts the emulator, with what was prepared; the guest runs `sh SHARED/enter` as root.

        It sees `work`/share at SHARED.
        """

    def entering(self) -> list[str]:
        """Lines of sh that the guest runs before anything else."""

"""The project's kernel module for the lab's kernels: built here, strictly, and brought into a guest by its script.

boot(machine, kmod.loading(machine) + "cbench ...", timeout=...)
"""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

from cbench.measure.inkernel import module as kmodule
from tests import CHECKOUT
from tests.lab.harness import cache, headers, kernels
from tests.lab.harness.debian import run
from tests.lab.harness.model import Machine

STRICT = ("W=1", "KCFLAGS=-Werror")  # W=1 is where Kbuild has -Wextra
SUFFIXES = (".c", ".h")


def built(machine: Machine) -> Path:
    """The module for the machine's kernel, without its debugging information; built once for each state of its sources.

    PackageError when its kernel's headers cannot be had; UsageError when it does not build without a warning.
    """
    version = kernels.ensure(machine.series).version
    sources = sorted(
        path
        for folder in ("cbench/kmod", "cbench/c")
        for path in (CHECKOUT / folder).rglob("*")
        if path.suffix in SUFFIXES or path.name in ("Kbuild", "Makefile")
    )
    sources.append(Path(kmodule.__file__))
    final = cache.cache_dir() / "modules" / cache.digest([version, *sources])
    return cache.make(final, lambda made: _build(made, version, machine.arch)) / "cbench.ko"


def _build(made: Path, version: str, arch: str) -> None:
    make = headers.make_command(version, arch)
    folder = made / "build"
    module = kmodule.build(folder, make, *STRICT)
    cross = headers.CROSS if arch == "arm64" else ""
    run([f"{cross}strip", "--strip-debug", "-o", str(made / "cbench.ko"), str(module)])
    shutil.rmtree(folder)


def of_tests(machine: Machine, folder: Path) -> Path:
    """A module of the tests: the one .c file of a directory, with its Kbuild. PackageError as built()."""
    version = kernels.ensure(machine.series).version
    sources = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES or path.name == "Kbuild")
    name = next(path.stem for path in sources if path.suffix == ".c")

    def make(made: Path) -> None:
        for path in sources:
            shutil.copy(path, made)
        run([*headers.make_command(version, machine.arch), f"M={made}", *STRICT, "modules"])

    return cache.make(cache.cache_dir() / "test-modules" / cache.digest([version, *sources]), make) / f"{name}.ko"


def loading(machine: Machine) -> str:
    """Lines of a guest's script: the module as /tmp/cbench.ko, and loaded."""
    text = base64.encodebytes(built(machine).read_bytes()).decode()
    return f"base64 -d >/tmp/cbench.ko <<'END'\n{text}END\ninsmod /tmp/cbench.ko || exit 1\n"

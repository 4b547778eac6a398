"""The project's two C extensions for arm64, compiled on this machine.

CFFI writes the same C for every architecture; which sources belong to it and with what options they are compiled
is taken from the project's own build files, so that both architectures run the same code.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from tests import CHECKOUT
from tests.lab.harness import cache
from tests.lab.harness.debian import PackageError

COMPILER = "aarch64-linux-gnu-gcc"
BUILDERS = ("cbench._build", "quiet.noise._build")
# As Debian compiles extensions of its Python, before the project's own options, which therefore win.
FLAGS = ("-shared", "-fPIC", "-DNDEBUG", "-DPy_LIMITED_API=0x030b0000", "-fwrapv", "-Wall", "-O2")
TIMEOUT_S = 300


def ensure(include: Path) -> Path:
    """A directory with both extensions at their places in the checkout; `include` has Python's headers for arm64."""
    sources = sorted(path for top in ("cbench", "quiet") for path in (CHECKOUT / top).rglob("*.[ch]"))
    # What CFFI writes beside the build files in a build by hand is not a source.
    sources = [path for path in sources if path.parent.name not in ("cbench", "noise")]
    builders = [CHECKOUT / (name.replace(".", "/") + ".py") for name in BUILDERS]
    version = _run([COMPILER, "--version"]).splitlines()[0]
    key = cache.digest([Path(__file__).read_bytes(), *sources, *builders, version, include.parent.name])
    return cache.make(cache.cache_dir() / "arm64-c" / key, lambda made: _build(made, include), keep=10)


def _build(made: Path, include: Path) -> None:
    for name in BUILDERS:
        with tempfile.TemporaryDirectory() as temporary:
            with contextlib.redirect_stdout(sys.stderr):  # it reports the files that it writes
                extension = import_module(name).ffibuilder.distutils_extension(temporary, verbose=False)
            final = made / (extension.name.replace(".", "/") + ".abi3.so")
            final.parent.mkdir(parents=True, exist_ok=True)
            places = [include / "python3.11", include, *extension.include_dirs]
            command = [COMPILER, *FLAGS, *extension.extra_compile_args, *(f"-I{place}" for place in places)]
            _run([*command, *extension.sources, "-o", str(final)])


def _run(command: list[str]) -> str:
    if not shutil.which(command[0]):
        raise PackageError(f"{command[0]} (Debian package gcc-aarch64-linux-gnu) is missing")
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise PackageError(f"{command[0]} exited with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout

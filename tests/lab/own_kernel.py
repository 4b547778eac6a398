"""Build the lab's own kernel: Debian's source, configured by kernel-configs/lab.config, into the lab's cache.

    python -m tests.lab.own_kernel

By hand only: no test needs it, and it takes some minutes of all cores and 3 GB of disk meanwhile. Afterwards
`python -m tests.lab own 'COMMAND'` boots it. Its name has a hash of what lab.config sets in it, so that it is
built again when that changes, and only then.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import debian, kernels
from tests.lab.cache import cache_dir
from tests.lab.kernels import Kernel, KernelError
from tests.lab.process import ending_on_signals

SOURCE = "linux-source-6.12"
# What a build needs: a tool or a header, and Debian's package that has it.
TOOLS = {
    "apt-get": "apt",
    "bc": "bc",
    "bison": "bison",
    "depmod": "kmod",
    "dpkg-deb": "dpkg",
    "flex": "flex",
    "gcc": "gcc",
    "ld": "binutils",
    "make": "make",
    "perl": "perl",
    "tar": "tar",
    "xz": "xz-utils",
}
HEADERS = {"stdio.h": "libc6-dev", "gelf.h": "libelf-dev", "openssl/opensslv.h": "libssl-dev"}
TAIL_LINES = 20


def missing() -> list[str]:
    """Debian packages that a build needs and that are not here."""
    absent = [package for tool, package in TOOLS.items() if not shutil.which(tool, path=debian.search_path())]
    if "gcc" not in absent:
        absent += [package for header, package in HEADERS.items() if not _has_header(header)]
    return absent


def _has_header(name: str) -> bool:
    compile_nothing = ["gcc", "-fsyntax-only", "-include", name, "-x", "c", os.devnull]
    return subprocess.run(compile_nothing, capture_output=True, check=False).returncode == 0


@contextmanager
def _step(what: str) -> Iterator[None]:
    print(f"==> {what}", flush=True)
    started = time.monotonic()
    yield
    print(f"    done in {time.monotonic() - started:.0f} s", flush=True)


def build() -> Kernel:
    """The kernel: cached, or built now. KernelError when that fails."""
    if kernel := kernels.cached(kernels.OWN):
        return kernel
    if lacking := missing():
        packages = " ".join(lacking)
        raise KernelError(
            f"missing: {packages} (install with: sudo apt-get install --no-install-recommends {packages})"
        )
    folder = cache_dir() / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    with ending_on_signals(), tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as temporary:
        work = Path(temporary)
        with _step(f"fetching {SOURCE} (some 150 MB)"):
            source = _fetch(work)
        make = ["nice", "-n", "19", "make", "-s", "-C", str(source), f"LOCALVERSION=-{kernels.own_tag()}"]
        with _step("configuring it"):
            shutil.copy(kernels.LAB_CONFIG, source / "kernel/configs/lab.config")
            _run([*make, "x86_64_defconfig", "kvm_guest.config", "lab.config"], work)
            _check_config((source / ".config").read_text())
        jobs = len(os.sched_getaffinity(0))
        with _step(f"building it with {jobs} jobs (7 minutes on two cores that have nothing else to do)"):
            _run([*make, f"-j{jobs}", "bzImage"], work)
        version = _run([*make, "kernelrelease"], work).split()[-1]
        return _keep(source, version, work, folder / version)


def _fetch(work: Path) -> Path:
    kernels.unpack([SOURCE], work, work / "package")
    (archive,) = (work / "package/usr/src").glob("linux-source-*.tar.xz")
    _run(["tar", "-xJf", str(archive), "-C", str(work)], work)
    (source,) = work.glob("linux-source-*/")
    return source


def _check_config(made: str) -> None:
    """What was asked for has to have become so: the configuration drops silently what depends on something else."""
    asked = re.findall(r"^(CONFIG_\w+)=(.*)$", kernels.LAB_CONFIG.read_text(), re.MULTILINE)
    got = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", made, re.MULTILINE))
    if wrong := [f"{name}={value}" for name, value in asked if got.get(name, "n") != value]:
        raise KernelError(f"{kernels.LAB_CONFIG.name} asks for what this source does not offer: {', '.join(wrong)}")


def _keep(source: Path, version: str, work: Path, final: Path) -> Kernel:
    """Lay it out as Debian's packages do, and put that into the cache at once and whole."""
    root = work / "root"
    (root / "boot").mkdir(parents=True)
    modules = root / "lib/modules" / version
    modules.mkdir(parents=True)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        (modules / name).touch()
    shutil.copy(source / "arch/x86/boot/bzImage", root / "boot" / f"vmlinuz-{version}")
    shutil.copy(source / ".config", root / "boot" / f"config-{version}")
    _run(["depmod", "-b", str(root), version], work)
    try:
        root.rename(final)
    except OSError:
        if not final.is_dir():  # somebody else was faster: theirs is as good
            raise
    return Kernel(version, final)


def _run(command: list[str], folder: Path) -> str:
    """Run a command; its errors go to a file, the last lines of which are shown when it fails."""
    env = {**os.environ, "PATH": debian.search_path(), "LC_ALL": "C"}
    with open(folder / "errors", "w+b") as errors:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, check=False
        )
        if done.returncode:
            errors.seek(0)
            last = (done.stdout + errors.read()).decode(errors="replace").splitlines()[-TAIL_LINES:]
            raise KernelError("\n".join([f"{' '.join(command)} ended with {done.returncode}:", *last]))
    return done.stdout.decode(errors="replace")


def main() -> int:
    try:
        kernel = build()
    except KeyboardInterrupt:
        print("interrupted; nothing was kept", file=sys.stderr)
        return 130
    except (KernelError, subprocess.TimeoutExpired, OSError) as error:
        print(f"no own kernel: {error}", file=sys.stderr)
        return 1
    print(f"own kernel: {kernel.version} in {kernel.root}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

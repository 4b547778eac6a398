"""Build the lab's own kernel: Debian's source, configured by the fragments of kernel-configs/, into the lab's cache.

    make kernel

By hand only: no test builds it, because it takes some minutes of all cores and 3 GB of disk. Afterwards
`python -m tests.lab own 'COMMAND'` boots it. Its name has a hash of what the fragments set, so that it is built again
when that changes, and only then. An interrupted build continues where it was when it is started again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quiet.kernel import config, fragments
from tests.lab.harness import debian, kernels
from tests.lab.harness.cache import cache_dir
from tests.lab.harness.kernels import Kernel, KernelError
from tests.lab.harness.process import ending_on_signals

SOURCE = "linux-source-6.12"
# The requirements of a build: a tool or a header, and Debian's package that has it.
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
    """The kernel: cached, or built now. KernelError when that fails; completed work is kept."""
    if kernel := kernels.cached(kernels.OWN):
        return kernel
    if lacking := missing():
        packages = " ".join(lacking)
        raise KernelError(
            f"missing: {packages} (install with: sudo apt-get install --no-install-recommends {packages})"
        )
    folder = cache_dir() / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    with ending_on_signals(), open(folder / ".build-lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KernelError("another process is building it right now") from None
        return kernels.cached(kernels.OWN) or _build(folder)


def _build(folder: Path) -> Kernel:
    tag = kernels.own_tag()
    work = folder / f".build-{tag}"
    for other in folder.glob(".build-own-*"):
        if other != work:  # begun for fragments that have changed since
            shutil.rmtree(other)
    work.mkdir(exist_ok=True)
    source = _source(work)
    make = ["nice", "make", "-s", "-C", str(source), f"LOCALVERSION=-{tag}"]
    with _step("configuring it"):
        _configure(source, make, work)
    jobs = len(os.sched_getaffinity(0))
    with _step(f"building it with {jobs} jobs (7 minutes on two cores that have nothing else to do)"):
        _run([*make, f"-j{jobs}", "bzImage"], work)
    version = _run([*make, "kernelrelease"], work).split()[-1]
    kernel = _keep(source, version, work, folder / version)
    shutil.rmtree(work)
    return kernel


def _source(work: Path) -> Path:
    """The unpacked source, which gets its name only when it is whole."""
    source = work / "source"
    if not source.is_dir():
        with _step(f"fetching {SOURCE} (some 150 MB)"), tempfile.TemporaryDirectory(dir=work) as temporary:
            fresh = Path(temporary)
            try:
                kernels.unpack([SOURCE], fresh, fresh / "package")
            except debian.PackageError as error:
                raise KernelError(f"{SOURCE}: {error}") from None
            (archive,) = (fresh / "package/usr/src").glob("linux-source-*.tar.xz")
            _run(["tar", "-xJf", str(archive), "-C", str(fresh)], work)
            (unpacked,) = fresh.glob("linux-source-*/")
            unpacked.rename(source)
    return source


def _configure(source: Path, make: list[str], work: Path) -> None:
    """The fragments over the kernel's own defaults; an unchanged result leaves what was built from it valid."""
    names = []
    for fragment in kernels.OWN_FRAGMENTS:
        names.append(f"quiet-{fragment}.config")  # the kernel has a debug.config of its own
        (source / "kernel/configs" / names[-1]).write_text(fragments.text(f"{fragment}.config"))
    _run([*make, "x86_64_defconfig", "kvm_guest.config", *names], work)
    _check_config(config.parse((source / ".config").read_text()))


def _check_config(got: dict[str, str]) -> None:
    """The requested options must be in effect: the configuration drops silently what depends on something else."""
    options = fragments.load(kernels.OWN_FRAGMENTS)
    asked = {option.name: option.wanted for option in options if option.only in ("", "x86")}
    if wrong := [f"{name}={value}" for name, value in asked.items() if got.get(name, "n") != value]:
        raise KernelError(f"the fragments ask for what this source does not offer: {', '.join(wrong)}")


def _keep(source: Path, version: str, work: Path, final: Path) -> Kernel:
    """Lay it out as Debian's packages do, and put that into the cache at once and whole."""
    root = work / "root"
    shutil.rmtree(root, ignore_errors=True)
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
        if not final.is_dir():  # another process was faster: its directory is as good
            raise
    return Kernel(version, final)


def _run(command: list[str], folder: Path) -> str:
    """Run a command; its errors go to a file, whose last lines are shown when it fails."""
    env = {**os.environ, "PATH": debian.search_path(), "LC_ALL": "C"}
    with open(folder / "errors", "w+b") as errors:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, check=False
        )
        if done.returncode:
            errors.seek(0)
            last = (done.stdout + errors.read()).decode(errors="replace").splitlines()[-TAIL_LINES:]
            raise KernelError("\n".join([f"{' '.join(command)} exited with {done.returncode}:", *last]))
    return done.stdout.decode(errors="replace")


def main() -> int:
    try:
        kernel = build()
    except KeyboardInterrupt:
        print("interrupted; when started again, it continues from here", file=sys.stderr)
        return 130
    except (KernelError, subprocess.TimeoutExpired, OSError) as error:
        print(f"no own kernel: {error}", file=sys.stderr)
        return 1
    print(f"own kernel: {kernel.image}")
    print("boot it with: .venv/bin/python -m tests.lab own 'COMMAND'")
    return 0


if __name__ == "__main__":
    sys.exit(main())

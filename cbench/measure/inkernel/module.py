"""Build the kernel module, and determine why it is not loaded.

`python -m cbench.measure.inkernel.module [FOLDER]` builds it against the headers of the running kernel, or the headers
in $KDIR. This works with an installed cbench too, because the sources are part of the package. ARCH and CROSS_COMPILE
have the same meaning as in the kernel's own build. The build needs no root privileges; loading the module does.

Sources: Documentation/kbuild/modules.rst, admin-guide/sysctl/kernel.rst (modules_disabled), kernel_lockdown.7.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from quiet import QuietError, Reader, UsageError

SOURCES = Path(__file__).resolve().parents[2]
NAME = "cbench"
# Skip type information (BTF) for tracers: it needs pahole and the kernel image, and is of no use here.
NO_TYPES = "CONFIG_DEBUG_INFO_BTF_MODULES="
# Variables that a calling make sets for its own jobs, which must not reach this build.
FROM_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
LOAD = "build it (`make kmod`, or `python -m cbench.measure.inkernel.module`) and load it as root: insmod .../cbench.ko"


def headers(environment: Mapping[str, str], release: str) -> Path:
    """The kernel's build tree: $KDIR, or that of the running kernel. Raises UsageError, with the package to install, if
    there is none.
    """
    given = environment.get("KDIR")
    tree = Path(given or f"/lib/modules/{release}/build")
    if (tree / "Makefile").is_file():
        return tree.resolve()
    if given:
        raise UsageError(f"KDIR={given}: no kernel build tree (no Makefile in it); set KDIR to a build tree")
    raise UsageError(
        f"no headers of the running kernel ({tree} is missing): install linux-headers-{release} "
        "(apt install), or set KDIR to its build tree"
    )


def build(folder: Path, make: Sequence[str], *options: str) -> Path:
    """Build the module in `folder` and return its path.

    `make`: `make -C TREE` plus the variables of a cross-build. The output of make goes to stderr. Raises UsageError if
    `folder` cannot be written, if make is missing, or if the build fails. The message about a failed build contains the
    first line that reports an error.
    """
    folder = folder.resolve()
    wanted = shutil.ignore_patterns("*.py", "__pycache__", "*.o", "*.ko", "*.cmd", "*.mod*")
    try:
        for name in ("kmod", "c"):  # the module's sources, and the sources that they include
            shutil.copytree(SOURCES / name, folder / name, ignore=wanted, dirs_exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}; give another directory to build in") from None
    command = [*make, "-s", f"M={folder / 'kmod'}", NO_TYPES, *options, "modules"]
    environment = {name: value for name, value in os.environ.items() if name not in FROM_MAKE}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"{command[0]}: {error.strerror}; install make") from None
    said = (done.stderr + done.stdout).strip()
    if said:
        sys.stderr.write(said + "\n")
    if done.returncode:
        lines = said.splitlines() or ["no message"]
        why = next((line for line in lines if "rror" in line or "not found" in line), lines[-1])
        raise UsageError(f"the module does not build: {why.strip()}")
    return Path(shutil.copy(folder / "kmod" / f"{NAME}.ko", folder))


def why_absent(host: Reader | None = None) -> str:
    """The reason why /dev/cbench is missing and the remedy, in one line."""
    host = host or Reader()
    if host.text("/proc/modules") is None:
        return "this kernel was built without loadable modules (CONFIG_MODULES)"
    if host.text("/proc/sys/kernel/modules_disabled") == "1":
        return "module loading is disabled until the next boot (kernel.modules_disabled = 1)"
    if host.text(f"/sys/module/{NAME}/version") is not None:
        return "the module is loaded, but /dev/cbench is missing: is devtmpfs mounted on /dev?"
    lockdown = host.text("/sys/kernel/security/lockdown") or "[none]"
    mode = lockdown.partition("[")[2].partition("]")[0]
    locked = "" if mode == "none" else f"the kernel is locked down ({mode}; Secure Boot does that)"
    if not locked and host.text("/sys/module/module/parameters/sig_enforce") == "Y":
        locked = "the kernel enforces module signatures (module.sig_enforce)"
    if locked:
        return f"{locked}: only a signed module can be loaded; sign cbench.ko with a key that this kernel trusts"
    return f"the kernel module is not loaded: {LOAD}"


def main(arguments: Sequence[str]) -> int:
    """Build the module in the given directory and, unless KDIR is set, print how to load it. Returns the exit code."""
    release = platform.release()
    folder = Path(arguments[0] if arguments else f"cbench-kmod-{release}")
    try:
        if len(arguments) > 1 or str(folder).startswith("-"):
            raise UsageError("usage: python -m cbench.measure.inkernel.module [FOLDER]")
        module = build(folder, ["make", "-C", str(headers(os.environ, release))])
    except QuietError as error:
        sys.stderr.write(f"kmod: {error}\n")
        return error.exit_code
    sys.stdout.write(f"built {module}\n")
    if "KDIR" not in os.environ:
        sys.stdout.write(f"load it as root: insmod {module}; unload it: rmmod {NAME}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

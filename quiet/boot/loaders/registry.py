"""Register the boot loaders in search order: a loader that reads another loader's files precedes that loader."""

from __future__ import annotations

import re

from quiet.boot.loaders import entries, grub, small
from quiet.boot.loaders.loader import BootFiles, Loader
from quiet.errors import Refused, UsageError
from quiet.machine import virtualization
from quiet.machine.facts import Facts

LOADERS: tuple[Loader, ...] = (
    small.OSTREE,
    small.RASPBERRY,
    entries.BLS,
    entries.SYSTEMD,
    grub.LOADER,
    small.ZIPL,
    small.EXTLINUX,
)


def detect(files: BootFiles, requested: str | None = None) -> tuple[Loader, str, tuple[str, ...]]:
    """The boot loader of this host, the evidence for it, and the names of other loaders whose files exist too.

    `requested` is the value of --loader. Raises UsageError for an unknown name, Refused if no loader is detected.
    """
    if requested is not None and requested not in {loader.name for loader in LOADERS}:
        known = ", ".join(loader.name for loader in LOADERS)
        raise UsageError(f"--loader {requested}: no such boot loader; known boot loaders: {known}")
    here = [(loader, reason) for loader in LOADERS if (reason := loader.found(files))]
    chosen = [(loader, reason) for loader, reason in here if requested in (None, loader.name)]
    if requested and not chosen:
        raise Refused(f"--loader {requested}: not detected here; omit --loader, or name another boot loader")
    if not chosen:
        raise Refused(_nowhere(files))
    loader, reason = chosen[0]
    return loader, reason, tuple(other.name for other, _ in here if other is not loader)


def elsewhere(files: BootFiles) -> str:
    """A sentence that names the tool that would overwrite quiet's changes, and the file to change instead; "" if there
    is no such tool.
    """
    if files.reader.exists("/etc/NIXOS"):
        return (
            "NixOS regenerates its boot entries: set boot.kernelParams in its configuration, then run "
            "`nixos-rebuild boot`"
        )
    if re.search(r"""^LOADER_TYPE=["']?grub2-bls""", files.text("/etc/sysconfig/bootloader") or "", re.MULTILINE):
        return (
            "openSUSE's grub2-bls is not supported: edit /etc/kernel/cmdline, then run `sdbootutil update-all-entries`"
        )
    if files.reader.exists("/etc/update-extlinux.conf"):
        return (
            "Alpine regenerates extlinux.conf: set default_kernel_opts in /etc/update-extlinux.conf, then run "
            "`update-extlinux`"
        )
    return ""


def _nowhere(files: BootFiles) -> str:
    machine = virtualization.virtual(Facts(files.reader))
    if "container" in machine:
        return "a container uses the kernel and the command line of its host; run `quiet boot` on the host"
    if "WSL" in machine:
        return "WSL has no boot loader; add the parameters of `quiet plan` to kernelCommandLine= in Windows' .wslconfig"
    return (
        "no supported boot loader was found: use `quiet boot once`, which needs none, or add the parameters of "
        "`quiet plan` to the kernel command line yourself"
    )

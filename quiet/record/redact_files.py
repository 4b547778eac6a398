"""Redact the files on a disk: of each type the lines that quiet reads are rebuilt from their known parts.

This is an allow list: a line or a file that is not in it is left out, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from quiet.kernel import fragments
from quiet.record import redact_boot_files as boot
from quiet.record.redact_command_line import MASKED
from quiet.targets.systemd import PATHS

_INSTALL = ("WantedBy", "RequiredBy", "UpheldBy", "Alias", "After")
_SECTIONS = ("[Unit]", "[Service]", "[Timer]", "[Socket]", "[Path]", "[Mount]", "[Slice]", "[Install]")
_MANAGERS = re.compile(
    "docker|podman|lxc|lxc-libvirt|lxd|incus|systemd-nspawn|oci|rkt|wsl|proot|pouch|kubernetes|containerd|container-other"
)
_OPTION = re.compile(r"(?:# )?(CONFIG_\w+)(?:=(?:[ymn]|-?\d+|0x[0-9a-f]+)| is not set)")
_UNITS = tuple(f"{folder}/" for folder in PATHS)
Names = Callable[[str], str]


def known_options() -> frozenset[str]:
    """The kernel's options that quiet asks for."""
    options = [option for name in (*fragments.NAMES, fragments.LAB) for option in fragments.load([name])]
    names = {name for option in options for name in (option.name, *option.names)}
    return frozenset(names | {"CONFIG_X86", "CONFIG_ARM64", "CONFIG_KEXEC_SIG"})


def redacted(path: str, text: str, unit: Names, options: frozenset[str]) -> str:
    """A file's content, redacted; "" for a file that is not known to be read.

    `unit` redacts a unit's name, `options` are the kernel's that quiet knows.
    """
    boot_file = boot.redacted(path, text)
    if boot_file is not None:
        return boot_file
    if path in ("/run/systemd/container", "/run/host/container-manager"):
        return text if not text or _MANAGERS.fullmatch(text) else MASKED
    if path.startswith(_UNITS):
        return "\n".join(_unit(text, unit)) or "[Unit]" if text else ""  # an empty one is a masked one
    if "/config" in path and "CONFIG_" in text:
        lines = ((line, _OPTION.fullmatch(line)) for line in text.splitlines())
        return "\n".join(line for line, match in lines if match and match[1] in options)
    return ""


def _unit(text: str, unit: Names) -> Iterator[str]:
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if line.strip() in _SECTIONS:
            yield line.strip()
        elif key.strip() in _INSTALL and not value.rstrip().endswith("\\"):
            yield f"{key.strip()}={' '.join(unit(word) for word in value.split())}"

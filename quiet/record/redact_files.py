"""Redact the files on a disk: for each file type, keep only the lines that quiet reads, rebuilt from their known parts.

This is an allow list: any other line or file is omitted, regardless of its content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase

from quiet.boot.loaders.loader import BEGIN, END
from quiet.boot.loaders.shell import variables
from quiet.kernel import fragments
from quiet.record.redact_command_line import MASKED, parameters
from quiet.targets.systemd import PATHS

_INSTALL = ("WantedBy", "RequiredBy", "UpheldBy", "Alias", "After")
_SECTIONS = ("[Unit]", "[Service]", "[Timer]", "[Socket]", "[Path]", "[Mount]", "[Slice]", "[Install]")
_MANAGERS = re.compile(
    "docker|podman|lxc|lxc-libvirt|lxd|incus|systemd-nspawn|oci|rkt|wsl|proot|pouch|kubernetes|containerd|container-other"
)
_OPTION = re.compile(r"(?:# )?(CONFIG_\w+)(?:=(?:[ymn]|-?\d+|0x[0-9a-f]+)| is not set)")
_UNITS = tuple(f"{folder}/" for folder in PATHS)
_LINES = re.compile(
    r"\b(GRUB_CMDLINE_(?:LINUX|XEN)(?:_DEFAULT|_RECOVERY|_XEN_REPLACE(?:_DEFAULT)?)?|U_BOOT_PARAMETERS|kernelopts|default_kernelopts)\b"
)
_SETTINGS = re.compile(r"GRUB_(TIMEOUT|TIMEOUT_STYLE|DEFAULT|ENABLE_BLSCFG|DISABLE_RECOVERY|ENABLE_CRYPTODISK)")
_SETTING = re.compile(r"true|false|saved|menu|hidden|countdown|-?\d{1,4}|y|n|")
_SET = re.compile(r"(?P<indent>\s*)(?:export\s+)?(?P<name>[A-Za-z_]\w*)(?P<op>\+?=)(?P<value>.*)", re.DOTALL)
_REFERENCE = re.compile("\x01(\\w+)\x02")
_KERNEL = re.compile(r"(\s*)(linux|linux16|linuxefi|multiboot2?|module2?)\s+\S+(.*)")
_MARK = re.compile("|".join(map(re.escape, (BEGIN, END))))
_ENTRY = re.compile(r"\s*(menuentry|submenu)\b")
_GRUB_SET = re.compile(r"\s*set\s+((?:default_)?kernelopts)=(.*)")
_KEY = re.compile(r"(\s*)(\w[\w-]*)(\s+)(.*)")
_ZIPL = re.compile(r"(\s*parameters[ \t]*=[ \t]*)(.*)")
Names = Callable[[str], str]


def known_options() -> frozenset[str]:
    """The kernel options that quiet reads."""
    options = fragments.load((*fragments.NAMES, fragments.LAB))
    names = {name for option in options for name in (option.name, *option.names)}
    return frozenset(names | {"CONFIG_X86", "CONFIG_ARM64", "CONFIG_KEXEC_SIG"})


def redacted(path: str, text: str, unit: Names, options: frozenset[str]) -> str:
    """The redacted content of a file; "" for a file that quiet does not read.

    `unit`: a function that redacts a unit's name; `options`: the kernel options that quiet knows.
    """
    boot_file = _boot_file(path, text)
    if boot_file is not None:
        return boot_file
    if path in ("/run/systemd/container", "/run/host/container-manager"):
        return text if not text or _MANAGERS.fullmatch(text) else MASKED
    if path.startswith(_UNITS):
        return "\n".join(_unit(text, unit)) or "[Unit]" if text else ""  # an empty unit file is a masked unit
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


def _boot_file(path: str, text: str) -> str | None:
    """The redacted content of a boot loader's file; None for any other file."""
    for patterns, function in _TYPES:
        if any(fnmatchcase(path, pattern) for pattern in patterns):
            return "\n".join(function(text)) + ("\n" if text.endswith("\n") else "")
    return None


def _shell(text: str) -> Iterator[str]:
    """Yield quiet's marks, and the assignments of kernel command lines and a few plain settings, with other variables
    substituted.
    """
    others: list[str] = []
    for line in text.replace("\\\n", "").splitlines():
        if _MARK.fullmatch(line.strip()):
            yield line.strip()
        match = _SET.fullmatch(line)
        if not match:
            continue
        name, op, value = match["name"], match["op"], match["value"]
        if _LINES.fullmatch(name):
            yield f'{name}{op}"{_line(value, others)}"'
        elif _SETTINGS.fullmatch(name):
            plain = _value(value, others)
            if _SETTING.fullmatch(plain):
                yield f"{name}{op}{plain}"
        else:
            others.append(f"{name}{op}{value}")


def _value(value: str, others: Iterable[str]) -> str:
    """The value as the shell reads it, with other variables substituted; variables in _LINES become \\x01NAME\\x02."""
    text = "\n".join((*others, f"_={value}"))
    kept = {match[0] for match in _LINES.finditer(text)}
    marks = [f"{name}='\x01{name}\x02'" for name in sorted(kept)]
    return variables(["\n".join((*marks, text))]).get("_", "")


def _line(value: str, others: Iterable[str]) -> str:
    text = _value(value, others)
    kept = []
    for part in re.split("(\x01\\w+\x02)", text):
        reference = _REFERENCE.fullmatch(part)
        kept.append(f"${{{reference[1]}}}" if reference else parameters(part))
        kept += ["--"] if "--" in part.split() else []  # a variable may contain more words, which then are for init
    lead = " " if text[:1].isspace() else ""  # += appends it directly to the existing value
    return lead + " ".join(filter(None, kept))


def _grub(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", "").splitlines():
        if match := _ENTRY.match(line):
            yield f"{match[1]} '{MASKED}' {{"
        elif match := _KERNEL.fullmatch(line):
            yield f"{match[1]}{match[2]} /{MASKED} {parameters(match[3])}".rstrip()
        elif match := _GRUB_SET.fullmatch(line):
            yield f'set {match[1]}="{_line(match[2], ())}"'
        elif line.strip() in ("}", "blscfg"):
            yield line


def _entry(text: str) -> Iterator[str]:
    for line in text.splitlines():
        match = _KEY.fullmatch(line)
        if not match:
            continue
        if match[2] == "options":
            variable = " $kernelopts" if "$kernelopts" in match[4].split() else ""
            yield f"{match[1]}options{match[3]}{(parameters(match[4]) + variable).strip()}"
        elif match[2] in ("title", "linux", "initrd", "efi", "devicetree"):
            yield f"{match[2]} {'' if match[2] == 'title' else '/'}{MASKED}"


def _extlinux(text: str) -> Iterator[str]:
    number = 0
    for line in text.splitlines():
        match = _KEY.fullmatch(line)
        key = match[2].lower() if match else ""
        if match and key == "append":
            yield f"{match[1]}{match[2]}{match[3]}{parameters(match[4])}"
        elif match and key == "label":
            number += 1
            yield f"{match[1]}{match[2]} {MASKED}{number}"
        elif match and key in ("linux", "kernel", "initrd", "fdt", "fdtdir"):
            yield f"{match[1]}{match[2]} /{MASKED}"


def _zipl(text: str) -> Iterator[str]:
    number = 0
    for line in text.splitlines():
        if match := _ZIPL.fullmatch(line):
            quote = match[2][:1] if match[2][:1] in ("'", '"') else ""
            inner = match[2][1:].partition(quote)[0] if quote else match[2]
            yield f"{match[1]}{quote}{parameters(inner)}{quote}"
        elif line.strip() == "[defaultboot]":
            yield line
        elif line.lstrip().startswith("["):
            number += 1
            yield f"[{MASKED}{number}]"


def _plain(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.lstrip().startswith("#"):
            yield parameters(line)


def _program(text: str) -> Iterator[str]:
    """Reduce a program to the only fact that quiet reads: the directory of the program's snippets, or "#"."""
    if text:
        yield next((word for word in ("default/grub.d", "u-boot-menu/conf.d") if word in text), "#")


_TYPES: tuple[tuple[tuple[str, ...], Callable[[str], Iterator[str]]], ...] = (
    (("/etc/default/grub", "/etc/default/grub.d/*", "/etc/default/u-boot"), _shell),
    (("/etc/u-boot-menu/conf.d/*", "/usr/share/u-boot-menu/conf.d/*"), _shell),
    (("/boot/grub*/grub.cfg", "/boot/efi/EFI/*/grub.cfg"), _grub),
    (("*/loader/entries/*.conf",), _entry),
    (("*/extlinux.conf",), _extlinux),
    (("/etc/zipl.conf",), _zipl),
    (("/etc/kernel/cmdline", "/boot/*cmdline.txt"), _plain),
    (("/usr/*bin/*", "/sbin/*", "/bin/*"), _program),
)

"""Change Boot Loader Specification entries: systemd-boot's directly, Fedora's and RHEL's through grubby.

Sources: the Boot Loader Specification of uapi-group.org ("options" may occur several times); man pages
kernel-install(8), systemd-boot(7), grubby(8), loader.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from quiet.boot.loaders.loader import (
    OWN,
    WORDS,
    BootFiles,
    Command,
    Edit,
    Loader,
    LoaderContext,
    Steps,
    appended,
    by_hand,
    edit,
    encode,
    first,
    first_line,
    rewritten,
)
from quiet.boot.parameters.cmdline import CommandLine, parse
from quiet.errors import Refused

_OPTIONS = re.compile(r"^options[ \t]+(?P<line>.*)$", re.MULTILINE)
_PROGRAM = re.compile(r"\A(?!.*^linux[ \t]).*^efi[ \t]", re.MULTILINE | re.DOTALL)  # memtest or a shell, not a kernel
_WORDS = re.compile(r"^(?!#)[ \t]*(?P<line>\S.*)$", re.MULTILINE)
_CMDLINE = "/etc/kernel/cmdline"
_PARTITIONS = ("/boot", "/efi", "/boot/efi", "/boot/firmware")
_GRUBBY = ("/usr/sbin/grubby", "/sbin/grubby", "/usr/bin/grubby")
_INFO = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


def entries(files: BootFiles, names: Callable[[str], list[str]] | None = None) -> list[str]:
    """The paths of the entries on all partitions. `names` lists a directory; by default Reader.names, which returns no
    names for an unreadable directory.
    """
    folders = [f"{place}/loader/entries" for place in _PARTITIONS]
    listed = names or files.reader.names
    return [f"{path}/{name}" for path in folders for name in listed(path) if name.endswith(".conf")]


def _bls_found(files: BootFiles) -> str:
    tool = first(files.reader, *_GRUBBY)
    default = files.text("/etc/default/grub") or ""
    zipl = files.reader.exists("/etc/zipl.conf")
    blscfg = re.search(r"^\s*GRUB_ENABLE_BLSCFG=[\"']?true", default, re.MULTILINE)
    if not blscfg and not (tool and zipl and entries(files)):
        return ""
    evidence = "GRUB_ENABLE_BLSCFG=true" if blscfg else "/etc/zipl.conf with entries"
    return f"{evidence}, with {tool}" if tool else f"{evidence}, without grubby"


def _bls_line(context: LoaderContext) -> CommandLine:
    # an entry may contain $kernelopts, which is defined in grubenv: the running line has its value
    return first_line(context.files, _plain(context.files), _OPTIONS, together=True)


def _plain(files: BootFiles) -> list[str]:
    return [path for path in _ordinary(files) if "$kernelopts" not in (files.text(path) or "")]


def _bls_steps(context: LoaderContext) -> Steps:
    merged = context.merged(str(_bls_line(context)))
    if merged.unchanged:
        return Steps()
    files = context.files
    if not first(files.reader, *_GRUBBY):
        return _without_grubby(context)
    others = [first_line(files, [path], _OPTIONS, together=True) for path in _plain(files)]
    for line in (_bls_line(context), *others):
        appended(line, merged, "grubby")
    away = tuple(dict.fromkeys((*merged.drop, *(word for line in others for word in context.merged(str(line)).drop))))
    extra: tuple[Command, ...] = (("zipl",),) if files.reader.exists("/etc/zipl.conf") else ()
    watched = [*entries(files), "/etc/default/grub", _CMDLINE]
    watched = [path for path in watched if files.reader.exists(path)]
    return Steps(
        commands=(_grubby(away, merged.add), *extra),
        undo=(_grubby(merged.add, merged.drop), *extra),
        generated=tuple(watched),
    )


def _without_grubby(context: LoaderContext) -> Steps:
    """Plan the change of the entries. Raises Refused if no entry can be read, or if one refers to grubenv."""
    if not entries(context.files):
        raise Refused("GRUB takes the command line from boot loader entries, and none can be read; run this with sudo")
    if any("$kernelopts" in (context.files.text(path) or "") for path in entries(context.files)):
        raise Refused(
            "the boot loader entries take their command line from grubenv; install grubby, which can change it"
        )
    return _systemd_steps(context)


def _grubby(away: tuple[str, ...], here: tuple[str, ...]) -> Command:
    remove = (f"--remove-args={' '.join(away)}",) if away else ()
    return ("grubby", "--update-kernel=ALL", *remove, *((f"--args={' '.join(here)}",) if here else ()))


def _systemd_found(files: BootFiles) -> str:
    info = (files.reader.text(_INFO) or "").replace("\0", "")
    if "systemd-boot" in info:
        return "the firmware variable LoaderInfo names it"
    if info and "GRUB" in info:
        return ""
    for place in _PARTITIONS:
        if files.reader.exists(f"{place}/EFI/systemd") and files.reader.exists(f"{place}/loader/loader.conf"):
            return f"{place}/EFI/systemd and {place}/loader/loader.conf exist"
    return ""


def _systemd_line(context: LoaderContext) -> CommandLine:
    if _cmdline(context.files):
        return parse(_cmdline(context.files))
    return first_line(context.files, _ordinary(context.files), _OPTIONS, together=True)


def _systemd_steps(context: LoaderContext) -> Steps:
    """Plan the change of the entries and of the line that kernel-install uses for later entries, and the commands that
    rebuild images with this line.

    Raises Refused if an entry cannot be read, or if the only command line is in an image that quiet cannot rebuild.
    """
    files = context.files
    entries(files, files.names)  # raises Refused if an entry cannot be read
    changes = [change for path in _ordinary(files) if (change := edit(context, path, _OPTIONS, together=True))[1]]
    edits = [item for item, _ in changes if item]
    here = files.text(_CMDLINE)
    whole = edit(context, _CMDLINE, _WORDS, together=True) if here else (None, None)
    if whole[1] is None and (here is not None or _installs(files)):  # no line yet: later kernels get the running one
        line = str(files.running())
        merged = context.merged(line)
        notes = (here or "").strip()
        text = f"{notes}\n" * bool(notes) + rewritten(line, merged) + "\n"
        how = WORDS if here is not None else OWN
        whole = (Edit(_CMDLINE, encode(text), how) if not merged.unchanged else None), merged
    edits += [whole[0]] if whole[0] else []
    every = [each for _, each in (*changes, whole) if each]
    commands = _rebuilt(files) if edits else ()
    if edits and not commands and not _ordinary(files) and _images(files):
        reason = (
            f"EFI/Linux/{_images(files)[0]} contains a built-in command line, and quiet does not support the "
            "tool that changes it"
        )
        raise by_hand(reason, context.merged(str(_systemd_line(context))))
    return Steps(
        tuple(edits),
        commands,
        commands,
        add=tuple(dict.fromkeys(word for each in every for word in each.add)),
        drop=tuple(dict.fromkeys(word for each in every for word in each.drop)),
    )


def _ordinary(files: BootFiles) -> list[str]:
    """The entries of kernels, except rescue entries, which stay unchanged as a fallback.

    The running kernel's entries come first.
    """
    paths = [path for path in entries(files) if not re.search("rescue|recovery|fallback|memtest", path)]
    paths = [path for path in paths if not _PROGRAM.search(files.text(path) or "")]
    release = files.reader.text("/proc/sys/kernel/osrelease") or "none"
    own = re.compile(rf"^(linux|version)[ \t].*(?<![\w.]){re.escape(release)}(?![\w.+-])", re.MULTILINE)
    return sorted(paths, key=lambda path: not own.search(files.text(path) or ""))


def _installs(files: BootFiles) -> bool:
    """Whether kernel-install creates entries here; it copies the line from its file or else from the running kernel."""
    names = [path.rpartition("/")[2] for path in entries(files)]
    endings = (f"-{release}.conf" for release in files.reader.names("/usr/lib/modules"))
    return bool(_unified(files)) or any(name.endswith(tail) for tail in endings for name in names)


def _cmdline(files: BootFiles) -> str:
    """The parameters in /etc/kernel/cmdline, in one line and without comments, as kernel-install reads them."""
    lines = (files.text(_CMDLINE) or "").splitlines()
    return " ".join(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def _rebuilt(files: BootFiles) -> tuple[Command, ...]:
    return (*_unified(files), *_mkinitcpio(files))


def _mkinitcpio(files: BootFiles) -> tuple[Command, ...]:
    """Arch's command that builds unified images, if its presets name any; empty if /etc/cmdline.d sets parameters,
    which quiet cannot change.
    """
    presets = [f"/etc/mkinitcpio.d/{name}" for name in files.reader.names("/etc/mkinitcpio.d")]
    ours = any(re.search(r"^\s*\w+_uki=", files.text(path) or "", re.MULTILINE) for path in presets)
    parts = any(name.endswith(".conf") for name in files.reader.names("/etc/cmdline.d"))
    there = ours and _images(files) and files.reader.exists("/usr/bin/mkinitcpio") and not parts
    return (("mkinitcpio", "-P"),) if there else ()


def _images(files: BootFiles) -> list[str]:
    return [name for place in _PARTITIONS for name in files.names(f"{place}/EFI/Linux") if name.endswith(".efi")]


def _unified(files: BootFiles) -> list[Command]:
    """The kernel-install commands that rebuild the unified kernel images (EFI/Linux), which contain the line."""
    images, releases = _images(files), files.reader.names("/usr/lib/modules")
    unified = (release for release in releases if any(release in name for name in images))
    paths = {release: f"/usr/lib/modules/{release}/vmlinuz" for release in unified}
    return [("kernel-install", "add", release, path) for release, path in paths.items() if files.reader.exists(path)]


BLS = Loader("bls", "boot loader entries through grubby", _bls_found, _bls_line, _bls_steps, entries=entries)
SYSTEMD = Loader(
    "systemd-boot", "systemd-boot", _systemd_found, _systemd_line, _systemd_steps, entries=entries, again=_rebuilt
)

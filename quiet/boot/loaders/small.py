"""Support boot loaders that keep the command line in one file (Raspberry Pi, extlinux, zipl), and ostree.

With ostree, the line belongs to a deployment, and rpm-ostree creates a new deployment to change it. Sources:
rpm-ostree(1), kargs; Raspberry Pi documentation, "The kernel command line" (cmdline.txt is one line); u-boot-update(8);
zipl.conf(5) and zipl(8).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from quiet.boot.loaders.loader import (
    BEGIN,
    END,
    OWN,
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
    with_block,
)
from quiet.boot.loaders.shell import quoted, unclear, variables
from quiet.boot.parameters.cmdline import CommandLine, parse

_RASPBERRY = ("/boot/firmware/current/cmdline.txt", "/boot/firmware/cmdline.txt", "/boot/cmdline.txt")
_ONLY = re.compile(r"\A\s*(?P<line>.+)$", re.MULTILINE)
_OTHER = re.compile(r"^[ \t]*cmdline[ \t]*=[ \t]*(?!cmdline\.txt\s*$)(\S+)", re.MULTILINE)
_EXTLINUX = ("/boot/extlinux/extlinux.conf", "/boot/firmware/extlinux/extlinux.conf", "/extlinux/extlinux.conf")
_APPEND = re.compile(r"^[ \t]*append[ \t]+(?P<line>.*)$", re.MULTILINE | re.IGNORECASE)
_MENU = "/etc/default/u-boot"
_MENU_FOLDER = "/etc/u-boot-menu/conf.d"
_MENU_OWN = f"{_MENU_FOLDER}/zz-quiet.conf"
_UPDATE = ("/usr/sbin/u-boot-update", "/sbin/u-boot-update", "/usr/bin/u-boot-update")
_ZIPL = "/etc/zipl.conf"
_PARAMETERS = re.compile(r"""^\s*parameters[ \t]*=[ \t]*(?P<q>["']?)(?P<line>.*?)(?=(?P=q)\s*$)""", re.MULTILINE)


def _raspberry_found(files: BootFiles) -> str:
    path = first(files.reader, *_RASPBERRY)
    if path and files.reader.exists(f"{path.rpartition('/')[0]}/config.txt"):
        return f"{path} and config.txt exist"
    return ""


def _raspberry_line(context: LoaderContext) -> CommandLine:
    return first_line(context.files, [first(context.files.reader, *_RASPBERRY)], _ONLY)


def _raspberry_steps(context: LoaderContext) -> Steps:
    path = first(context.files.reader, *_RASPBERRY)
    config = f"{path.rpartition('/')[0]}/config.txt"
    other = _OTHER.search(context.files.text(config) or "")
    if other:
        merged = context.merged(str(context.files.running()))
        raise by_hand(f"{config} has cmdline={other[1]}, so the firmware may not read {path}", merged)
    return _one(context, path, _ONLY)


def _repairs(label: str) -> bool:
    """Whether a label is a rescue entry, whose line stays unchanged as a fallback."""
    names = re.findall(r"^[ \t]*((?:menu[ \t]+)?label|linux|kernel)[ \t]+(.*)$", label, re.MULTILINE | re.I)
    return bool(re.search("rescue|recovery|fallback|memtest", " ".join(name for _, name in names), re.I))


def _one(
    context: LoaderContext,
    path: str,
    pattern: re.Pattern[str],
    command: tuple[str, ...] = (),
    skip: Callable[[str], bool] | None = None,
) -> Steps:
    change, merged = edit(context, path, pattern, skip=skip)
    if change is None or merged is None:
        return Steps()
    commands = (command,) if command else ()
    return Steps((change,), commands, commands, add=merged.add, drop=merged.drop)


def _extlinux_found(files: BootFiles) -> str:
    path = first(files.reader, *_EXTLINUX)
    return f"{path} exists" if path else ""


def _extlinux_line(context: LoaderContext) -> CommandLine:
    if first(context.files.reader, *_UPDATE):
        return parse(_menu_line(context.files))
    return first_line(context.files, [first(context.files.reader, *_EXTLINUX)], _APPEND)


def _extlinux_steps(context: LoaderContext) -> Steps:
    """Change extlinux.conf or, on Debian, the shell files from which u-boot-menu generates extlinux.conf."""
    files = context.files
    path = first(files.reader, *_EXTLINUX)
    tool = first(files.reader, *_UPDATE)
    if not tool:
        return _one(context, path, _APPEND, skip=_repairs)
    merged = context.merged(_menu_line(files))
    if odd := unclear(_menu_texts(files), ("U_BOOT_PARAMETERS",)):
        raise by_hand(f"`{odd}` in u-boot-menu's files is not understood: write it as a plain assignment", merged)
    if merged.unchanged:
        return Steps()
    block = f"{BEGIN}\nU_BOOT_PARAMETERS={quoted(str(merged.line))}\n{END}\n"
    if files.reader.exists(_MENU_FOLDER) or "u-boot-menu/conf.d" in (files.text(tool) or ""):
        change = Edit(_MENU_OWN, encode(block), OWN)
    else:
        change = with_block(files, _MENU, block)
    return Steps((change,), (("u-boot-update",),), (("u-boot-update",),), (path,))


def _menu_line(files: BootFiles) -> str:
    return variables(_menu_texts(files)).get("U_BOOT_PARAMETERS", "ro quiet")  # the default of u-boot-update


def _menu_texts(files: BootFiles) -> list[str]:
    folders = ("/usr/share/u-boot-menu/conf.d", _MENU_FOLDER)
    shipped, own = ([f"{folder}/{name}" for name in files.reader.names(folder)] for folder in folders)
    return [files.text(path) or "" for path in (*shipped, _MENU, *own)]


def _ostree_found(files: BootFiles) -> str:
    if files.reader.exists("/run/ostree-booted") and files.reader.exists("/usr/bin/rpm-ostree"):
        return "/run/ostree-booted and rpm-ostree exist"
    return ""


def _ostree_line(context: LoaderContext) -> CommandLine:
    """The running line, which is the booted deployment's, without ostree= and the parameters of an earlier apply."""
    words = context.files.running()
    return words.changed([word for word in words.words if word.startswith("ostree=")], ())


def _ostree_steps(context: LoaderContext) -> Steps:
    """One command to apply and one to undo; each creates a deployment for the next boot and keeps the current one."""
    merged = context.merged(str(_ostree_line(context)))
    if merged.unchanged:
        return Steps()
    appended(_ostree_line(context), merged, "rpm-ostree")
    return Steps(commands=(_kargs(merged.drop, merged.add),), undo=(_kargs(merged.add, merged.drop),))


def _kargs(away: tuple[str, ...], here: tuple[str, ...]) -> Command:
    return (
        "rpm-ostree",
        "kargs",
        *(f"--delete-if-present={word}" for word in away),
        *(f"--append-if-missing={word}" for word in here),
    )


RASPBERRY = Loader("raspberry", "Raspberry Pi's firmware", _raspberry_found, _raspberry_line, _raspberry_steps)
EXTLINUX = Loader(
    "extlinux",
    "extlinux (U-Boot)",
    _extlinux_found,
    _extlinux_line,
    _extlinux_steps,
    (_MENU_OWN, _MENU),
    lambda files: ("u-boot-update",),
)
ZIPL = Loader(
    "zipl",
    "zipl",
    found=lambda files: f"{_ZIPL} has parameters" if _PARAMETERS.search(files.text(_ZIPL) or "") else "",
    line=lambda context: first_line(context.files, [_ZIPL], _PARAMETERS),
    steps=lambda context: _one(context, _ZIPL, _PARAMETERS, ("zipl",)),
)
OSTREE = Loader("ostree", "ostree", _ostree_found, _ostree_line, _ostree_steps)

"""Change GRUB's configuration on Debian, Ubuntu, Arch and openSUSE: /etc/default/grub, and the generated grub.cfg.

After /etc/default/grub, Debian's grub-mkconfig reads /etc/default/grub.d/*.cfg, so there quiet only adds a file. These
sources of grub.cfg are shell scripts. The parameters are added to GRUB_CMDLINE_LINUX_DEFAULT, which applies only to
ordinary entries. Parameters that quiet replaces are also removed from GRUB_CMDLINE_LINUX, which applies to recovery
entries too. Source: info grub, "Simple configuration handling"; Debian's grub2, util/grub-mkconfig.in.
"""

from __future__ import annotations

import re

from quiet.boot.loaders.loader import (
    BEGIN,
    END,
    OWN,
    BootFiles,
    Edit,
    Loader,
    LoaderContext,
    Steps,
    by_hand,
    encode,
    first,
    with_block,
)
from quiet.boot.loaders.shell import unclear, variables
from quiet.boot.parameters.cmdline import CommandLine, parse

_DEFAULT = "/etc/default/grub"
_FOLDER = "/etc/default/grub.d"
DROP_IN = f"{_FOLDER}/zz-quiet.cfg"
_GENERAL, _ORDINARY = "GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"
_CONFIGS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")


def found(files: BootFiles) -> str:
    """The evidence for GRUB; "" if there is none."""
    config = _config(files)
    if config and files.reader.exists(_DEFAULT):
        return f"{_DEFAULT} and {config} exist"
    return ""


def line(context: LoaderContext) -> CommandLine:
    """The command line of an ordinary entry, without the parameters that grub.cfg itself adds (root=)."""
    values = _values(context.files)
    return parse(f"{values.get(_GENERAL, '')} {values.get(_ORDINARY, '')}")


def steps(context: LoaderContext) -> Steps:
    """Plan a separate file if grub-mkconfig reads grub.d, otherwise a block at the end of /etc/default/grub, and the
    command that regenerates grub.cfg. Raises Refused if the parameters must be added by hand.
    """
    merged = context.merged(str(line(context)))
    if odd := unclear(_texts(context.files), (_GENERAL, _ORDINARY)):
        raise by_hand(f"`{odd}` in {_DEFAULT} or {_FOLDER} is not understood: write it as a plain assignment", merged)
    if merged.unchanged:
        return Steps()
    general, ordinary = (parse(_values(context.files).get(name, "")) for name in (_GENERAL, _ORDINARY))
    if general.init and merged.add:
        raise by_hand(f"{_GENERAL} holds `{' '.join(general.init)}`, so everything after it goes to init", merged)
    block = _block(merged.drop, merged.add, bool(ordinary.init))
    own_file = reads_folder(context.files)
    edit = Edit(DROP_IN, encode(block), OWN) if own_file else with_block(context.files, _DEFAULT, block)
    command, config = _regenerate(context.files)
    return Steps((edit,), (command,), (command,), (config,))


def reads_folder(files: BootFiles) -> bool:
    """Whether grub-mkconfig reads /etc/default/grub.d here.

    The text of grub-mkconfig decides. If it cannot be read, the result is True on Debian if the directory exists.
    """
    debian = files.reader.exists(_FOLDER) and files.reader.exists("/etc/debian_version")
    for path in ("/usr/sbin/grub-mkconfig", "/usr/bin/grub-mkconfig", "/usr/sbin/grub2-mkconfig"):
        script = files.text(path)
        if script and script.strip():  # programs in recorded machines may be empty files
            return "default/grub.d" in script
    return debian


def _block(drop: tuple[str, ...], add: tuple[str, ...], init: bool = False) -> str:
    """The shell lines of our block. With `init`, the added parameters go before the first " -- "."""
    lines = [BEGIN]
    for variable in (_GENERAL, _ORDINARY):
        if drop:  # drop whole words only, from both variables
            words = (f"s| {_escaped(word)} | |g" for word in drop)
            script = "; ".join(("s/ /  /g", *words, "s/  */ /g", "s/^ //", "s/ $//"))
            lines.append(f"{variable}=$(printf '%s' \" ${variable} \" | sed '{script}')")
    if add and init:
        words_ahead = f"s| -- | {_escaped(' '.join(add))} -- |"
        lines.append(f"{_ORDINARY}=$(printf '%s' \" ${_ORDINARY} \" | sed '{words_ahead}; s/^ //; s/ $//')")
    elif add:
        lines.append(f'{_ORDINARY}="${_ORDINARY} {" ".join(add)}"')
    return "\n".join([*lines, END, ""])


def _escaped(word: str) -> str:
    return re.sub(r"([][\\.*^$|&'])", lambda m: "'\\''" if m[1] == "'" else "\\" + m[1], word)


def _regenerate(files: BootFiles) -> tuple[tuple[str, ...], str]:
    config = _config(files)
    if first(files.reader, "/usr/sbin/update-grub", "/usr/bin/update-grub", "/sbin/update-grub"):
        return ("update-grub",), config
    tool = first(files.reader, "/usr/sbin/grub2-mkconfig", "/usr/bin/grub2-mkconfig")
    return ("grub2-mkconfig" if tool else "grub-mkconfig", "-o", config), config


def _config(files: BootFiles) -> str:
    """The path of the grub.cfg with the menu, usually not the one on the EFI partition; "" if none is found."""
    own = [f"/boot/efi/EFI/{name}/grub.cfg" for name in files.reader.names("/boot/efi/EFI")]
    here = [path for path in _CONFIGS if files.reader.exists(path)]
    menus = (path for path in (*here, *own) if "menuentry" in (files.reader.text(path) or ""))
    return next(menus, here[0] if here else "")


def _values(files: BootFiles) -> dict[str, str]:
    return variables(_texts(files))


def _texts(files: BootFiles) -> list[str]:
    names = [_DEFAULT]
    if reads_folder(files):
        names += [f"{_FOLDER}/{name}" for name in files.reader.names(_FOLDER) if name.endswith(".cfg")]
    return [files.text(path) or "" for path in names]


LOADER = Loader("grub", "GRUB", found, line, steps, (DROP_IN, _DEFAULT), lambda files: _regenerate(files)[0])

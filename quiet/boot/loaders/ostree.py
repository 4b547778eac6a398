"""ostree: the line belongs to a deployment, and rpm-ostree makes a new one with other words. No file is ours to write.

Source: man page rpm-ostree(1), kargs.
"""

from __future__ import annotations

from quiet.boot.loaders.loader import BootFiles, Command, Loader, LoaderContext, Steps, appended, first
from quiet.boot.parameters.cmdline import CommandLine

_TOOLS = ("/usr/bin/rpm-ostree",)


def found(files: BootFiles) -> str:
    """How it was recognized."""
    if files.reader.exists("/run/ostree-booted") and first(files.reader, *_TOOLS):
        return "/run/ostree-booted and rpm-ostree are there"
    return ""


def line(context: LoaderContext) -> CommandLine:
    """The running line, which is the booted deployment's, without what an earlier apply added."""
    words = context.files.running()
    return words.changed([word for word in words.words if word.startswith("ostree=")], ())


def steps(context: LoaderContext) -> Steps:
    """One command each way; it makes a deployment for the next boot, and the present one stays for going back."""
    merged = context.merged(str(line(context)))
    if merged.unchanged:
        return Steps()
    appended(line(context), merged, "rpm-ostree")
    return Steps(commands=(_kargs(merged.drop, merged.add),), undo=(_kargs(merged.add, merged.drop),))


def _kargs(away: tuple[str, ...], here: tuple[str, ...]) -> Command:
    return (
        "rpm-ostree",
        "kargs",
        *(f"--delete-if-present={word}" for word in away),
        *(f"--append-if-missing={word}" for word in here),
    )


LOADER = Loader("ostree", "ostree", found, line, steps)

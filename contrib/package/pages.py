"""Write man pages and shell completions of both commands into a directory with the layout of /usr/share.

All texts come from the definitions of the command line, so they always agree with `--help`.
Usage: python contrib/package/pages.py FOLDER
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from typer._completion_shared import get_completion_script

from quiet import __version__

PROGRAMS = {"quiet": "quiet.cli.app", "cbench": "cbench.cli"}
COMPLETIONS = {
    "bash": "bash-completion/completions/{}",
    "zsh": "zsh/vendor-completions/_{}",
    "fish": "fish/vendor_completions.d/{}.fish",
}
# At the first completion, zsh runs the file as a function with the name of the file. Typer's script only defines the
# function for later completions, so these lines call it.
ZSH = """
if [ "$funcstack[1]" = _{0} ]; then _{0}_completion "$@"; fi
"""
_EXIT = (
    ("0", "success; for a check, no difference"),
    ("1", "results or settings differ, or a CPU is not quiet"),
    ("2", "wrong usage or input"),
    ("3", "refused or not permitted"),
    ("4", "restore incomplete"),
)


def main(folder: Path) -> None:
    """Write all man pages and completions below the folder."""
    for name, module in PROGRAMS.items():
        command: Any = typer.main.get_command(importlib.import_module(module).app)
        for words, each in _tree(command, (name,)):
            _write(folder / "man" / "man1" / f"{'-'.join(words)}.1", page(words, each))
        for shell, place in COMPLETIONS.items():
            script = get_completion_script(prog_name=name, complete_var=f"_{name.upper()}_COMPLETE", shell=shell)
            _write(folder / place.format(name), script + (ZSH.format(name) if shell == "zsh" else ""))


def page(words: tuple[str, ...], command: Any) -> str:
    """The man page of one command, in the format of man(7)."""
    context = command.make_context(words[-1], [], resilient_parsing=True)
    context.info_name = " ".join(words)
    title, name = "-".join(words), " ".join(words)
    first, _, rest = (command.help or "").partition("\n\n")
    lines = [f'.TH "{title.upper()}" "1" "" "quiet-cbench {__version__}" "User Commands"', ".SH NAME"]
    lines += [f"{_escape(title)} \\- {_escape(' '.join(first.split()))}", ".SH SYNOPSIS"]
    lines += [f".B {_escape(name)}", _escape(" ".join(command.collect_usage_pieces(context)))]
    if rest:
        lines += [".SH DESCRIPTION"]
        for paragraph in rest.split("\n\n"):
            lines += [_escape(" ".join(paragraph.split())), ".PP"]
    records = [record for each in command.get_params(context) if (record := each.get_help_record(context))]
    if records:
        lines += [".SH OPTIONS", *_definitions(records)]
    below = [(each[-1], sub.help or "") for each, sub in _tree(command, words) if len(each) == len(words) + 1]
    if below:
        lines += [".SH COMMANDS", *_definitions((sub, " ".join(help_text.split())) for sub, help_text in below)]
    lines += [".SH EXIT STATUS", *_definitions(_EXIT)]
    others = [title + "-" + sub for sub, _ in below] or ["-".join(words[:-1])]
    lines += [".SH SEE ALSO", ", ".join(f"\\fB{_escape(other)}\\fR(1)" for other in others)]
    return "\n".join([*lines, ""])


def _tree(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield a command and all its subcommands, each with the words that call it; hidden subcommands are omitted."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from _tree(below, (*words, name))


def _definitions(pairs: Any) -> Iterator[str]:
    for term, text in pairs:
        yield from (".TP", f"\\fB{_escape(term)}\\fR", _escape(text))


def _escape(text: str) -> str:
    """The text as roff: no line begins with a control character, and copied hyphens remain ASCII."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.splitlines())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: pages.py FOLDER")
    main(Path(sys.argv[1]))

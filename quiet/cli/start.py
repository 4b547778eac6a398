"""Start `quiet`.

Loading Typer takes longer than a whole plan. Commands that scripts call often are therefore started without Typer if
their options are plain; Typer handles everything else, including errors and help.
"""

from __future__ import annotations

import gc
import os
import sys

from quiet.console import INTERRUPTED, emit, ended, enter

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

FIRST_STEPS = """\
quiet: Quiet this host for benchmarking, verify it, and restore every setting.

Start with:
  quiet why -- ./mybench   report what interrupts your program (changes nothing)
  quiet run -- ./mybench   run it on quiet, isolated CPUs, then restore
  quiet plan               show what a profile would change (changes nothing)

`quiet --help` lists all commands; `quiet COMMAND --help` explains one.
"""

# the module in quiet.cli, its function, and the options that it takes
_PLAIN = {
    "plan": ("settings", "plan", ("profile", "cpus", "root")),  # and --all
    "status": ("host", "status", ("root",)),
    "verify": ("noise", "verify_plain", ("profile", "cpus", "root", "duration")),
}


def plain(arguments: Sequence[str]) -> Callable[[], int] | None:
    """The command to call for plain options (`--name value`, --json, --all); None if Typer handles the arguments."""
    if not arguments:
        return None if "_QUIET_COMPLETE" in os.environ else _first_steps  # a shell requests completions
    if list(arguments) == ["run-helper"]:
        from quiet.cli import run

        return run.helper
    if arguments[:1] == ["run"]:
        return _plain_run(arguments[1:])
    module, function, names = _PLAIN.get(arguments[0] if arguments else "", ("", "", ()))
    if not module:
        return None
    options: dict[str, str | bool] = {}
    rest = iter(arguments[1:])
    for argument in rest:
        name = argument.removeprefix("--")
        if argument == "--all" and arguments[0] == "plan":
            options["every"] = True
            continue
        value = "" if name == "json" else next(rest, "")
        if name == argument or name not in ("json", *names) or (name != "json" and (not value or value[0] == "-")):
            return None
        options["as_json" if name == "json" else name] = value or True
    from importlib import import_module

    command: Callable[..., int] = getattr(import_module(f"quiet.cli.{module}"), function)
    return lambda: command(**options)


def _first_steps() -> int:
    """Print the first commands to try, for `quiet` without a command. Returns the exit code of wrong usage."""
    emit(FIRST_STEPS)
    return 2


def _plain_run(arguments: Sequence[str]) -> Callable[[], int] | None:
    """A call of `quiet run` with plain options and the command after "--"; None for any other arguments."""
    values: dict[str, str] = {}
    silent = False
    words = iter(arguments)
    for word in words:
        if word == "--":
            break
        if word == "--quiet-report":
            silent = True
        elif word in ("--profile", "--cpus", "--linger"):
            values[word[2:]] = next(words, "")
        else:
            return None
    command = list(words)
    if not command or not all(values.values()):
        return None
    from quiet.cli import run
    from quiet.run.options import FrontOptions, RunRequest

    def call() -> NoReturn:
        linger = run.seconds(values.get("linger"), "--linger") or 0.0
        options = RunRequest(values.get("profile", "bench"), values.get("cpus"), linger_s=linger)
        code = run.run(options, FrontOptions(quiet_report=silent), command)
        emit("")
        sys.stderr.flush()
        os._exit(code)  # nothing is left to do, and Python's normal exit would cost time

    return call


def main() -> None:
    """Run `quiet`. Ctrl-C during loading exits with 130, the code that shells report for SIGINT."""
    gc.set_threshold(50_000)  # loading creates no garbage; collections would take a tenth of a short command's time
    try:
        call = plain(sys.argv[1:])
        if call is None:
            from quiet.cli.app import app
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    if call is not None:
        sys.exit(ended(call, "quiet"))
    enter(app, "quiet")

"""Define and check the options of `cbench run -- CMD`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quiet import UsageError

AUTO = "auto"
MOST_TRIALS = 1_000_000
MOST_SECONDS = 7 * 24 * 3600
FEWEST, SECONDS = 10, 3.0
QUICK_FEWEST, QUICK_SECONDS = 5, 0.5
WARMUP_SHARE = 0.1
SHELL = "/bin/sh"
COUNTERS = (AUTO, "wall", "cycles", "cycles:u")
QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
OPERATOR = re.compile(r"[0-9]*[<>]|[|&;]")
"""The beginning of a word that a shell does not pass to the program."""
SHELL_SYNTAX = re.compile(r"[\s|&;<>]")


@dataclass(frozen=True, slots=True)
class ExternalCommand:
    """A command to measure. `text`: the command as the user wrote it, with a number if it is given more than once;
    `path`: the executable; `prepare`: a shell command to run before each trial, "" for none; `folder`: the working
    directory, "" for the current one; `environment`: additional variables for this command.
    """

    text: str
    path: str
    argv: tuple[str, ...]
    prepare: str = ""
    folder: str = ""
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalOptions:
    """The options for measuring commands.

    `trials`: None runs each command for `seconds` and at least `fewest` times. `warmup`: the number of discarded
    trials, None to discard trials until times have settled. `cpus`: the CPUs given, () for all that this process may
    use. `timeout`: the limit for a run in seconds, None for no limit. `pad`: shift the start of the stack in each
    trial. `on_failure`, `on_timeout`: advice in the message about a failed or late command, "" for none.
    `quote_output`: whether the message about a failed command quotes its stdout, too; stdout is then a file instead of
    /dev/null.
    """

    commands: tuple[ExternalCommand, ...]
    trials: int | None = None
    warmup: int | None = None
    seconds: float = SECONDS
    fewest: int = FEWEST
    counter: str = AUTO
    cpus: tuple[str, ...] = ()
    setup: str = ""
    ignore_failure: bool = False
    on_failure: str = "--ignore-failure measures it anyway"
    timeout: float | None = None
    on_timeout: str = "allow more with --timeout"
    quote_output: bool = False
    seed: int = 1
    pad: bool = True
    output: Path | None = None
    command_line: tuple[str, ...] = ()


def external_options(
    words: Sequence[str],
    texts: Sequence[str],
    *,
    shell: bool,
    prepare: Sequence[str],
    setup: str,
    trials: int | None,
    warmup: str,
    quick: bool,
    counter: str,
    cpus: Sequence[str],
    ignore_failure: bool,
    timeout: float | None,
    seed: int,
    output: Path | None,
    command_line: Sequence[str],
    environment: Mapping[str, str],
) -> ExternalOptions:
    """Validated options from the command line. `words`: the command after `--`, () for none; `texts`: the values of
    --command. Raises UsageError for invalid options.
    """
    if trials is not None and not 1 <= trials <= MOST_TRIALS:
        raise UsageError(f"--trials {trials}: must be from 1 to {MOST_TRIALS:,}")
    if warmup != AUTO and not (re.fullmatch("[0-9]{1,7}", warmup) and int(warmup) <= MOST_TRIALS):
        raise UsageError(f"--warmup {warmup!r}: must be 'auto' or a number of trials from 0 to {MOST_TRIALS:,}")
    if timeout is not None and not 0 < timeout <= MOST_SECONDS:
        raise UsageError(f"--timeout {timeout:g}: must be above 0 and at most {MOST_SECONDS:,} seconds")
    if counter not in COUNTERS:
        raise UsageError(f"--counter {counter!r}: a command supports {', '.join(COUNTERS)}; choose one of these")
    joined = words[0] if shell and len(words) == 1 else shlex.join(words)
    written = [*([joined] if words else []), *texts]
    if len(prepare) not in (0, 1, len(written)):
        raise UsageError(f"--prepare: give it once, or once for each of the {len(written)} commands")
    before = [prepare[0] if len(prepare) == 1 else prepare[at] if prepare else "" for at in range(len(written))]
    path = environment.get("PATH")
    commands: list[ExternalCommand] = []
    for at, text in enumerate(written):
        argv = list(words) if words and at == 0 and not shell else split_command(text, shell)
        again = written[:at].count(text) + 1
        name = text if again == 1 else f"{text} #{again}"
        commands.append(ExternalCommand(name, SHELL if shell else program(argv[0], path), tuple(argv), before[at]))
    return ExternalOptions(
        commands=tuple(commands),
        trials=trials,
        warmup=None if warmup == AUTO else int(warmup),
        seconds=QUICK_SECONDS if quick else SECONDS,
        fewest=QUICK_FEWEST if quick else FEWEST,
        counter=counter,
        cpus=tuple(cpus),
        setup=setup,
        ignore_failure=ignore_failure,
        timeout=timeout,
        seed=seed,
        output=output,
        command_line=tuple(command_line),
    )


def split_command(text: str, shell: bool, option: str = "--command", use_shell: str = "add --shell") -> list[str]:
    """The argument vector of a command, or of a shell that runs it. `option`: the command's name in messages;
    `use_shell`: advice on how to use a shell. Raises UsageError for an invalid command, and for an unquoted shell
    operator if no shell runs it.
    """
    if shell:
        return [SHELL, "-c", text]
    try:
        argv = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}; quote it as in a shell".lstrip()) from None
    if not argv:
        raise UsageError(f"{option} '': empty; write a command".lstrip())
    for word in QUOTED.sub("_", text).split():
        if OPERATOR.match(word):
            raise UsageError(f"{text}: `{word}` would be passed as an argument; {use_shell}, or quote it")
    return argv


def program(name: str, path: str | None, folder: str = "", use_shell: str = "add --shell") -> str:
    """The path of the file to execute. `path`: the PATH to search; `folder`: the working directory of the command, ""
    for the current one; `use_shell`: advice on how to use a shell. Raises UsageError if there is no such file.
    """
    file = os.path.join(folder, name)
    found = shutil.which(file if "/" in name else name, path=path)
    if found is not None:
        return found
    if "/" in name and Path(file).is_file():
        raise UsageError(f"{name}: not executable (chmod +x, or name its interpreter)")
    if "/" not in name and shutil.which(os.path.join(folder, ".", name)):
        raise UsageError(f"{name}: no such program in PATH; did you mean ./{name}?")
    shell = "" if "/" in name and not SHELL_SYNTAX.search(name) else f"; for shell built-ins and operators {use_shell}"
    raise UsageError(f"{name}: no such program{shell}")

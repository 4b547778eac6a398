"""Run one command on one input in a separate process, and judge the result."""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

CODES = frozenset((0, 1, 2, 3, 4, 130))  # what the commands document
INTERRUPT_S, HANG_S = 8.0, 30.0  # then it gets Ctrl-C; so much later it hangs
LONGEST = 500  # characters of a message
NOTHING_JUDGED = ("cannot judge: ", "too few blocks")
"""What a gate or a comparison prints that exits with 2 without an error."""
MEMORY = 8 << 30


class Outcome(NamedTuple):
    """The result of a command: its exit code (negative: -N for signal N), its output, and whether it was
    interrupted.
    """

    code: int
    out: str
    err: str
    interrupted: bool
    hung: bool


def execute(program: str, arguments: Sequence[str], folder: Path) -> Outcome:
    """Run `quiet` or `cbench` in a directory; it writes to files there that are read afterwards."""
    return _forked(lambda ending: _become(program, arguments, ending), folder)


def _forked(call: Callable[[Callable[[], object]], NoReturn], folder: Path) -> Outcome:
    out, err, loaded = folder / "stdout", folder / "stderr", folder / "modules"
    known = set(sys.modules)
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        call(lambda: loaded.write_text("\n".join(sys.modules.keys() - known)))
    began, interrupted, hung = time.monotonic(), False, False
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.002)
        spent = time.monotonic() - began
        if spent > INTERRUPT_S and not interrupted:
            interrupted = True
            os.kill(pid, signal.SIGINT)
        if spent > INTERRUPT_S + HANG_S:
            hung = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    for name in loaded.read_text().split() if loaded.exists() else ():  # the next cases need not load them again
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    texts = (path.read_bytes()[: 1 << 22].decode(errors="replace") for path in (out, err))
    return Outcome(code, *texts, interrupted, hung)


def _become(program: str, arguments: Sequence[str], ending: Callable[[], object]) -> NoReturn:
    """In the child: the function of the installed command. The modules are loaded already, as far as they were
    needed.
    """
    code = 70
    try:
        sys.argv = [program, *arguments]
        for number, name in ((1, "stdout"), (2, "stderr")):
            errors = "strict" if number == 1 else "backslashreplace"
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", errors=errors, closefd=False))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if program == "quiet":
                from quiet.cli.start import main
            else:
                from cbench.__main__ import main
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        ending()
    finally:
        os._exit(code)


def faults(outcome: Outcome, foreign: bool = False) -> list[str]:
    """The rules that it broke. `foreign`: a compiler and measured code write to stderr too, as they like."""
    broken = []
    lines = [line for line in outcome.err.split("\n") if not foreign or line.startswith("cbench: ")]
    if "Traceback (most recent call last)" in outcome.err:
        broken.append("traceback")
    if "internal error" in outcome.err:
        broken.append("internal error")
    if outcome.hung:
        broken.append("hang")
    elif outcome.code not in CODES:
        broken.append(f"exit code {outcome.code}")
    errors = [line for line in lines if line.startswith(("quiet: error: ", "cbench: error: "))]
    judged_nothing = outcome.code == 2 and not errors and any(words in outcome.out for words in NOTHING_JUDGED)
    if outcome.code in (2, 3) and not outcome.interrupted and len(errors) != 1 and not judged_nothing:
        broken.append(f"{len(errors)} error lines")
    if any(len(line) > LONGEST for line in lines):
        broken.append("long line")
    steering = {letter for letter in "".join((outcome.out, *lines)) if not letter.isprintable()} - {
        "\n",
        "\t",
        "\ufffd",
    }
    if steering:
        broken.append(f"steers the terminal: {sorted(steering)!r}"[:80])
    return broken

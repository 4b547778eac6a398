"""Small studies that run for real: each `cbench order ...` in a separate process."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import cbench.cli
import cbench.order.analyze
import cbench.order.summarize
import cbench.order.table
import cbench.study.lifecycle
import cbench.study.table
import cbench.study.workload
from cbench.study.store import StudyStore
from tests import CHECKOUT

ROOT = CHECKOUT


class Command:
    """`cbench order ARGUMENTS` in a fork of this process and a session of its own: without the time to start Python.

    `group`: of commands, in place of `order`.
    """

    def __init__(self, arguments: Sequence[str | Path], folder: Path, group: str = "order") -> None:
        self._group = group
        self.args = [str(each) for each in arguments]
        self.returncode: int | None = None
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed when read
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(folder)

    def _become(self, folder: Path) -> None:
        code = 99
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(self._out.fileno(), 1)
            os.dup2(self._err.fileno(), 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.chdir(folder)
            sys.argv = ["cbench", self._group, *self.args]
            cbench.cli.main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        finally:
            sys.stdout.flush()
            os._exit(code)

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout: float) -> int:
        """Its exit status, minus N for signal N. TimeoutExpired where it has none in time."""
        if self.returncode is None:
            fd = os.pidfd_open(self.pid)
            try:
                if not select.select([fd], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout)
            finally:
                os.close(fd)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """Its output on both streams, once it has ended."""
        self.wait(timeout)
        said = []
        for file in (self._out, self._err):
            file.seek(0)
            said.append(file.read().decode())
            file.close()
        return said[0], said[1]


def started(*arguments: str | Path, folder: Path) -> Command:
    """`cbench order ARGUMENTS`, running."""
    return Command(arguments, folder)


def order(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The same to its end."""
    command = Command(arguments, folder)
    try:
        out, err = command.communicate()
    except subprocess.TimeoutExpired:
        os.kill(command.pid, signal.SIGKILL)
        raise
    assert command.returncode is not None
    return subprocess.CompletedProcess(command.args, command.returncode, out, err)


def written(folder: Path, text: str) -> Path:
    path = folder / "s.toml"
    path.write_text(text)
    return path


def study(tests: Mapping[str, str], head: str = "repetitions = 2", reset: str = "") -> str:
    """The text of a study of commands."""
    parts = [f"[study]\n{head}\n"]
    if reset:
        parts.append(f"[reset]\n{reset}\n")
    parts += [f"[[test]]\nname = {name!r}\ncommand = '''{command}'''\n" for name, command in tests.items()]
    return "\n".join(parts)


def rows(path: Path) -> list[tuple[int, int, int, str | None, float | None]]:
    """Run, position, test, failure and value of every trial."""
    with StudyStore.open(path) as store:
        values = {(run, position): value for run, position, _, value in store.values()}
        return [
            (run, position, test, failure, values.get((run, position)))
            for run, position, test, failure, _, _ in store.trials()
        ]

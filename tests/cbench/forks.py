"""Run `cbench` in forks of a server that has already imported it, which takes 15 ms instead of 100 to 300.

The server has one thread. A fork receives the arguments, directory, environment, CPUs and streams of its run, then
starts `cbench.__main__` as `python -P -m cbench` does. When the tests end or are killed, the server kills a fork that
is still running and exits.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import pkgutil
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_")
"""Prefixes of the variables that Python and the dynamic linker read only at startup."""
NOT_BEFORE_THE_FORK = ("cbench.__main__", "cbench._build", "cbench.fleet.collection", "cbench.plugins.")
"""Modules that only other programs import."""


class Forks:
    """Runs in forks of one server, which is started for the first run."""

    def __init__(self) -> None:
        self._environment: dict[str, str] | None = None
        self._lock = threading.Lock()
        self._server: tuple[socket.socket, subprocess.Popen[bytes]] | None = None
        self._pid = 0

    def suit(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork can run with this environment as a new process would."""
        if self._environment is None:
            self._environment = dict(os.environ)
        return _at_start(environment) == _at_start(self._environment)

    def run(
        self, arguments: Sequence[str], cwd: str | Path, environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `cbench ARGUMENTS` to its end, as subprocess.run() does with capture_output and text."""
        cpus = sorted(os.sched_getaffinity(0))
        request = {"arguments": arguments, "cwd": str(cwd), "environment": dict(environment), "cpus": cpus}
        with self._lock:
            if self._server is None or self._pid != os.getpid() or _closed(self._server[0]):
                self._server = _started(self._environment or os.environ)
                self._pid = os.getpid()
            connection, process = self._server
            try:
                code, out, err = _asked(connection, request, timeout)
            except BaseException as error:
                self._server = None
                connection.close()
                error.add_note(f"stderr of the server: {process.communicate()[1].decode()}")
                raise
        return subprocess.CompletedProcess(list(arguments), code, _text(out), _text(err))


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


def _closed(server: socket.socket) -> bool:
    return bool(select.select([server.fileno()], [], [], 0)[0])  # no answer is due


def _started(environment: Mapping[str, str]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        number = theirs.fileno()
        command = [sys.executable, "-P", __file__, str(number)]
        # Its pipes stay unread: Python sets up its streams at startup, for the kind of file that the forks receive.
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, cwd="/", env=environment, pass_fds=[number]
        )
        process.wait()
    return ours, process


def _text(read: bytes) -> str:
    return io.TextIOWrapper(io.BytesIO(read)).read()


def _asked(server: socket.socket, request: Mapping[str, Any], timeout: float) -> tuple[int, bytes, bytes]:
    """The exit code, stdout and stderr of a run."""
    limit = time.monotonic() + timeout
    read_out, write_out = os.pipe()
    read_err, write_err = os.pipe()
    came = {read_out: bytearray(), read_err: bytearray(), server.fileno(): bytearray()}
    try:
        try:
            with tempfile.TemporaryFile("w+") as file:  # a packet has a greatest size
                json.dump(request, file)
                file.seek(0)
                socket.send_fds(server, [b"run"], [write_out, write_err, file.fileno()])
        finally:
            os.close(write_out)
            os.close(write_err)
        with selectors.DefaultSelector() as waiting:
            for fd in came:
                waiting.register(fd, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(limit - time.monotonic())
                if not ready and time.monotonic() > limit:
                    raise subprocess.TimeoutExpired(request["arguments"], timeout)
                for key, _ in ready:
                    part = os.read(key.fd, 1 << 16)
                    came[key.fd] += part
                    if not part or key.fd == server.fileno():
                        waiting.unregister(key.fd)
    finally:
        os.close(read_out)
        os.close(read_err)
    answer = bytes(came[server.fileno()])
    if not answer:
        raise RuntimeError("the server that forks cbench has ended")
    return int(answer), bytes(came[read_out]), bytes(came[read_err])


def _modules() -> None:
    """Import cbench and numpy. Each fork imports the rest: matplotlib, pyarrow."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import cbench

    for module in pkgutil.walk_packages(cbench.__path__, "cbench.", onerror=lambda _: None):
        if not module.name.startswith(NOT_BEFORE_THE_FORK):
            try:
                __import__(module.name)
            except ImportError:  # of a dependency that is not installed: the command reports it
                continue
    assert len(os.listdir("/proc/self/task")) == 1
    gc.collect()
    gc.freeze()


def _fork(requests: socket.socket) -> list[str]:
    """Return the arguments in each fork. The server never returns."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while True:
        message, fds, _, _ = socket.recv_fds(requests, 16, 3)
        if not message:  # the tests have ended
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            return _become(*fds)
        for fd in fds:
            os.close(fd)
        ended = os.pidfd_open(pid)
        ready, _, _ = select.select([ended, requests.fileno()], [], [])
        if ended not in ready:  # the tests have ended, or the run timed out
            os.kill(pid, signal.SIGKILL)
        os.close(ended)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        try:
            requests.send(str(code).encode())
        except BrokenPipeError:
            os._exit(0)


def _become(out: int, err: int, asked: int) -> list[str]:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(asked) as file:
        request = json.load(file)
    for number, fd in (1, out), (2, err):
        os.dup2(fd, number)
        os.close(fd)
    os.sched_setaffinity(0, request["cpus"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    arguments: list[str] = request["arguments"]
    return arguments


def _main() -> None:
    if os.fork():
        os._exit(0)  # some tests wait for any child of theirs: the server must not be one
    code: list[int] = []
    atexit.register(_end, code)  # before the modules register theirs, which therefore come first
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        _modules()
        sys.argv[1:] = _fork(connection)
    try:
        runpy.run_module("cbench", run_name="__main__", alter_sys=True)
    except SystemExit as error:
        if isinstance(error.code, int):
            code.append(error.code)
        raise


def _end(code: Sequence[int]) -> None:
    """The last function that Python calls at exit: skip freeing every object, which takes 40 ms."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return
    if code:
        os._exit(code[0])


if __name__ == "__main__":
    _main()

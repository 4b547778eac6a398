"""Run a competing load during trials: dd runs on one CPU, but only while a trial requests it.

    python -m cbench.workloads.competing begin SOCKET     once, before the trials (a study's setup)
    python -m cbench.workloads.competing end SOCKET       once, after them (its teardown)

A process that a trial starts would be counted with the trial. This program therefore starts and suspends dd, and
resumes it while a trial is connected to the socket. If a trial is killed, its connection is closed and dd is suspended.

Source: workload 1 of D. Flater, NIST TN 1855 (2014), section 3.2, where the whole machine has one CPU (nosmp).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from quiet import QuietError, UsageError

COMMAND = ("dd", "if=/dev/zero", "of=/dev/null")
WAIT_S = 5.0
END = b"end"
ENDED = "the competing load has ended"


@contextlib.contextmanager
def load(path: str, cpu: int) -> Iterator[Callable[[], float]]:
    """A context in which dd runs on this CPU. Yields a function that returns the CPU time, in seconds, that dd has used
    in this context. Raises UsageError if no load answers at `path`, QuietError if the load ends or `cpu` does not
    exist.
    """
    with socket.socket(socket.AF_UNIX) as connection:

        def answer(message: bytes) -> str:
            connection.sendall(message)
            received = connection.recv(64)
            if not received:
                raise QuietError(ENDED)
            return received.decode()

        def used_s() -> float:
            try:
                return float(answer(b"used"))
            except OSError:
                raise QuietError(ENDED) from None

        try:
            connection.connect(path)
            connection.settimeout(WAIT_S)
            answer(str(cpu).encode())
        except OSError as error:
            why = f"{path}: {error.strerror or error}"
            raise UsageError(f"{why}; start the load: python -m cbench.workloads.competing begin {path}") from None
        yield used_s


def begin(path: str) -> None:
    """Start the load in a background process, and exit once it accepts connections. Raises UsageError if the socket
    cannot be created.
    """
    listening = socket.socket(socket.AF_UNIX)
    try:
        if Path(path).is_socket():  # left behind by a killed load
            Path(path).unlink()
        listening.bind(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    listening.listen()
    if os.fork():
        os._exit(0)  # the socket is listening: a client that connects now waits for its turn
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with subprocess.Popen(COMMAND, stdin=null, stdout=null, stderr=null) as dd:
        try:
            dd.send_signal(signal.SIGSTOP)
            while _serve(listening, dd.pid):
                pass
        finally:
            dd.kill()
            Path(path).unlink(missing_ok=True)


def _serve(listening: socket.socket, pid: int) -> bool:
    """Serve one trial, from its beginning to its end. Returns False after the request to end."""
    connection = listening.accept()[0]
    with connection:
        request = connection.recv(64)
        if request == END:
            return False
        with contextlib.suppress(OSError, ValueError):  # the trial has ended, or the CPU does not exist
            os.sched_setaffinity(pid, {int(request)})
            before = _cpu_s(pid)
            os.kill(pid, signal.SIGCONT)
            connection.sendall(b"on")
            while connection.recv(64):
                connection.sendall(repr(_cpu_s(pid) - before).encode())
        os.kill(pid, signal.SIGSTOP)
    return True


def _cpu_s(pid: int) -> float:
    """The CPU time of a process so far in seconds, from its CPU clock (CPUCLOCK_SCHED in the kernel's
    posix-timers.h).
    """
    return time.clock_gettime(~pid << 3 | 2)


def end(path: str) -> None:
    """End the load. Idempotent."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(END)
        limit = time.monotonic() + WAIT_S
        while Path(path).exists() and time.monotonic() < limit:
            time.sleep(0.005)


def main() -> int:
    """Run the command line. Returns the exit code."""
    try:
        if len(sys.argv) != 3 or sys.argv[1] not in ("begin", "end"):
            raise UsageError("write: python -m cbench.workloads.competing begin|end SOCKET")
        (begin if sys.argv[1] == "begin" else end)(sys.argv[2])
    except QuietError as error:
        sys.stderr.write(f"cbench.workloads.competing: error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

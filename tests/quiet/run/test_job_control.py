"""A terminal's keys reach the command as if quiet were not there: Ctrl-Z stops both, fg continues, Ctrl-C ends.

A small shell with a pseudo-terminal starts the job in a process group of its own, as interactive shells do. `quiet run`
starts its command as `quiet lock` does, by quiet.run.child.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE_S = 100
BY_CHILD = """
import sys
from quiet.run import child
with child.CommandSignals() as signals:
    started = child.start(child.find(sys.argv[1]), sys.argv[1:], None, signals)
    started.begin(False)
    sys.exit(started.wait())
"""
STARTS = {
    "run and lock": [sys.executable, "-c", BY_CHILD],
    "why": [str(Path(sys.executable).parent / "quiet"), "why", "--no-trace", "--"],
}
COMMAND = ["sh", "-c", 'echo "pid $$."; read word; echo "got $word."; exec sleep 600']
SHELL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[2], sys.argv[2:])
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    stopped = os.WIFSTOPPED(status)
    word = f"stopped {os.WSTOPSIG(status)}" if stopped else f"ended {os.waitstatus_to_exitcode(status)}"
    os.write(int(sys.argv[1]), f"{word}.".encode())
    if not stopped:
        break
    os.tcsetpgrp(0, os.getpgrp())
    signal.sigwait([signal.SIGUSR1])  # "fg"
    os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
"""


def read_until(fd: int, text: str) -> str:
    """What comes until this text does."""
    seen, end = "", time.monotonic() + PATIENCE_S
    while text not in seen:
        ready, _, _ = select.select([fd], [], [], max(end - time.monotonic(), 0))
        assert ready, f"no {text!r} in {seen!r}"
        seen += os.read(fd, 1000).decode()
    return seen


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_ctrl_z_stops_quiet_and_the_command_fg_continues_both_and_ctrl_c_ends_with_130(start: list[str]) -> None:
    terminal, inside = os.openpty()
    statuses, tell = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # the shell waits for it
    words = [sys.executable, "-c", SHELL, str(tell), *start, *COMMAND]
    try:
        shell = subprocess.Popen(
            words, stdin=inside, stdout=inside, stderr=inside, pass_fds=[tell], start_new_session=True
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    try:
        pid = int(read_until(terminal, ".").rpartition("pid ")[2].partition(".")[0])
        os.write(terminal, b"\x1a")
        assert read_until(statuses, ".") == f"stopped {int(signal.SIGTSTP)}."
        end = time.monotonic() + PATIENCE_S
        while state(pid) != "T":
            assert time.monotonic() < end, "the command runs on"
            time.sleep(0.01)
        shell.send_signal(signal.SIGUSR1)
        os.write(terminal, b"on\n")
        read_until(terminal, "got on.")
        os.write(terminal, b"\x03")
        assert read_until(statuses, ".") == "ended 130."
        assert shell.wait(PATIENCE_S) == 0
    finally:
        shell.kill()
        shell.wait()
        for fd in (terminal, inside, statuses, tell):
            os.close(fd)

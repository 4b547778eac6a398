"""A terminal's keys reach the command as if quiet were not there: Ctrl-Z stops both, fg continues, Ctrl-C ends.

A small shell with a pseudo-terminal starts the job in a process group of its own, as interactive shells do. `quiet run`
starts its command as `quiet lock` does, by quiet.run.child.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
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


@contextmanager
def shell(*command: str) -> Iterator[tuple[int, int, subprocess.Popen[bytes]]]:
    """The terminal of a shell that runs a command as a job, the pipe with how the job stops and ends, and the shell."""
    terminal, inside = os.openpty()
    statuses, tell = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # the shell waits for it
    words = [sys.executable, "-c", SHELL, str(tell), *command]
    try:
        running = subprocess.Popen(
            words, stdin=inside, stdout=inside, stderr=inside, pass_fds=[tell], start_new_session=True
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    try:
        yield terminal, statuses, running
    finally:
        running.kill()
        running.wait()
        for fd in (terminal, inside, statuses, tell):
            os.close(fd)


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_ctrl_z_stops_quiet_and_the_command_fg_continues_both_and_ctrl_c_ends_with_130(start: list[str]) -> None:
    with shell(*start, *COMMAND) as (terminal, statuses, running):
        pid = int(read_until(terminal, ".").rpartition("pid ")[2].partition(".")[0])
        os.write(terminal, b"\x1a")
        assert read_until(statuses, ".") == f"stopped {int(signal.SIGTSTP)}."
        end = time.monotonic() + PATIENCE_S
        while state(pid) != "T":
            assert time.monotonic() < end, "the command runs on"
            time.sleep(0.01)
        running.send_signal(signal.SIGUSR1)
        os.write(terminal, b"on\n")
        read_until(terminal, "got on.")
        os.write(terminal, b"\x03")
        assert read_until(statuses, ".") == "ended 130."
        assert running.wait(PATIENCE_S) == 0


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_command_that_stops_itself_stops_the_job_and_goes_on_with_it(start: list[str]) -> None:
    with shell(*start, "sh", "-c", "kill -STOP $$; echo goes on.; exit 5") as (terminal, statuses, running):
        assert read_until(statuses, ".") == f"stopped {int(signal.SIGSTOP)}."
        running.send_signal(signal.SIGUSR1)
        read_until(terminal, "goes on.")
        assert read_until(statuses, ".") == "ended 5."


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_stop_that_is_sent_to_quiet_alone_stops_the_command_too(start: list[str]) -> None:
    with shell(*start, *COMMAND) as (terminal, statuses, running):
        pid = int(read_until(terminal, ".").rpartition("pid ")[2].partition(".")[0])
        psutil.Process(pid).parent().send_signal(signal.SIGTSTP)
        assert read_until(statuses, ".") == f"stopped {int(signal.SIGTSTP)}."
        assert state(pid) == "T"
        running.send_signal(signal.SIGUSR1)
        os.write(terminal, b"on\n")
        read_until(terminal, "got on.")
        os.write(terminal, b"\x03")
        assert read_until(statuses, ".") == "ended 130."


@pytest.mark.slow
def test_why_that_is_stopped_for_longer_than_it_waits_still_reports(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [*STARTS["why"][:-1], "--report", str(report), "--", "sh", "-c", "echo begun; read word; exit 7"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as why:
        assert why.stdin
        assert why.stdout
        why.stdout.readline()
        for _ in range(3):
            why.send_signal(signal.SIGSTOP)
            time.sleep(1.2)  # it looks at the command's tasks more often
            why.send_signal(signal.SIGCONT)
        why.stdin.write(b"on\n")
        why.stdin.close()
        assert why.wait(PATIENCE_S) == 7
    assert json.loads(report.read_text())["exit_code"] == 7


@pytest.mark.skipif(os.geteuid() != 0, reason="root becomes another user")
def test_under_sudo_the_command_of_why_and_its_report_are_the_users() -> None:
    environment = {**os.environ, "SUDO_UID": "65534", "SUDO_GID": "65534"}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        command = [*STARTS["why"][:-1], "--report", f"{folder}/report.json", "--", "id", "-u"]
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=True)
        assert Path(folder, "report.json").stat().st_uid == 65534
    assert done.stdout == "65534\n"

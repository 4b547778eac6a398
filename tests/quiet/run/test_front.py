"""The front of `quiet run` with a helper that stays: what it sends, prints and ends with. The helper is a thread."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from quiet.run.options import RunRequest
from quiet.run.protocol import (
    FROM_FRONT,
    CommandDone,
    HelperChannel,
    Message,
    Moved,
    RunEnded,
    RunFailure,
    RunReady,
    Start,
    Waiting,
)

# a helper that stays is root's, which that of a test need not be
FRONT = """
import sys
from quiet.run import protocol
protocol.LINGER_SOCKET = sys.argv[1]
protocol.HelperChannel.peer = lambda self: protocol.Peer(1, 0)
sys.argv = ["quiet", *sys.argv[2:]]
from quiet.cli.start import main
main()
"""
READY = RunReady("bench", "2-3", False, 0, 31, ("a note",))


def can_fix() -> bool:
    """Whether personality(2) is permitted; some containers forbid it."""
    return subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode == 0


def play(
    folder: Path, answer: Callable[[HelperChannel], None], *arguments: str, stderr: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a front whose helper answers so. `stderr`: the file for its messages."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{folder}/linger.{os.geteuid()}")
    listening.listen()

    def serve() -> None:
        try:
            connection, _ = listening.accept()
        except OSError:  # the front has ended without a connection
            return
        with connection:
            answer(HelperChannel(connection, FROM_FRONT))

    helper = threading.Thread(target=serve)
    helper.start()
    command = [sys.executable, "-c", FRONT, f"{folder}/linger.", "run", *arguments]
    with open(stderr or os.devnull, "w") as file:
        messages = file if stderr else subprocess.PIPE
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=messages, text=True, timeout=300, check=False)
    listening.shutdown(socket.SHUT_RDWR)
    helper.join()
    listening.close()
    return done


def whole(received: list[Message | None], ended: RunEnded) -> Callable[[HelperChannel], None]:
    """A helper that has the command run; what it received is in the list."""

    def answer(channel: HelperChannel) -> None:
        received.append(channel.receive(RunRequest))
        channel.send(Waiting("waiting for PID 1"))
        channel.send(READY)
        received.append(channel.receive(Start))
        channel.send(Moved())
        received.append(channel.receive(CommandDone))
        channel.send(ended)

    return answer


def test_a_run_has_its_commands_output_and_exit_code(tmp_path: Path) -> None:
    received: list[Message | None] = []
    ended = RunEnded(True, True, 0, (), ("interrupted once",), lingers_s=4.0)
    done = play(tmp_path, whole(received, ended), "--linger", "5", "--", "sh", "-c", "echo out; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert done.stderr.splitlines() == [
        "quiet: waiting for PID 1",
        "quiet: bench on CPUs 2-3: 0 changes, 31 left alone",
        "quiet: a note",
        "quiet: the profile stays applied for the next runs; quiet restores 4 s after the last run",
        "quiet: interrupted once",
    ]
    request, _, usage = received
    assert isinstance(request, RunRequest)
    assert (request.linger_s, request.observe, request.trace) == (5.0, True, False)
    assert isinstance(usage, CommandDone)
    assert (usage.code, usage.cpu_ns > 0) == (7, True)


def test_a_command_runs_although_no_message_can_be_written(tmp_path: Path) -> None:
    ended = RunEnded(True, True, 0, (), ("interrupted once",))
    done = play(tmp_path, whole([], ended), "--", "sh", "-c", "echo out; exit 7", stderr="/dev/full")
    assert (done.returncode, done.stdout) == (7, "out\n")


@pytest.mark.parametrize(("complete", "code"), [(True, 0), (False, 4)])
def test_an_incomplete_restore_is_the_exit_code(tmp_path: Path, complete: bool, code: int) -> None:
    done = play(tmp_path, whole([], RunEnded(complete, False, 3, ())), "--quiet-report", "--", "true")
    assert done.returncode == code


NOISY = RunEnded(True, True, 0, (), interruptions=3, lost_ns=1_000_000, observed_ns=1_000_000_000)


@pytest.mark.parametrize(
    ("options", "ended", "code", "reason"),
    [
        (("--max-lost", "0.1%", "--max-interrupts", "3"), NOISY, 0, ""),
        (("--max-lost", "0.09"), NOISY, 1, "not quiet: 0.1 % of the time was lost, more than 0.09 %"),
        (("--max-interrupts", "2"), NOISY, 1, "not quiet: 3 interruptions, more than 2"),
        (("--max-interrupts", "9"), RunEnded(True, True, 0, ()), 1, "cannot be checked"),
        (("--max-interrupts", "3"), NOISY._replace(unmeasured=2), 0, ""),
        (("--max-lost", "1%"), NOISY._replace(unmeasured=2), 1, "the length of 2 interruptions is unknown"),
        (("--max-lost", "0.09%"), NOISY._replace(unmeasured=2), 1, "not quiet: 0.1 %"),
    ],
)
def test_limits_decide_the_exit_code_of_a_command_that_succeeds(
    tmp_path: Path, options: tuple[str, ...], ended: RunEnded, code: int, reason: str
) -> None:
    done = play(tmp_path, whole([], ended), *options, "--", "true")
    assert (done.returncode, reason in done.stderr) == (code, True), done.stderr
    assert ("not quiet" in done.stderr or "cannot be checked" in done.stderr) == bool(code)


def test_limits_leave_the_exit_code_of_a_command_that_fails_and_the_report_has_them(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    options = ("--max-interrupts", "2", "--report", str(file), "--", "sh", "-c", "exit 7")
    assert play(tmp_path, whole([], NOISY), *options).returncode == 7
    report = json.loads(file.read_text())
    assert report["exceeded"] == ["not quiet: 3 interruptions, more than 2"]
    assert (report["command"], report["exit_code"]) == (["sh", "-c", "exit 7"], 7)


def test_an_incomplete_restore_is_code_4_and_the_report_has_the_command_s_code(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    options = ("--report", str(file), "--", "sh", "-c", "exit 7")
    assert play(tmp_path, whole([], NOISY._replace(complete=False)), *options).returncode == 4
    report = json.loads(file.read_text())
    assert (report["complete"], report["exit_code"]) == (False, 7)


def test_a_command_that_a_signal_ends_has_its_number(tmp_path: Path) -> None:
    done = play(tmp_path, whole([], RunEnded(True, True, 0, ())), "--quiet-report", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137


def test_a_command_gets_fixed_addresses_if_the_profile_requests_them(tmp_path: Path) -> None:
    def answer(channel: HelperChannel) -> None:
        channel.receive(RunRequest)
        channel.send(READY._replace(fixed=True))
        channel.receive(Start)
        channel.send(Moved())
        channel.receive(CommandDone)
        channel.send(RunEnded(True, True, 0, ()))

    done = play(tmp_path, answer, "--quiet-report", "--", "cat", "/proc/self/personality")
    if "personality(2) cannot be called here" in done.stderr and not can_fix():
        pytest.skip("personality(2) is forbidden here")
    assert done.stdout == "00040000\n"


def test_a_refusal_is_reported_in_one_line_and_runs_nothing(tmp_path: Path) -> None:
    def refuse(channel: HelperChannel) -> None:
        channel.receive(RunRequest)
        channel.send(RunFailure("no; nothing was changed", 3))

    done = play(tmp_path, refuse, "--", "touch", str(tmp_path / "ran"))
    assert (done.returncode, done.stderr) == (3, "quiet: error: no; nothing was changed\n")
    assert not (tmp_path / "ran").exists()


def test_a_helper_that_dies_after_the_command_began_is_incomplete(tmp_path: Path) -> None:
    def die(channel: HelperChannel) -> None:
        channel.receive(RunRequest)
        channel.send(READY)
        channel.receive(Start)
        channel.send(Moved())

    done = play(tmp_path, die, "--", "true")
    assert done.returncode == 4
    assert "quiet restore" in done.stderr

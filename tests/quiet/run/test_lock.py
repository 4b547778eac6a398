"""`quiet lock` in a tree of its own: in order, one at a time; `--no-wait` is refused; the status shows the queue."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quiet.host.host import Host
from quiet.host.queue import make_queue, queue

PATIENCE_S = 100
RUNS = 10
LOCK = """
import sys
from quiet.console import ended
from quiet.host.host import Host
from quiet.run.lock import lock
root, wait, *command = sys.argv[1:]
note = lambda text: print(text, file=sys.stderr)
sys.exit(ended(lambda: lock(Host(root), command, False, float(wait) if wait else None, note), "quiet"))
"""
HOLD = ["sh", "-c", "read word", "holder"]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    found = Host(str(tmp_path))
    make_queue(found)
    return found


def start(root: Path, *command: str, wait: str = "") -> subprocess.Popen[str]:
    words = [sys.executable, "-c", LOCK, str(root), wait, *command]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=root)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


@contextmanager
def held(host: Host, root: Path) -> Iterator[subprocess.Popen[str]]:
    """A command that has the turn until it reads a line."""
    holder = start(root, *HOLD)
    try:
        until(lambda: any(ticket.running for ticket in queue(host)))
        yield holder
    finally:
        holder.communicate("done\n", timeout=PATIENCE_S)
        assert holder.returncode == 0


@pytest.mark.slow
def test_ten_commands_run_in_the_order_of_their_tickets_and_never_two_at_once(host: Host, tmp_path: Path) -> None:
    work = "echo begin $0 >> log; sleep 0.02; echo end $0 >> log"
    with held(host, tmp_path):
        runs = [start(tmp_path, "sh", "-c", work, str(number)) for number in range(RUNS)]
        until(lambda: len(queue(host)) == RUNS + 1)
        arrived = [ticket.command.rsplit(" ", 1)[1] for ticket in queue(host)[1:]]
        assert not Path(tmp_path, "log").exists(), "one ran beside the holder"
    for run in runs:
        _, message = run.communicate(timeout=PATIENCE_S)
        assert run.returncode == 0, message
        assert " ahead\n" in message
    ran = Path(tmp_path, "log").read_text().splitlines()
    assert ran == [f"{word} {number}" for number in arrived for word in ("begin", "end")]
    assert sorted(arrived) == [str(number) for number in range(RUNS)]
    assert queue(host) == []


def test_a_run_that_does_not_wait_is_refused_with_the_holder_and_nothing_runs(host: Host, tmp_path: Path) -> None:
    with held(host, tmp_path):
        refused = start(tmp_path, "touch", str(tmp_path / "ran"), wait="0")
        _, message = refused.communicate(timeout=PATIENCE_S)
    assert refused.returncode == 3
    assert "the isolated CPUs are in use by " in message
    assert "read word holder" in message
    assert message.endswith("nothing was run\n")
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_the_status_shows_the_holder_and_the_waiting_runs(host: Host, tmp_path: Path) -> None:
    with held(host, tmp_path):
        waiting = start(tmp_path, "true", "waits")
        until(lambda: len(queue(host)) == 2)
        command = [str(Path(sys.executable).parent / "quiet"), "status", "--root", str(tmp_path), "--json"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    waiting.communicate(timeout=PATIENCE_S)
    assert waiting.returncode == 0
    runs = json.loads(shown.stdout)["queue"]
    assert [(run["command"], run["running"]) for run in runs] == [
        ("sh -c read word holder", True),
        ("true waits", False),
    ]


@pytest.mark.slow
def test_a_command_ends_with_a_front_that_is_killed(host: Host, tmp_path: Path) -> None:
    holder = start(tmp_path, "sh", "-c", "echo $$; read word; sleep 600; :")
    assert holder.stdout
    pid = int(holder.stdout.readline())
    holder.kill()
    until(lambda: not Path(f"/proc/{pid}").exists() or "(zombie)" in Path(f"/proc/{pid}/status").read_text())
    holder.communicate()

"""Signals: the command ends cleanly and leaves no measuring process behind."""

from __future__ import annotations

import signal
import subprocess
import time

import psutil
import pytest

from tests.cbench.running import CBENCH, alive, comes

LONG = [*CBENCH, "run", "hash", "--trials", "1000000", "--json"]


def start() -> tuple[subprocess.Popen[str], psutil.Process]:
    """A long run and its measuring process."""
    command = subprocess.Popen(LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for child in psutil.Process(command.pid).children():
            if "cbench.measure.worker" in child.cmdline() and len(child.cpu_affinity()) == 1:
                time.sleep(0.3)
                return command, child
        time.sleep(0.05)
    command.kill()
    raise AssertionError("no measuring process appeared")


def gone(process: psutil.Process) -> bool:
    return comes(lambda: not alive(process.pid))


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_and_its_worker(sent: signal.Signals, code: int) -> None:
    command, worker = start()
    command.send_signal(sent)
    out, err = command.communicate(timeout=120)
    assert command.returncode == code
    assert out == ""
    assert "Traceback" not in err
    assert ("interrupted" in err) == (sent == signal.SIGINT)
    assert gone(worker)


@pytest.mark.slow
def test_when_the_command_is_killed_its_worker_ends() -> None:
    command, worker = start()
    command.kill()
    command.communicate(timeout=120)
    assert gone(worker)


@pytest.mark.slow
def test_a_killed_worker_is_reported_in_one_line_with_exit_2() -> None:
    command, worker = start()
    worker.kill()
    out, err = command.communicate(timeout=120)
    assert command.returncode == 2
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("cbench: error: ")]
    assert len(lines) == 1
    assert "was killed (SIGKILL)" in lines[0]


@pytest.mark.slow
def test_the_worker_runs_on_one_cpu_and_the_command_elsewhere_if_possible() -> None:
    command, worker = start()
    try:
        tested = set(worker.cpu_affinity())
        mine = set(psutil.Process(command.pid).cpu_affinity())
        assert len(tested) == 1
        assert not tested & mine or tested == mine
    finally:
        command.terminate()
        command.communicate(timeout=120)

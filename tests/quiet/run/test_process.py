"""What a helper keeps of its caller: nothing that could change what it does."""

from __future__ import annotations

import os
import pty
import resource
import signal
import time
from pathlib import Path

import pytest

from quiet.host.host import Host
from quiet.run.process import cleanse, detach


@pytest.mark.parametrize(("name", "wanted"), [("STACK", 8 << 20), ("RTTIME", resource.RLIM_INFINITY), ("CORE", 0)])
def test_a_limit_of_the_caller_is_not_inherited(tmp_path: Path, name: str, wanted: int) -> None:
    number = getattr(resource, f"RLIMIT_{name}")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            resource.setrlimit(number, (1 << 18, resource.getrlimit(number)[1]))
            cleanse(Host(str(tmp_path)))
            code = resource.getrlimit(number)[0] != wanted
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.slow
def test_a_terminal_that_sudo_closes_at_its_end_does_not_end_the_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    """sudo's monitor leads the session of a terminal of its own (use_pty), and ends with its command."""
    new_session = os.setsid
    monkeypatch.setattr(os, "setsid", lambda: (time.sleep(0.5), new_session()))  # late, as on a busy host
    read_end, write_end = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        command = os.fork()
        if command == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            os.write(detach(write_end), b"alive")
            os._exit(0)
        os.waitpid(command, 0)
        os._exit(0)
    os.close(write_end)
    assert os.waitpid(pid, 0)[1] == 0
    assert os.read(read_end, 100) == b"alive"
    os.close(terminal)

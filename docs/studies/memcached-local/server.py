"""Control a separate memcached server: server.py start (unless it runs), restart or stop.

It listens at MEMCACHED_ADDRESS (127.0.0.1:21211); its process ID is in a file in $TMPDIR that only its owner can
write. The script ends only a memcached process that was started with this file.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ADDRESS = os.environ.get("MEMCACHED_ADDRESS", "127.0.0.1:21211")
FOLDER = Path(tempfile.gettempdir(), f"cbench-memcached-{os.getuid()}")
PID = FOLDER / f"{ADDRESS}.pid"
PATIENCE_S = 5.0


def running() -> int | None:
    """The process ID of the server, if it was started by this script and still runs."""
    try:
        pid = int(PID.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(PID) in command else None


def answers() -> bool:
    host, _, port = ADDRESS.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return True
    return False


def stop() -> None:
    pid = running()
    if pid is not None:
        os.kill(pid, signal.SIGKILL)  # no data can be lost, and an end by SIGTERM takes a second
        wait(lambda: running() is None and not answers())  # the process ends before its socket is closed
    PID.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        FOLDER.rmdir()


def start() -> None:
    program = shutil.which("memcached")
    if program is None:
        sys.exit("server.py: memcached is not installed: apt-get install memcached")
    if running() is not None:  # left behind by a killed study: keep it with its content
        return
    if answers():
        sys.exit(f"server.py: another program listens at {ADDRESS}: set another MEMCACHED_ADDRESS in study.toml")
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    host, _, port = ADDRESS.rpartition(":")
    command = [program, "-d", "-l", host, "-p", port, "-U", "0", "-m", "64", "-t", "1", "-P", str(PID)]
    if os.getuid() == 0:  # memcached refuses to run as root
        command += ["-u", pwd.getpwuid(0).pw_name]
    subprocess.run(command, check=True)
    if not wait(lambda: running() is not None and answers()):
        sys.exit(f"server.py: memcached does not answer at {ADDRESS}")


def restart() -> None:
    stop()
    start()


def wait(until: Callable[[], bool]) -> bool:
    limit = time.monotonic() + PATIENCE_S
    while not until():
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True


if __name__ == "__main__":
    doing = {"start": start, "restart": restart, "stop": stop}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if doing is None:
        sys.exit("usage: server.py start|restart|stop")
    doing()

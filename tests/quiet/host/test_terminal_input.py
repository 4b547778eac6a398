"""A command of another user cannot type into the terminal that it shares with root; job control still works."""

from __future__ import annotations

import errno
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quiet.host import terminal_input

LEGACY = Path("/proc/sys/dev/tty/legacy_tiocsti")
DENIED = LEGACY.exists() and LEGACY.read_text().strip() == "0"  # by the kernel itself
EXPECTED = errno.EIO if DENIED else errno.EACCES
# tries TIOCSTI on its terminal, by each number of ioctl(2), and prints the error numbers; then asks for a window size
TYPES = """
use POSIX; $| = 1; my $x = "x";
my @seen = map { $! = 0; syscall($_ + 0, 0, 0x5412, $x); $! + 0 } @ARGV;
my $line = "\\x0c"; my $size = "\\0" x 8;
push @seen, (ioctl(STDIN, 0x541C, $line) ? 0 : $! + 0);
push @seen, (ioctl(STDIN, 0x5413, $size) ? 0 : $! + 0);
push @seen, (POSIX::tcgetpgrp(0) == getpgrp() ? 0 : 1);
print "seen @seen.\\n";
"""
STARTS = """
import sys
from quiet.host.identity import Identity
from quiet.run import child
with child.CommandSignals() as signals:
    started = child.start(sys.argv[1], sys.argv[1:], Identity(65534, 65534, "", "/", ""), signals)
    started.begin(False)
    sys.exit(started.wait())
"""
BECOMES = """
import os, sys
from quiet.host import identity
if pid := os.fork():
    os.waitpid(pid, 0)
else:
    identity.become(identity.Identity(65534, 65534, "", "/", ""))
    os.execv(sys.argv[1], sys.argv[1:])
"""
IOCTLS = {"x86_64": ("16", str(0x40000010), str(0x40000202)), "aarch64": ("29",)}.get(os.uname().machine, ())

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
    pytest.mark.skipif(not IOCTLS or not shutil.which("perl"), reason="needs x86-64 or arm64, and perl"),
]


def in_terminal(code: str, *command: str, shell: str = "/bin/sh") -> str:
    """What a command prints in a terminal of its own, whose session is that of a shell of root."""
    pid, terminal = pty.fork()
    if not pid:
        os.execv(shell, [shell, "-c", '"$@"; exit', shell, sys.executable, "-c", code, *command])
    shown = b""
    try:
        while more := os.read(terminal, 4096):
            shown += more
    except OSError:  # EIO: the terminal has no processes left
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    return shown.decode()


@pytest.mark.slow
@pytest.mark.parametrize("code", [STARTS, BECOMES], ids=["run and lock", "why"])
def test_a_command_of_another_user_cannot_type_into_the_terminal_of_root(code: str) -> None:
    shown = in_terminal(code, shutil.which("perl") or "", "-e", TYPES, *IOCTLS)
    seen = shown.partition("seen ")[2].partition(".")[0].split()
    if not DENIED:
        assert seen == [*[str(EXPECTED)] * len(IOCTLS), str(EXPECTED), "0", "0"], shown
    else:
        assert (seen[0], seen[-2:]) == (str(EXPECTED), ["0", "0"]), shown


def test_without_a_terminal_no_filter_slows_the_command_down() -> None:
    command = [sys.executable, "-c", BECOMES, "/bin/grep", "-E", "^(Seccomp|NoNewPrivs):", "/proc/self/status"]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=50,
        check=True,
    )
    assert done.stdout.split() == ["NoNewPrivs:", "0", "Seccomp:", "0"], done.stderr


@pytest.mark.slow
def test_under_sudo_in_a_users_own_terminal_no_filter_slows_the_command_down(tmp_path: Path) -> None:
    (tmp_path / "sudo").symlink_to("/bin/sh")  # the name of the process is then that of sudo
    shown = in_terminal(
        STARTS, "/bin/grep", "-E", "^(Seccomp|NoNewPrivs):", "/proc/self/status", shell=str(tmp_path / "sudo")
    )
    assert shown.split() == ["NoNewPrivs:", "0", "Seccomp:", "0"]


@pytest.mark.slow
@pytest.mark.skipif(DENIED, reason="the kernel denies it itself")
def test_the_filter_leaves_sudo_in_the_command_working() -> None:
    shown = in_terminal(STARTS, "/bin/grep", "-E", "^(Seccomp|NoNewPrivs):", "/proc/self/status")
    assert shown.split() == ["NoNewPrivs:", "0", "Seccomp:", "2"]


def test_if_the_filter_cannot_be_installed_the_command_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_input, "_at_risk", lambda: True)
    monkeypatch.setattr(terminal_input, "_CALLS", {})
    with pytest.raises(OSError, match="cannot prevent the command from typing into this terminal"):
        terminal_input.protect()

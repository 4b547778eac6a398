"""`quiet run` around the start of its command: no signal is lost. What it does to a host is shown in the lab."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.quiet.run.test_front import can_fix

# The sender of the signal, and the time: just before the fork, or just after it to this process or to the command.
WHEN = {
    "before the fork": "os.kill(os.getpid(), {0}); return fork()",
    "after the fork, to quiet": "pid = fork(); pid and os.kill(os.getpid(), {0}); return pid",
    "after the fork, to the command": "pid = fork(); pid and os.kill(pid, {0}); return pid",
}
SCRIPT = """
import os, sys
from quiet.run import child
fork = os.fork
def fork_and_send():
    {send}
os.fork = fork_and_send
with child.CommandSignals() as signals:
    started = child.start("/bin/sleep", ["sleep", "60"], None, signals)
    if started:
        started.begin(False)
    print(started.wait() if started else 128 + signals.pending)
"""


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGALRM, signal.SIGVTALRM, signal.SIGRTMIN],
)
def test_a_signal_around_the_fork_ends_the_command(when: str, number: signal.Signals) -> None:
    code = SCRIPT.format(send=WHEN[when].format(int(number)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == f"{128 + number}\n", done.stderr


def test_a_signal_before_the_command_is_started_is_its_exit_code() -> None:
    kill = "    os.kill(os.getpid(), 15)\n    started = child"
    code = SCRIPT.format(send="assert False").replace("    started = child", kill)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "143\n", done.stderr


def test_a_command_is_waited_for_where_the_caller_ignores_its_children() -> None:
    code = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)" + SCRIPT.format(send="return fork()")
    code = code.replace(
        '"/bin/sleep", ["sleep", "60"]', '"/bin/grep", ["grep", "SigIgn", "/proc/self/status", "/none"]'
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    _, ignored, exit_code = done.stdout.split()
    assert (int(ignored, 16) >> (signal.SIGCHLD - 1) & 1, exit_code) == (1, "2"), done.stderr


def test_addresses_are_fixed_for_a_user_who_cannot_read_pythons_files() -> None:
    code = (
        "import sys; from quiet.host import identity; from quiet.run import child\n"
        "def become(user):\n"
        "    sys.path.clear()\n"
        "identity.become = become\n"
        "with child.CommandSignals() as signals:\n"
        "    user = identity.Identity(65534, 65534, '', '/', '')\n"
        "    started = child.start('/bin/cat', ['cat', '/proc/self/personality'], user, signals)\n"
        "    started.begin(True); started.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    if "personality(2) cannot be called here" in done.stderr and not can_fix():
        pytest.skip("personality(2) is forbidden here")
    assert done.stdout == "00040000\n", done.stderr

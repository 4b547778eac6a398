"""Stop this process when its child stops, and end it when its parent dies."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # has the functions and numbers of signal without its enumerations

_PR_SET_PDEATHSIG = 1  # prctl(2)
_CONTINUES_S = 0.01  # a shell's SIGCONT reaches the processes of a group one after the other


def stop_with(pid: int) -> None:
    """If the child `pid` is stopped, stop this process too, so that the shell notices.

    When this process is continued, continue the child.
    """
    if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is None:
        return
    time.sleep(_CONTINUES_S)
    stopped = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
    if stopped is None:
        return
    number = signal.SIGTSTP if stopped.si_status == signal.SIGTSTP else signal.SIGSTOP
    os.kill(os.getpid(), number)  # merged with a SIGTSTP that the terminal has already sent
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.kill(pid, signal.SIGCONT)


def die_with(parent: int) -> bool:
    """Have the kernel kill this process when its parent dies; False if the parent is dead already or prctl(2) fails.

    Has no effect and returns True if Python lacks libffi. A program that changes its user, such as sudo, is not killed.
    """
    try:
        import _ctypes  # loading ctypes itself takes four times as long
    except ImportError:  # Python was built without libffi
        return True
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type] # None: this process
    done = _ctypes.call_function(prctl, (_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))
    return done == 0 and os.getppid() == parent

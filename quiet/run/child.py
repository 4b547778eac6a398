"""Run the command: find it, fork, hold the child until it is on its CPUs, execute the program, and forward signals."""

from __future__ import annotations

import os
import sys

from quiet.errors import UsageError
from quiet.run.protocol import CommandDone

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from quiet.host.identity import Identity
else:
    import _signal as signal  # has the functions and numbers of signal without its enumerations

_TO_THE_GROUP = (signal.SIGINT, signal.SIGQUIT)  # a terminal sends these to the command as well; kill(2) does not
_FORWARDED = (
    *(signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO),
    *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
)
_NOT_STARTED = 126
_ADDR_NO_RANDOMIZE = 0x0040000  # personality(2)


def find(name: str) -> str:
    """The path of a program, searched in PATH and then in this program's directory, because sudo resets PATH.

    Raises UsageError if there is no such executable.
    """
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    beside = os.path.dirname(os.path.realpath(sys.argv[0]))
    paths = [name] if "/" in name else [os.path.join(folder, name) for folder in (*folders, beside)]
    for path in paths:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise UsageError(f"{name}: no such command, or not executable; nothing was changed")


class CommandSignals:
    """A context manager that keeps signals from ending this process between an apply and its restore.

    A signal is stored or forwarded to the command. Signals that were ignored at the start (nohup) stay ignored, also in
    the command. `early` is called for a signal that arrives before the command is started. After the start, signals
    are blocked and read with their siginfo: only siginfo shows whether a terminal sent a signal to the command as well.
    """

    def __init__(self, early: Callable[[], None] = lambda: None) -> None:
        self.child = 0  # the command, for `forward`
        self.pending = 0
        self._early = early
        self._before: dict[int, Callable[..., object] | int | None] = {}
        self._mask: set[int] | None = None  # before the command was started

    def __enter__(self) -> CommandSignals:
        self._of_children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, wait4() fails
        for number in (*_TO_THE_GROUP, *_FORWARDED):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        self._unblock()
        for number, handler in (*self._before.items(), (signal.SIGCHLD, self._of_children)):
            signal.signal(number, handler)

    def fork(self) -> int | None:
        """Fork the child. Returns the value of fork(2), or None if a signal arrived first.

        A signal that arrives during the fork stays pending for the child, which has no handler.
        """
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, (*self._before, signal.SIGTSTP, signal.SIGCHLD)))
        if not self.pending:
            self.child = os.fork()
            if self.child:
                return self.child
            for number in self._before:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGCHLD, self._of_children)
        self._unblock()
        return None if self.pending else 0

    def forward(self) -> None:
        """Forward signals until the command has ended, without reaping it."""
        from quiet.host.job_control import stop_with

        numbers = (*self._before, signal.SIGTSTP, signal.SIGCHLD)
        while os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            stop_with(self.child)
            came = signal.sigwaitinfo(numbers)
            if came.si_signo in _FORWARDED or (came.si_signo != signal.SIGCHLD and came.si_code <= 0):  # not the kernel
                os.kill(self.child, came.si_signo)
        while signal.sigtimedwait(numbers, 0):
            pass  # they were for the command
        self._unblock()

    def _unblock(self) -> None:
        if self._mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            self._mask = None

    def _take(self, number: int, _frame: object) -> None:
        self.pending = number
        self._early()


class Child:
    """The process of the command, which waits until it may begin."""

    def __init__(self, pid: int, gate: int, signals: CommandSignals) -> None:
        self.pid, self._gate, self._signals = pid, gate, signals
        self.done = CommandDone()  # with the resource usage, once the command has ended

    def begin(self, fixed: bool) -> None:
        """Let the child execute the command; `fixed`: without address-space randomization."""
        try:
            os.write(self._gate, b"f" if fixed else b"g")
        except BrokenPipeError:
            return  # a signal has ended the child

    def wait(self) -> int:
        """Wait for the child to end. Returns its exit code, 128 + N for signal N.

        A child for which begin() was not called ends now.
        """
        os.close(self._gate)
        self._signals.forward()
        _, status, used = os.wait4(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
        cpu_ns = round((used.ru_utime + used.ru_stime) * 1e9)
        self.done = CommandDone(code, cpu_ns, used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw)
        return code


def start(
    program: str, command: Sequence[str], user: Identity | None, signals: CommandSignals, bound: bool = False
) -> Child | None:
    """Fork the child; None if a signal arrived first. `bound`: a SIGKILL of this process ends the child too."""
    sys.stdout.flush()
    sys.stderr.flush()
    gate, opener = os.pipe()
    parent = os.getpid() if bound else 0
    pid = signals.fork()
    if pid == 0:
        os.close(opener)
        _become(program, command, user, gate, parent)
    os.close(gate)
    if pid is None:
        os.close(opener)
        return None
    return Child(pid, opener, signals)


def _become(program: str, command: Sequence[str], user: Identity | None, gate: int, parent: int) -> NoReturn:
    """In the child: wait for the start signal, then execute the program."""
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these signals, but its children should not
            signal.signal(number, signal.SIG_DFL)
        # loaded while the helper works, and as root, because the user may be unable to read Python's files
        fix_addresses = _address_fixer()
        from quiet.host.job_control import die_with

        if user:
            from quiet.host import identity

            identity.become(user)
        if parent and not die_with(parent):
            os._exit(_NOT_STARTED)
        word = os.read(gate, 1)
        if word == b"f" and not fix_addresses():
            os.write(2, b"quiet: addresses stay randomized: personality(2) cannot be called here\n")
        if word:
            os.execv(program, list(command))  # noqa: S606 - running the user's command is the purpose
    except OSError as error:
        os.write(2, f"quiet: error: {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(_NOT_STARTED)


def _address_fixer() -> Callable[[], bool]:
    """A function that disables address-space randomization for the next program that this process executes.

    The function returns False if this is forbidden or not supported.
    """
    try:
        import _ctypes  # loading ctypes itself takes four times as long, in every run
    except ImportError:  # Python was built without libffi
        return lambda: False

    personality = _ctypes.dlsym(_ctypes.dlopen(None, 0), "personality")  # type: ignore[arg-type] # None: libc is here

    def fix() -> bool:
        now = _ctypes.call_function(personality, (0xFFFFFFFF,))
        return bool(now >= 0 and _ctypes.call_function(personality, (now | _ADDR_NO_RANDOMIZE,)) >= 0)

    return fix

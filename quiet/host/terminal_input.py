"""Prevent a process of another user from typing into the terminal that it shares with root (CVE-2016-2779).

The ioctls TIOCSTI and TIOCLINUX insert characters that the shell reads after the command has ended. A seccomp filter
makes them fail with EACCES, in this process and its descendants; a new session would prevent job control. Sources: man
pages seccomp(2), ioctl_tty(2), ioctl_console(2); include/uapi/linux/{seccomp,filter,audit}.h.
"""

from __future__ import annotations

import errno
import os
import struct
import sys

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from collections.abc import Iterable

_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_LEGACY = "/proc/sys/dev/tty/legacy_tiocsti"
_STARTERS = (b"sudo", b"doas")  # they run as root, but read no commands from the terminal
# machine: the number of seccomp(2), and for each AUDIT_ARCH_* the numbers of ioctl(2), including x32
_CALLS = {
    "x86_64": (317, ((0xC000003E, (16, 514, 1 << 30 | 16, 1 << 30 | 514)), (0x40000003, (54,)))),
    "aarch64": (277, ((0xC00000B7, (29,)), (0x40000028, (54,)))),
}
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K
_NUMBER, _ARCH, _REQUEST = 0, 4, 24  # offsets in struct seccomp_data; the kernel uses 32 bits of an ioctl's request
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_SET_FILTER, _SPEC_ALLOW = 1, 4  # without SPEC_ALLOW, kernels before 5.16 slow the command down (SSBD)
_PR_SET_NO_NEW_PRIVS = 38


def protect() -> None:
    """Deny this process and its descendants input to its terminal, if root may read the terminal and the kernel permits
    such input.

    Call it as root in a child of quiet, before the user is changed. Without CAP_SYS_ADMIN, as in a container, it sets
    no_new_privs. Raises OSError if the kernel permits the input and the filter cannot be installed.
    """
    if _at_risk() and not _install():
        raise OSError(
            errno.EPERM,
            "cannot prevent the command from typing into this terminal: seccomp(2) is not available; "
            "run `sysctl dev.tty.legacy_tiocsti=0` (Linux 6.2 or newer), or start quiet without a terminal",
        )


def _at_risk() -> bool:
    device = int(_read("/proc/self/stat").rpartition(b")")[2].split()[4])  # the controlling terminal, 0: none
    terminals = {device} if device else set()
    terminals |= {os.fstat(fd).st_rdev for fd in (0, 1, 2) if os.isatty(fd)}
    try:
        legacy = _read(_LEGACY).strip() != b"0"
    except OSError:
        legacy = True  # before Linux 6.2
    # The setting does not limit TIOCLINUX, which only virtual consoles have.
    return (bool(terminals) if legacy else any(map(_is_console, terminals))) and _root_reads()


def _is_console(terminal: int) -> bool:
    """Whether a device is a virtual console, /dev/tty or /dev/console (admin-guide/devices.txt)."""
    return os.major(terminal) in (4, 5) and os.minor(terminal) < 64


def _root_reads() -> bool:
    """Whether root's shell, or another program of root, has started quiet from this terminal. If only sudo is between
    the user's shell and quiet, the user could only type into this shell, and system calls need not be filtered.
    """
    pid, leader = os.getppid(), os.getsid(0)  # quiet itself
    while pid != leader:
        pid, of_root = _parent(pid)
        if of_root or pid <= 1:
            return True
    return False


def _parent(pid: int) -> tuple[int, bool]:
    """The parent of a process, and whether the parent runs as root and may read the terminal; (0, True): unknown."""
    try:
        parent = int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
        lines = dict(line.split(b":", 1) for line in _read(f"/proc/{parent}/status").splitlines() if b":" in line)
    except OSError:
        return 0, True
    return parent, lines[b"Uid"].split()[0] == b"0" and lines[b"Name"].strip() not in _STARTERS


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # open() would load a codec, which takes time in every run
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def _install() -> bool:
    """Install the filter. Returns whether this succeeded."""
    calls = _CALLS.get(os.uname().machine)
    if calls is None or sys.maxsize < 1 << 32:
        return False
    try:
        import _ctypes  # loading ctypes itself takes four times as long
    except ImportError:  # Python was built without libffi
        return False
    number, architectures = calls
    code = filter_code(architectures)
    data = id(code) + bytes.__basicsize__ - 1  # CPython's layout of bytes; loading `array` takes longer than the rest
    program = struct.pack("HP", len(code) // 8, data)
    libc = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # None: this process
    syscall, prctl = _ctypes.dlsym(libc, "syscall"), _ctypes.dlsym(libc, "prctl")
    call = (number, _SET_FILTER, _SPEC_ALLOW, program)
    if _ctypes.call_function(syscall, call) == 0:
        return True
    _ctypes.call_function(prctl, (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    return bool(_ctypes.call_function(syscall, call) == 0)


def filter_code(architectures: Iterable[tuple[int, tuple[int, ...]]]) -> bytes:
    """The BPF program that denies the ioctls: struct sock_filter of each instruction."""
    check = [(_LOAD, 0, 0, _REQUEST), (_EQUAL, 2, 0, _TIOCSTI), (_EQUAL, 1, 0, _TIOCLINUX)]
    check += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | errno.EACCES)]
    code = [(_LOAD, 0, 0, _ARCH)]
    for arch, numbers in architectures:
        calls = [(_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
        block = [(_LOAD, 0, 0, _NUMBER), *calls, (_RETURN, 0, 0, _ALLOW), *check]
        code += [(_EQUAL, 0, len(block), arch), *block]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *each) for each in code)

"""Detach a helper from its caller: from its terminal, session, limits, signals and environment."""

from __future__ import annotations

import contextlib
import os
import resource
import signal

from quiet.host.host import Host
from quiet.host.proc import mounts

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_IGNORED = (
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM),
)
_LIMITS = {getattr(resource, name): resource.RLIM_INFINITY for name in dir(resource) if name.startswith("RLIMIT_")}
# these also apply to the programs that the helper starts
_LIMITS |= {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 4096, resource.RLIMIT_STACK: 8 << 20}


def detach(keep: int) -> int:
    """Continue in a child that has only the file `keep` and /dev/null (0 to 2) open; this process exits at once.

    Returns the file descriptor of this file in the child.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # sudo may close its terminal before the new session exists
    if os.fork():
        os._exit(0)
    with contextlib.suppress(PermissionError):  # this process already leads a session
        os.setsid()
    kept = os.dup(keep)  # not inherited by the executed program
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    os.closerange(3, kept)
    os.closerange(kept + 1, min(os.sysconf("SC_OPEN_MAX"), 1 << 16))
    return kept


def cleanse(host: Host) -> None:
    """Replace what the caller may have set: environment, umask, signals, limits, scheduling policy, and OOM score."""
    os.environ.clear()
    os.environ.update({"PATH": _PATH, "LANG": "C.UTF-8", "HOME": "/root"})
    os.umask(0o022)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number, limit in _LIMITS.items():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(number, (limit, limit))
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    with contextlib.suppress(OSError):
        host.write("/proc/self/oom_score_adj", "0")


def leave_cgroups(host: Host) -> None:
    """Move this process to the root of each cgroup hierarchy, so that changes to the caller's cgroup cannot stop it."""
    for mount in mounts(host):
        if mount.type in ("cgroup", "cgroup2"):
            with contextlib.suppress(OSError):  # neither permitted nor needed in a container
                host.write(f"{mount.path}/cgroup.procs", str(os.getpid()))

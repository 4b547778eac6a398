"""Run a measurement detached from the terminal: in a unit for root under systemd, otherwise in a separate session.

`python -m cbench.study.detached STORE UNIT DIRECTORY ARGUMENT...` is the supervisor: it starts the command, forwards
SIGTERM and SIGINT to it, and records its exit code in STORE.job. Both write their output to STORE.log. Other users may
be able to write to the directory of these files, so nothing in STORE.job is run, and it names only processes of its
owner.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from cbench.console import tell
from cbench.results import to_json
from cbench.store.database import has_content
from cbench.store.trust import trusted_users
from cbench.study import auto_resume, lock
from cbench.study.resets import reboot
from quiet import QuietError, Reader, Refused, UsageError, exit_code_of, save

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "XDG_CACHE_HOME", "TMPDIR", "SUDO_UID")
_MOST = 4 << 20
"""The maximum size of STORE.job in bytes; ARG_MAX, the limit for a command line, is usually 2 MiB."""
START_S, PAUSE_S = 20.0, 0.05
STOP_S = 120.0
"""The longest wait for a stopped job, in seconds: restoring a profile takes seconds, and the runner kills a command
that ignores SIGTERM.
"""


@dataclass(frozen=True, slots=True)
class DetachedJob:
    """The content of STORE.job. `folder`: the command's working directory; `code`: its exit code, None until it has
    ended.

    `pid` (0 until the supervisor runs), `started` (clock ticks after boot) and `boot_id` identify the supervisor;
    `unit`: "" without systemd.
    """

    arguments: tuple[str, ...]
    folder: str
    pid: int = 0
    started: int = 0
    boot_id: str = ""
    unit: str = ""
    code: int | None = None

    @property
    def kind(self) -> str:
        """The cbench command that the job runs."""
        return self.arguments[0]

    @property
    def alive(self) -> bool:
        """Whether the job's supervisor is running."""
        return bool(self.pid) and self.boot_id == reboot.boot_id() and _started(self.pid) == self.started


def job_file(store: Path) -> Path:
    return store.with_name(f"{store.name}.job")


def log_file(store: Path) -> Path:
    return store.with_name(f"{store.name}.log")


def read(store: Path) -> DetachedJob | None:
    """The last detached job of a store; None if there was none. A process that is not the file's owner's is left out.
    Raises QuietError if the file is damaged.
    """
    job, file = _load(store) or (None, None)
    return replace(job, pid=0) if job and file and _forged(job, file) else job


def _load(store: Path) -> tuple[DetachedJob, os.stat_result] | None:
    """The content and the status of STORE.job; None if there is no such file. Raises QuietError if it is damaged."""
    name = job_file(store)
    try:
        with open(name, "rb", opener=_no_link) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST:
                raise ValueError("not a file of cbench")
            content = json.loads(file.read(_MOST))
        job = DetachedJob(**{**content, "arguments": tuple(map(str, content["arguments"]))})
        numbers = (job.pid, job.started, 0 if job.code is None else job.code)
        words = (job.folder, job.boot_id, job.unit)
        if not (job.arguments and all(isinstance(n, int) for n in numbers) and all(isinstance(w, str) for w in words)):
            raise ValueError("a value is missing")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise QuietError(f"{name}: cannot be read ({error}); remove it") from None
    return job, status


def _no_link(path: str, flags: int) -> int:
    """Open a file that another user may have placed there: no link is followed, and a FIFO does not block."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _forged(job: DetachedJob, file: os.stat_result) -> bool:
    """Whether a user other than the owner of the job's process may have written STORE.job."""
    try:
        owner = os.stat(f"/proc/{job.pid}").st_uid
    except OSError:
        return False  # there is no such process
    return file.st_uid != owner or bool(file.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def start(store: Path, arguments: Sequence[str]) -> DetachedJob:
    """Start `cbench ARGUMENTS` detached; returns when its supervisor runs. Raises Refused if a process is already
    measuring into the store, UsageError if the store's directory does not exist, QuietError if the job does not start.
    """
    if not store.parent.is_dir():
        raise UsageError(f"-o {store}: the directory {store.parent} does not exist")
    before, file = _load(store) or (None, None)
    if before and file and before.alive and _forged(before, file):
        raise Refused(
            f"{job_file(store)}: may have been written by another user than the owner of PID {before.pid}; if this "
            "process does not measure, remove the file"
        )
    if (before is not None and before.alive) or lock.held(store):
        raise Refused(f"{store}: is already being measured; see: cbench status {store}")
    os.close(_open_log(store))
    unit = f"cbench-detached-{auto_resume.name(store).removeprefix('cbench-study-')}" if _by_systemd() else ""
    _write(store, DetachedJob(tuple(arguments), os.getcwd(), unit=unit))
    command = [sys.executable, "-P", "-m", "cbench.study.detached", str(store.absolute()), unit, os.getcwd()]
    command += arguments
    if unit:
        _start_unit(unit, command)
        process = None
    else:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    limit = time.monotonic() + START_S
    while True:
        if (found := _load(store)) is not None and found[0].pid:
            return found[0]
        if time.monotonic() > limit or (process is not None and process.poll() is not None):
            raise QuietError(f"{store}: the detached job did not start; see {log_file(store)}")
        time.sleep(PAUSE_S)


def start_again(store: Path) -> DetachedJob:
    """Start this process's command line again, without --detach and --json, as a detached job. Raises QuietError if the
    job cannot be started.
    """
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    own = [word for word in sys.argv[1:end] if word not in ("--detach", "--json")]
    job = start(store, [*own, *sys.argv[end:]])
    where = f"unit {job.unit}" if job.unit else f"PID {job.pid}"
    tell(f"{store}: being measured by {where}; progress: cbench status {store}; messages: {log_file(store)}")
    return job


def start_new(store: Path, kind: str) -> DetachedJob:
    """Like start_again(), for a store that must not have content yet. Raises UsageError if the store has content."""
    if not lock.held(store) and has_content(store):
        raise UsageError(f"{store}: already exists; resume with: cbench {kind} resume {store} --detach")
    return start_again(store)


def stop(store: Path) -> None:
    """Stop the measurement that writes to this store, and wait for its end. Raises QuietError if that fails."""
    job, file = _load(store) or (None, None)
    if job and file and job.alive:
        _terminate(store, job, file)
    elif _by_systemd() and auto_resume.installed(store):  # resumed by systemd after a reboot
        subprocess.run(["systemctl", "stop", auto_resume.name(store)], capture_output=True, check=False)
    elif lock.held(store):
        raise Refused(f"{store}: is being measured by a process not started with --detach: stop it in its terminal")
    auto_resume.remove(store)
    limit = time.monotonic() + STOP_S
    while lock.held(store) or (job is not None and job.alive):
        if time.monotonic() > limit:
            raise QuietError(f"{store}: still being measured {STOP_S:.0f} s after SIGTERM; see {log_file(store)}")
        time.sleep(PAUSE_S)


def _terminate(store: Path, job: DetachedJob, file: os.stat_result) -> None:
    """Send SIGTERM to the job's supervisor. Raises Refused if STORE.job may name a process that is none."""
    try:
        fd = os.pidfd_open(job.pid)
    except ProcessLookupError:
        return
    try:
        if _forged(job, file):
            raise Refused(
                f"{job_file(store)}: may have been written by another user than the owner of PID {job.pid}, so this "
                f"process is not stopped; remove the file, and if the process measures into {store}: kill {job.pid}"
            )
        if job.alive:  # still true, so the descriptor refers to this process and not to one that reuses its PID
            signal.pidfd_send_signal(fd, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise Refused(f"{store}: is being measured by another user's process, PID {job.pid}; use sudo") from None
    finally:
        os.close(fd)


def last_message(store: Path) -> str:
    """The last nonempty line of the job's log, "" if there is none."""
    try:
        with open(log_file(store), "rb", opener=_no_link) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1] if lines else ""


def _by_systemd() -> bool:
    return not auto_resume.obstacle()


def _start_unit(unit: str, command: Sequence[str]) -> None:
    kept = [f"--setenv={key}={os.environ[key]}" for key in KEPT if key in os.environ]
    words = ["systemd-run", "--quiet", "--collect", f"--unit={unit}", "--property=KillMode=mixed", "--same-dir"]
    words.append(f"--property=TimeoutStopSec={STOP_S:.0f}")
    literal = [command[0], *(word.replace("$", "$$") for word in command[1:])]  # systemd.service(5): $NAME is replaced
    done = subprocess.run([*words, *kept, "--", *literal], capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip() or f"exit code {done.returncode}"
        raise QuietError(f"not started in the background: systemd-run: {why}; omit --detach")


def _started(pid: int) -> int:
    """The start time of a process in clock ticks after boot (proc_pid_stat(5), field 22); -1 if there is no such
    process, or it has ended.
    """
    text = Reader().text(f"/proc/{pid}/stat") or ""
    fields = text.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in "ZX" else -1


def _write(store: Path, job: DetachedJob) -> None:
    before = os.umask(0o022)
    os.umask(before | 0o022)  # _forged() rejects a file that other users can write to
    try:
        save(str(job_file(store)), json.dumps(to_json(job)), "--detach")
    finally:
        os.umask(before)


def _open_log(store: Path) -> int:
    """Open STORE.log for appending. Raises Refused for a file that another user may have placed there."""
    path = log_file(store)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o644)
    except OSError as error:
        raise Refused(f"{path}: cannot be opened for messages ({error.strerror}); remove it if it is a link") from None
    found = os.fstat(fd)
    known = found.st_uid in {*trusted_users(), path.parent.stat().st_uid}
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and known:
        return fd
    os.close(fd)
    raise Refused(f"{path}: belongs to another user, or is not an ordinary file; remove it, or choose another store")


def _supervise(store: Path, unit: str, folder: str, arguments: Sequence[str]) -> int:
    log = _open_log(store)
    for number in (1, 2):
        os.dup2(log, number)
    ended = 0

    def forward(number: int, _frame: object) -> None:
        nonlocal ended
        ended = number
        if child is not None:
            child.send_signal(number)

    child: subprocess.Popen[bytes] | None = None
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, forward)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    me = os.getpid()
    job = DetachedJob(tuple(arguments), folder, me, _started(me), reboot.boot_id(), unit)
    child = subprocess.Popen([sys.executable, "-P", "-m", "cbench", *arguments], cwd=folder)
    if ended:
        child.send_signal(ended)
    _write(store, job)
    code = child.wait()
    code = 128 - code if code < 0 else code
    with suppress(QuietError):  # on a full disk: the store itself records the progress
        _write(store, replace(job, code=code))
    return code


if __name__ == "__main__":
    _, named, *given = sys.argv
    sys.exit(exit_code_of(lambda: _supervise(Path(named), given[0], given[1], given[2:]), "cbench"))

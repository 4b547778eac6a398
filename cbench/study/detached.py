"""Run a measurement detached from the terminal: in a unit for root under systemd, otherwise in a separate session.

`python -m cbench.study.detached STORE` is the supervisor: it starts the command that STORE.job names, forwards
SIGTERM and SIGINT to the command, and records the command's exit code. Both write their output to STORE.log.
"""

from __future__ import annotations

import json
import os
import signal
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
from cbench.study import auto_resume, lock
from cbench.study.resets import reboot
from quiet import QuietError, Reader, Refused, UsageError, save

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "XDG_CACHE_HOME", "TMPDIR")
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
    """The last detached job of a store; None if there was none. Raises QuietError if the file is damaged."""
    file = job_file(store)
    try:
        content = json.loads(file.read_bytes())
        job = DetachedJob(**{**content, "arguments": tuple(map(str, content["arguments"]))})
        if not (job.arguments and isinstance(job.pid, int) and isinstance(job.folder, str)):
            raise ValueError("a value is missing")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise QuietError(f"{file}: cannot be read ({error}); remove it") from None
    return job


def start(store: Path, arguments: Sequence[str]) -> DetachedJob:
    """Start `cbench ARGUMENTS` detached; returns when its supervisor runs. Raises Refused if a process is already
    measuring into the store, UsageError if the store's directory does not exist, QuietError if the job does not start.
    """
    if not store.parent.is_dir():
        raise UsageError(f"-o {store}: the directory {store.parent} does not exist")
    before = read(store)
    if (before is not None and before.alive) or lock.held(store):
        raise Refused(f"{store}: is already being measured; see: cbench status {store}")
    unit = f"cbench-detached-{auto_resume.name(store).removeprefix('cbench-study-')}" if _by_systemd() else ""
    _write(store, DetachedJob(tuple(arguments), os.getcwd(), unit=unit))
    command = [sys.executable, "-P", "-m", "cbench.study.detached", str(store.absolute())]
    if unit:
        _start_unit(unit, command)
        process = None
    else:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    limit = time.monotonic() + START_S
    while True:
        job = read(store)
        if job is not None and job.pid:
            return job
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
    job = read(store)
    if job is not None and job.alive:
        with suppress(ProcessLookupError):
            os.kill(job.pid, signal.SIGTERM)
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


def last_message(store: Path) -> str:
    """The last nonempty line of the job's log, "" if there is none."""
    try:
        with open(log_file(store), "rb") as file:
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
    done = subprocess.run([*words, *kept, "--", *command], capture_output=True, text=True, check=False)
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
    save(str(job_file(store)), json.dumps(to_json(job)), "--detach")


def _supervise(store: Path) -> int:
    job = read(store)
    if job is None:
        raise UsageError(f"{job_file(store)}: no such file")
    log = os.open(log_file(store), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
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
    job = replace(job, pid=os.getpid(), started=_started(os.getpid()), boot_id=reboot.boot_id(), code=None)
    child = subprocess.Popen([sys.executable, "-P", "-m", "cbench", *job.arguments], cwd=job.folder)
    if ended:
        child.send_signal(ended)
    _write(store, job)
    code = child.wait()
    code = 128 - code if code < 0 else code
    with suppress(QuietError):  # on a full disk: the store itself records the progress
        _write(store, replace(job, code=code))
    return code


if __name__ == "__main__":
    sys.exit(_supervise(Path(sys.argv[1])))

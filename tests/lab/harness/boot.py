"""Boot a real kernel in an emulator, run one script in it, and leave nothing behind.

    result = boot(MACHINES["isolated-6.12"], "quiet status", timeout=120)
    result.code, result.output, result.files, result.seconds

The checkout and the commands of its virtual environment are in the guest at the same paths as here (see x86.py and
arm.py), and what is written there vanishes with it. Script, output and exit status travel through a shared directory,
never over the console: kernel messages cannot mix with output. Files that are given are in $LAB_IN; what the script
leaves in $LAB_OUT comes back in `files`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests import CHECKOUT
from tests.lab.harness import arm, disk, disk_grub, kernels, x86
from tests.lab.harness.cache import cache_dir
from tests.lab.harness.disk_clean import CleanDisk
from tests.lab.harness.model import (
    SHARED,
    Architecture,
    EmulatorFaultError,
    GuestError,
    GuestTimeoutError,
    Machine,
    Result,
)
from tests.lab.harness.process import Follower, end_session, ending_on_signals, room_for_a_guest

__all__ = [
    "EmulatorFaultError",
    "GuestError",
    "GuestTimeoutError",
    "Machine",
    "Result",
    "boot",
    "boot_together",
    "missing",
    "prepare",
]

T = TypeVar("T")
POLL_S = 0.1
TAIL_LINES = 40
PRELUDE_FAILED = 125
EMULATOR_FAULT = "Oops: int3"
PANIC = "Kernel panic"


@dataclass(frozen=True, slots=True)
class Shared:
    """The work of a guest; the guest is ended when `cancelled` is set."""

    script: str
    env: Mapping[str, str]
    give: tuple[Path, ...]
    cancelled: threading.Event = field(default_factory=threading.Event)


# How guests of each kind are started.
ARCHITECTURES: dict[str, Architecture] = {"x86_64": x86, "arm64": arm, "disk": disk, "grub": disk_grub}
ARCHITECTURES |= {release: CleanDisk(release) for release in ("bookworm", "trixie")}

UNBLOCKED = (
    "import os, signal, sys; signal.pthread_sigmask(signal.SIG_SETMASK, ()); os.execvp(sys.argv[1], sys.argv[1:])"
)
"""Executes a command that gets signals, also if its parent has blocked them."""


def missing(kind: str = "x86_64") -> list[str]:
    """The packages to install before a machine of this kind can boot: names of packages."""
    return ARCHITECTURES[kind].missing()


def prepare(machine: Machine) -> tuple[kernels.Kernel, tuple[Path, ...]]:
    """Make or fetch the files that the machine boots from, which are then kept; PackageError when that fails."""
    kernel = kernels.ensure(machine.series)
    return kernel, ARCHITECTURES[machine.kind].prepare(kernel)


def boot(
    machine: Machine,
    script: str,
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    give: Iterable[Path] = (),
    on_line: Callable[[str], None] | None = None,
) -> Result:
    """Run a bash script as root in a fresh guest, when a core is free for it; `timeout` includes the boot.

    Where the emulator has its known fault, the guest is booted again, up to three times in all.
    """
    shared = Shared(script, env or {}, tuple(give))

    def booted() -> Result:
        _check(machine)
        with ending_on_signals(), room_for_a_guest(cache_dir(), whole=machine.threads == "multi"):
            return _boot(machine, shared, timeout, on_line or (lambda line: None))

    return _without_emulator_faults(booted)


def boot_together(
    guests: Mapping[str, Machine],
    script: str,
    beside: Callable[[Callable[[], None]], T],
    *,
    timeout: float,
    give: Iterable[Path] = (),
    on_line: Callable[[str, str], None],
) -> tuple[dict[str, Result], T]:
    """Run a script in several guests at the same time, and `beside` in this thread; the results of both.

    Each guest finds its name in $LAB_NAME. `beside` is given a function that raises the error of a guest that has
    failed. When `beside` raises, the guests are ended. `on_line` takes a guest's name and a line.
    """

    def run(name: str, cancelled: threading.Event) -> Result:
        shared = Shared(script, {"LAB_NAME": name}, tuple(give), cancelled)
        return _boot(guests[name], shared, timeout, lambda line: on_line(name, line))

    def booted() -> tuple[dict[str, Result], T]:
        for machine in guests.values():
            _check(machine)
        # All cores at once: two tests that each wait for a second core would wait forever.
        with ending_on_signals(), room_for_a_guest(cache_dir(), whole=True), ThreadPoolExecutor(len(guests)) as pool:
            cancelled = threading.Event()
            running = {name: pool.submit(run, name, cancelled) for name in guests}

            def check() -> None:
                for each in running.values():
                    if each.done():
                        each.result()

            try:
                found = beside(check)
                return {name: each.result() for name, each in running.items()}, found
            except BaseException:
                cancelled.set()
                raise

    return _without_emulator_faults(booted)


def _without_emulator_faults(booted: Callable[[], T]) -> T:
    for _ in range(2):
        try:
            return booted()
        except EmulatorFaultError:
            print("the emulator has failed (not the kernel in it): once more", file=sys.stderr, flush=True)
    return booted()


def _check(machine: Machine) -> None:
    if lacking := missing(machine.kind):
        raise GuestError(f"{machine.name}: not installed: {', '.join(lacking)}")
    prepare(machine)


def _boot(machine: Machine, shared: Shared, timeout: float, on_line: Callable[[str], None]) -> Result:
    architecture = ARCHITECTURES[machine.kind]
    kernel, made = prepare(machine)
    with tempfile.TemporaryDirectory(prefix=f"quiet-lab-{os.getpid()}-") as temporary:
        work = Path(temporary)
        _write_shared(work / "share", machine, shared)
        command = architecture.command(machine, kernel, made, work)
        started = time.monotonic()
        code = _supervise(machine, command, work, started + timeout, on_line, shared.cancelled)
        seconds = time.monotonic() - started
        files = {path.name: path.read_text() for path in sorted((work / "share/out").iterdir())}
        return Result(code, _text(work / "share/output"), seconds, _tail(work), files)


def _write_shared(share: Path, machine: Machine, shared: Shared) -> None:
    (share / "out").mkdir(parents=True)
    (share / "in").mkdir()
    for path in shared.give:
        shutil.copy(path, share / "in")
    (share / "output").touch()
    exports = {
        "PATH": f"{CHECKOUT}/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp/lab-home",
        "TMPDIR": "/tmp",
        "LC_ALL": "C.UTF-8",
        "LAB_IN": f"{SHARED}/in",
        "LAB_OUT": f"{SHARED}/out",
        "LAB_MACHINE": machine.name,
        **shared.env,
    }
    lines = [*ARCHITECTURES[machine.kind].entering()]
    lines += [*(f"export {name}={shlex.quote(value)}" for name, value in exports.items())]
    lines += [
        "mkdir -p $HOME",
        f"cd {shlex.quote(str(CHECKOUT))}",
        f"S={SHARED}",
        "exec >>$S/output 2>&1 </dev/null",
        f"if sh -e $S/prelude; then bash $S/script; else (exit {PRELUDE_FAILED}); fi",
        "echo $? >$S/status.new; mv $S/status.new $S/status",
    ]
    (share / "enter").write_text("\n".join(lines) + "\n")
    (share / "prelude").write_text(machine.prelude + "\n")
    (share / "script").write_text(shared.script + "\n")


def _supervise(
    machine: Machine,
    command: list[str],
    work: Path,
    deadline: float,
    on_line: Callable[[str], None],
    cancelled: threading.Event,
) -> int:
    status = work / "share/status"
    (work / "home").mkdir()
    (work / "tmp").mkdir()
    # Its own HOME and TMPDIR: no virtme-ng settings of the user leak in, its temporary files go with ours.
    scripts = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    env = {**os.environ, "PATH": scripts, "HOME": str(work / "home"), "TMPDIR": str(work / "tmp")}
    # timeout(1) is the last resort: should this process be killed without notice, the guest still ends.
    last_resort = max(deadline - time.monotonic(), 0) + 60
    lines = Follower(work / "share/output", on_line)
    # A signal that came while the process starts would leave it behind.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        with open(work / "console", "wb") as console:
            process = subprocess.Popen(
                [sys.executable, "-ISc", UNBLOCKED, "timeout", "-s", "KILL", f"{last_resort:.0f}", *command],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=env,
                start_new_session=True,
            )
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        while not status.exists():
            lines.poll()
            if process.poll() is not None and not status.exists():
                raise _ended_early(machine, work)
            if cancelled.is_set():
                raise GuestError(f"{machine.name}: ended, because what ran beside it has failed")
            if time.monotonic() > deadline:
                message = f"{machine.name}: not done in time; last on the console:\n{_tail(work)}"
                raise GuestTimeoutError(message, _text(work / "share/output"))
            time.sleep(POLL_S)
        lines.poll(last=True)
        return int(status.read_text())
    finally:
        end_session(process)


def _ended_early(machine: Machine, work: Path) -> GuestError:
    console = _text(work / "console")
    why = "the guest ended before its script" if _text(work / "share/output") else "the guest did not boot"
    if panic := re.search(rf"{PANIC} - not syncing: (.*)", console):
        why = f"the guest's kernel panicked: {panic[1].strip()}"
    kind = EmulatorFaultError if EMULATOR_FAULT in console else GuestError
    return kind(f"{machine.name}: {why}; last on the console:\n{_tail(work)}")


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _tail(work: Path) -> str:
    """The last lines, and all from a panic on: its trace may be longer."""
    lines = _text(work / "console").splitlines()
    panic = next((number for number, line in enumerate(lines) if PANIC in line), len(lines))
    return "\n".join(lines[min(panic, max(0, len(lines) - TAIL_LINES)) :])

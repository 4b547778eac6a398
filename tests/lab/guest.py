"""Boot a real kernel in an emulator, run one script in it, and leave nothing behind.

    result = boot(MACHINES["isolated-6.12"], "quiet status", timeout=120)
    result.code, result.output, result.files, result.seconds

The guest's root is a read-only view of this machine's own files under a throw-away overlay, so the checkout
and its virtual environment run in it as they are. Script, output and exit status travel through a shared
directory, never over the console: kernel messages cannot mix with output. What the script leaves in $LAB_OUT
comes back in `files`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab import acpi, kernels
from tests.lab.cache import cache_dir
from tests.lab.process import Follower, end_session, ending_on_signals, room_for_a_guest

CHECKOUT = Path(__file__).resolve().parents[2]
SHARED = "/run/quiet-lab"  # where the guest sees the shared directory
POLL_S = 0.1
TAIL_LINES = 40
PRELUDE_FAILED = 125
EMULATOR_FAULT = "Oops: int3"


@dataclass(frozen=True)
class Machine:
    """What is emulated. `prelude` prepares the guest (as root, sh -e) before every script."""

    name: str
    series: str
    cpus: int = 4
    memory: str = "2G"
    append: str = ""
    vng_options: tuple[str, ...] = ()
    qemu_options: tuple[str, ...] = ()
    cpufreq: bool = False
    # One emulator thread for all processors: with one each, the emulator now and then runs code that the guest's
    # kernel has just patched in its old form, and the kernel panics ("Oops: int3").
    threads: str = "single"
    prelude: str = ""


@dataclass(frozen=True)
class Result:
    code: int
    output: str
    seconds: float
    console_tail: str
    files: dict[str, str] = field(default_factory=dict)


class GuestError(Exception):
    """The guest could not be booted, or ended before its script did; ends with the console's last lines."""


class EmulatorFaultError(GuestError):
    """The guest's kernel died of the emulator's known fault (see `Machine.threads`), not of its own."""


class GuestTimeoutError(GuestError):
    """The script was not done in time; `output` is what it had printed until then."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


def missing() -> list[str]:
    """What has to be installed before anything can boot: names of Debian packages, and virtme-ng."""
    tools = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "iasl": "acpica-tools"}
    absent = [package for tool, package in tools.items() if not shutil.which(tool)]
    if not shutil.which("depmod", path="/usr/sbin:/sbin:/usr/bin:/bin"):
        absent.append("kmod")
    if not shutil.which("file"):
        absent.append("file")
    if not _vng():
        absent.append("virtme-ng (pip install -e .[lab])")
    return absent


def boot(
    machine: Machine,
    script: str,
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> Result:
    """Run a bash script as root in a fresh guest, when a core is free for it; `timeout` includes the boot.

    Where the emulator has its known fault, the guest is booted again, up to three times in all.
    """
    for _ in range(2):
        try:
            return _boot(machine, script, timeout, env or {}, on_line or (lambda line: None))
        except EmulatorFaultError:
            print("the emulator has failed (not the kernel in it): once more", file=sys.stderr, flush=True)
    return _boot(machine, script, timeout, env or {}, on_line or (lambda line: None))


def _boot(
    machine: Machine, script: str, timeout: float, env: Mapping[str, str], on_line: Callable[[str], None]
) -> Result:
    if lacking := missing():
        raise GuestError(f"{machine.name}: not installed: {', '.join(lacking)}")
    kernel = kernels.ensure(machine.series)
    with (
        ending_on_signals(),
        room_for_a_guest(cache_dir(), whole=machine.threads == "multi"),
        tempfile.TemporaryDirectory(prefix=f"quiet-lab-{os.getpid()}-") as temporary,
    ):
        work = Path(temporary)
        _write_shared(work / "share", machine, script, env)
        command = _command(machine, kernel, work)
        started = time.monotonic()
        code = _supervise(machine, command, work, started + timeout, on_line)
        seconds = time.monotonic() - started
        files = {path.name: path.read_text() for path in sorted((work / "share/out").iterdir())}
        return Result(code, _text(work / "share/output"), seconds, _tail(work), files)


def _write_shared(share: Path, machine: Machine, script: str, env: Mapping[str, str]) -> None:
    (share / "out").mkdir(parents=True)
    (share / "output").touch()
    exports = {
        "PATH": f"{CHECKOUT}/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp/lab-home",
        "TMPDIR": "/tmp",
        "LC_ALL": "C.UTF-8",
        "LAB_OUT": f"{SHARED}/out",
        "LAB_MACHINE": machine.name,
        **env,
    }
    # virtme-ng's view of the files is never cached, which makes a start of Python take 10 s. A second, cached
    # view lies over the folders that programs come from; the checkout stays writable, until the guest ends.
    view, over = "/run/quick", "/run/quick-over"
    folders = ["/usr/bin", "/usr/sbin", "/usr/local", "/usr/lib/x86_64-linux-gnu", "/usr/lib/python3*"]
    folders += [prefix for prefix in [sys.base_prefix] if not prefix.startswith("/usr")]
    quick = [
        f"mkdir -p {view} {over}/up {over}/work",
        f"mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro quick {view}",
        f"for d in {' '.join(folders)}; do [ ! -d {view}$d ] || mount --bind {view}$d $d; done",
        f"mount -t overlay -o lowerdir={view}{CHECKOUT},upperdir={over}/up,workdir={over}/work quick {CHECKOUT}",
    ]
    lines = [*quick, *(f"export {name}={shlex.quote(value)}" for name, value in exports.items())]
    lines += [
        # Software takes this directory for a running systemd, and there is none in the guest.
        "rm -rf /run/systemd/system",
        "mkdir -p $HOME",
        f"cd {shlex.quote(str(CHECKOUT))}",
        f"S={SHARED}",
        "exec >$S/output 2>&1 </dev/null",
        f"if sh -e $S/prelude; then bash $S/script; else (exit {PRELUDE_FAILED}); fi",
        "echo $? >$S/status.new; mv $S/status.new $S/status",
    ]
    (share / "enter").write_text("\n".join(lines) + "\n")
    (share / "prelude").write_text(machine.prelude + "\n")
    (share / "script").write_text(script + "\n")


def _command(machine: Machine, kernel: kernels.Kernel, work: Path) -> list[str]:
    for path in (kernel.root, work, CHECKOUT):
        if any(character.isspace() for character in str(path)):
            raise GuestError(f"{machine.name}: virtme-ng cannot handle the space in {path}")
    qemu = ["-fsdev", "local,id=quick,path=/,security_model=none,readonly=on,multidevs=remap"]
    qemu += ["-device", "virtio-9p-pci,fsdev=quick,mount_tag=quick"]
    qemu += ["-accel", f"tcg,thread={machine.threads}", *machine.qemu_options]
    if machine.cpufreq:
        qemu += ["-acpitable", f"file={acpi.compile_table(machine.cpus, work)}", "-serial", "null"]
    command = [_vng(), "--verbose", "--run", str(kernel.image)]
    command += ["--disable-kvm", "--disable-microvm", "--force-9p", "--user", "root"]
    command += ["--cpus", str(machine.cpus), "--memory", machine.memory]
    command += [f"--rwdir={SHARED}={work / 'share'}", *machine.vng_options]
    if machine.append:
        command += ["--append", machine.append]
    return [*command, f"--qemu-opts={shlex.join(qemu)}", "--exec", f"sh {SHARED}/enter"]


def _supervise(
    machine: Machine, command: list[str], work: Path, deadline: float, on_line: Callable[[str], None]
) -> int:
    status = work / "share/status"
    (work / "home").mkdir()
    (work / "tmp").mkdir()
    # Its own HOME and TMPDIR: no virtme-ng settings of the user leak in, its temporary files go with ours.
    scripts = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    env = {**os.environ, "PATH": scripts, "HOME": str(work / "home"), "TMPDIR": str(work / "tmp")}
    # timeout(1) is the last resort: should this process be killed without notice, the guest still ends.
    last_resort = max(deadline - time.monotonic(), 0) + 60
    with open(work / "console", "wb") as console:
        process = subprocess.Popen(
            ["timeout", "-s", "KILL", f"{last_resort:.0f}", *command],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            env=env,
            start_new_session=True,
        )
    lines = Follower(work / "share/output", on_line)
    try:
        while not status.exists():
            lines.poll()
            if process.poll() is not None and not status.exists():
                raise _ended_early(machine, work)
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
    if panic := re.search(r"Kernel panic - not syncing: (.*)", console):
        why = f"the guest's kernel panicked: {panic[1].strip()}"
    kind = EmulatorFaultError if EMULATOR_FAULT in console else GuestError
    return kind(f"{machine.name}: {why}; last on the console:\n{_tail(work)}")


def _vng() -> str:
    beside = Path(sys.executable).with_name("vng")
    return str(beside) if beside.exists() else shutil.which("vng") or ""


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _tail(work: Path) -> str:
    return "\n".join(_text(work / "console").splitlines()[-TAIL_LINES:])

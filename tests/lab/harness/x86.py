"""x86-64 guests: Debian's kernel started by virtme-ng, this machine's own files as the root.

The guest's root is a read-only view under a throw-away overlay, so the checkout and its virtual environment run in
it as they are.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests import CHECKOUT
from tests.lab.harness import tap
from tests.lab.harness.kernels import Kernel
from tests.lab.harness.model import SHARED, GuestError, Machine

CPUFREQ = Path(__file__).with_name("cpufreq.asl")  # the part of one processor


def missing() -> list[str]:
    """Names of Debian packages, and virtme-ng."""
    tools = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "iasl": "acpica-tools"}
    absent = [package for tool, package in tools.items() if not shutil.which(tool)]
    if not shutil.which("depmod", path="/usr/sbin:/sbin:/usr/bin:/bin"):
        absent.append("kmod")
    if not shutil.which("file"):
        absent.append("file")
    if not _vng():
        absent.append("virtme-ng (pip install -e .[lab])")
    return absent


def prepare(kernel: Kernel) -> tuple[Path, ...]:
    """Nothing but the kernel is needed."""
    return ()


def entering() -> list[str]:
    # virtme-ng's view of the files is never cached, which makes a start of Python take 10 s. A second, cached
    # view lies over the directories that programs come from; the checkout stays writable, until the guest ends.
    view, over = "/run/quick", "/run/quick-over"
    folders = ["/usr/bin", "/usr/sbin", "/usr/local", "/usr/lib/x86_64-linux-gnu", "/usr/lib/python3*"]
    folders += [prefix for prefix in [sys.base_prefix] if not prefix.startswith("/usr")]
    return [
        "rm -rf /run/systemd/system",  # software takes this directory for a running systemd, and there is none here
        f"mkdir -p {view} {over}/up {over}/work",
        f"mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro quick {view}",
        f"for d in {' '.join(folders)}; do [ ! -d {view}$d ] || mount --bind {view}$d $d; done",
        f"mount -t overlay -o lowerdir={view}{CHECKOUT},upperdir={over}/up,workdir={over}/work quick {CHECKOUT}",
    ]


def command(machine: Machine, kernel: Kernel, made: tuple[Path, ...], work: Path) -> list[str]:
    for path in (kernel.root, work, CHECKOUT):
        if any(character.isspace() for character in str(path)):
            raise GuestError(f"{machine.name}: virtme-ng cannot handle the space in {path}")
    qemu = ["-fsdev", "local,id=quick,path=/,security_model=none,readonly=on,multidevs=remap"]
    qemu += ["-device", "virtio-9p-pci,fsdev=quick,mount_tag=quick"]
    qemu += ["-accel", f"tcg,thread={machine.threads}", *machine.qemu_options]
    if machine.cpufreq:
        qemu += ["-acpitable", f"file={_compile_table(machine.cpus, work)}", "-serial", "null"]
    if machine.queues:
        qemu += tap.options(machine.queues)
    line = [_vng(), "--verbose", "--run", str(kernel.image)]
    line += ["--disable-kvm", "--disable-microvm", "--force-9p", "--user", "root"]
    line += ["--cpus", str(machine.cpus), "--memory", machine.memory]
    line += [f"--rwdir={SHARED}={work / 'share'}", *machine.vng_options]
    if machine.append:
        line += ["--append", machine.append]
    line += [f"--qemu-opts={shlex.join(qemu)}", "--exec", f"sh {SHARED}/enter"]
    return tap.around(line) if machine.queues else line


def _vng() -> str:
    beside = Path(sys.executable).with_name("vng")
    return str(beside) if beside.exists() else shutil.which("vng") or ""


def _table(cpus: int) -> str:
    """The ACPI table that gives a guest of so many CPUs frequency scaling."""
    part = CPUFREQ.read_text()
    parts = [part.replace("@HEX@", f"{cpu:03X}").replace("@N@", str(cpu)) for cpu in range(cpus)]
    return (
        'DefinitionBlock ("", "SSDT", 2, "QUIET", "CPUFREQ", 1)\n{\n    External (\\_SB.CPUS, DeviceObj)\n'
        + "\n".join(parts)
        + "}\n"
    )


def _compile_table(cpus: int, folder: Path) -> Path:
    """The same as QEMU takes it (-acpitable file=...)."""
    if not shutil.which("iasl"):
        raise FileNotFoundError("iasl (Debian package acpica-tools) is missing")
    (folder / "cpufreq.asl").write_text(_table(cpus))
    command = ["iasl", "-p", "cpufreq", "cpufreq.asl"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise ValueError(f"iasl refused the table: {done.stdout}{done.stderr}")
    return folder / "cpufreq.aml"

"""Boot once with the wanted command line, by kexec: no file changes, and the next boot is unaffected.

Without kexec-tools, quiet calls kexec_file_load(2), then reboot(2) into the loaded kernel.

Sources: kernel documents admin-guide/sysctl/kernel (kexec_load_disabled), ABI/testing/sysfs-kernel-kexec-kdump;
man pages kexec(8), kexec_file_load(2), kernel_lockdown(7), systemctl(1).
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

from quiet.boot import image
from quiet.boot.loaders.loader import LONGEST, Command, first
from quiet.boot.parameters.cmdline import CommandLine, parse
from quiet.boot.parameters.merge import Merged, merge
from quiet.boot.plan import BootRequest, load_record
from quiet.errors import Refused, UsageError
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts

_TOOLS = ("/usr/sbin/kexec", "/sbin/kexec", "/usr/bin/kexec")
# arch/*/entry/syscalls/*.tbl and include/uapi/asm-generic/unistd.h of the kernel
_SYSTEM_CALLS = {
    "x86_64": 320,
    "s390x": 381,
    "ppc64le": 382,
    "ppc64": 382,
    "aarch64": 294,
    "riscv64": 294,
    "loongarch64": 294,
}
_NO_INITRAMFS = 4  # include/uapi/linux/kexec.h
_REBOOT_KEXEC = 0x45584543  # include/uapi/linux/reboot.h
_WHY = {
    errno.EPERM: "the kernel does not permit this: run it as root; lockdown and kexec_load_disabled must be off",
    errno.EKEYREJECTED: "the kernel's image is not signed with a key that this kernel trusts, which lockdown requires",
    errno.ENOKEY: "the kernel's image is signed with a key that this kernel does not know, and lockdown requires a "
    "known key",
    errno.ENOEXEC: "the kernel does not support the format of this image; install kexec-tools, which may support it",
    errno.ENOSYS: "this kernel was built without CONFIG_KEXEC_FILE; install kexec-tools, which may work without it",
    errno.EBUSY: "another process is loading a kernel right now; try again later",
}


@dataclass(frozen=True, slots=True)
class Once:
    """The kernel to load. The commands `load` and `start` are empty if a system call replaces them."""

    profile: str
    cpus: CpuPartition
    kernel: str
    initrd: str
    merged: Merged
    load: Command
    start: Command

    @property
    def settled(self) -> bool:
        """Whether the running kernel already has every parameter that this host supports."""
        return self.merged.unchanged


def make(reader: Reader, request: BootRequest, kernel: str | None, initrd: str | None) -> Once:
    """Plan the boot.

    Raises UsageError for a wrong request, or if a file given by --kernel or --initrd does not exist. Raises Refused if
    kexec is forbidden, if the image or the initrd cannot be determined, or if the command line is too long.
    """
    facts = Facts(reader)
    merged = merge(_running(reader, facts), request.words(facts), facts)
    if len(str(merged.line).encode()) > LONGEST:
        raise Refused(
            f"the command line would be longer than the {LONGEST} bytes that the kernel reads; give --cpus as ranges "
            "(2-7), or remove parameters from the profile"
        )
    for option, path in (("--kernel", kernel), ("--initrd", initrd)):
        if path and not reader.exists(path):
            raise UsageError(f"{option} {path}: no such file")
    image_path = kernel or image.kernel(facts)
    initrd_path = image.initrd(facts, image_path) if initrd is None else initrd
    check(reader)
    tool = first(reader, *_TOOLS)
    load: Command = ()
    if tool:
        ram = (f"--initrd={initrd_path}",) if initrd_path else ()
        load = (tool, "-a", "-l", image_path, *ram, f"--command-line={merged.line}")
    # systemd's last step runs the kexec tool; without the tool, systemd would reboot through the firmware
    start = ("systemctl", "kexec") if tool and reader.exists("/run/systemd/system") else (tool, "-e") if tool else ()
    return Once(request.profile, request.cpus, image_path, initrd_path, merged, load, start)


def check(reader: Reader) -> None:
    """Raise Refused if this kernel cannot, or may not, load another kernel."""
    disabled = reader.text("/proc/sys/kernel/kexec_load_disabled")
    if disabled is None:
        raise Refused("this kernel was built without kexec; use `quiet boot apply` and reboot")
    if disabled != "0":
        raise Refused("kernel.kexec_load_disabled is 1 until the next reboot; use `quiet boot apply` and reboot")
    lockdown = reader.text("/sys/kernel/security/lockdown") or ""
    if "[none]" not in lockdown and "[" in lockdown and not _signed(reader):
        mode = lockdown.partition("[")[2].partition("]")[0]
        raise Refused(f"lockdown ({mode}) forbids kexec without signatures; use `quiet boot apply` and reboot")


def _signed(reader: Reader) -> bool:
    """Whether this kernel can verify the signature of an image; lockdown accepts verified images."""
    release = reader.text("/proc/sys/kernel/osrelease") or ""
    return "CONFIG_KEXEC_SIG=y" in (reader.text(f"/boot/config-{release}") or "").splitlines()


def _running(reader: Reader, facts: Facts) -> CommandLine:
    """The running line without the parameters of an earlier `boot apply`, so that a new choice replaces them."""
    line = parse(facts.command_line)
    known = load_record(reader)
    if known and set(known.add) <= set(line.words):
        line = line.changed(known.add, known.drop)
    return line


def load(host: Host, once: Once) -> None:
    """Load the kernel. Raises Refused with the reason for the kernel's error number."""
    try:
        if once.load:
            host.run(*once.load)
        else:
            _file_load(once.kernel, once.initrd, str(once.merged.line))
    except OSError as error:
        raise Refused(f"{once.kernel} could not be loaded: {_WHY.get(error.errno or 0, error.strerror)}") from None
    if host.text("/sys/kernel/kexec_loaded") == "0":
        raise Refused(f"{once.kernel} could not be loaded: the kernel accepted the image but reports none as loaded")


def start(host: Host, once: Once, say: Callable[[str], None]) -> None:
    """Start the loaded kernel.

    With systemd and the kexec tool, services are shut down first. Otherwise, the disks are only synced and remounted
    read-only. Raises Refused if a step fails.
    """
    try:
        if once.start[:1] == ("systemctl",):
            host.run(*once.start)
            return
        say("services are not shut down: the disks are synced and made read-only, then the kernel starts")
        for letter in "su":  # admin-guide/sysrq: sync, remount read-only
            host.write("/proc/sysrq-trigger", letter)
        if once.start:
            host.run(*once.start)
        else:
            _reboot()
    except OSError as error:
        raise Refused(f"the loaded kernel could not be started: {error.strerror}") from None


def _file_load(image: str, initrd: str, line: str) -> None:
    """Load an image with its command line. Raises OSError with the kernel's errno."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.EOPNOTSUPP, "quiet cannot call kexec_file_load on this architecture; install kexec-tools")
    data = os.fsencode(line)
    with contextlib.ExitStack() as files:
        kernel = files.enter_context(open(image, "rb")).fileno()
        ram = files.enter_context(open(initrd, "rb")).fileno() if initrd else -1
        length = ctypes.c_ulong(len(data) + 1)  # includes the closing zero byte
        flags = ctypes.c_ulong(0 if initrd else _NO_INITRAMFS)
        _check(libc.syscall(ctypes.c_long(number), kernel, ram, length, ctypes.c_char_p(data), flags))


def _reboot() -> None:
    """Start the loaded kernel immediately, without stopping services. Raises OSError; does not return."""
    import ctypes

    os.sync()
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.reboot(ctypes.c_int(_REBOOT_KEXEC)))


def _check(result: int) -> None:
    import ctypes

    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))

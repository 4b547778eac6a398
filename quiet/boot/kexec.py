"""The system calls of kexec, for hosts without kexec-tools: kexec_file_load(2), then reboot(2) into what it loaded."""

from __future__ import annotations

import os
import platform

# arch/*/entry/syscalls/*.tbl and include/uapi/asm-generic/unistd.h of the kernel
_NUMBERS = {
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


def load(image: str, initrd: str, line: str) -> None:
    """Load an image with its command line. Raises OSError with the kernel's errno."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(38, "kexec_file_load is not known for this machine; install kexec-tools")
    data = os.fsencode(line)
    kernel = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
    try:
        ram = os.open(initrd, os.O_RDONLY | os.O_CLOEXEC) if initrd else -1
        try:
            length = ctypes.c_ulong(len(data) + 1)  # the closing zero byte counts
            flags = ctypes.c_ulong(0 if initrd else _NO_INITRAMFS)
            done = libc.syscall(ctypes.c_long(number), kernel, ram, length, ctypes.c_char_p(data), flags)
            if done:
                error = ctypes.get_errno()
                raise OSError(error, os.strerror(error))
        finally:
            if ram >= 0:
                os.close(ram)
    finally:
        os.close(kernel)


def start() -> None:
    """Leave for the loaded kernel at once: no service is stopped. Raises OSError; does not return."""
    import ctypes

    os.sync()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.reboot(ctypes.c_int(_REBOOT_KEXEC)):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))

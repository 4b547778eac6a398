"""Measure the time from the start to the end of an empty program, which is part of every command's time."""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from cbench.external.process import Launcher, ProgramEnd

CODE = {
    "x86_64": (62, bytes.fromhex("31ff b83c000000 0f05")),  # xor edi, edi; mov eax, 60; syscall
    "aarch64": (183, struct.pack("<3I", 0xD2800000, 0xD2800BA8, 0xD4000001)),  # mov x0, 0; mov x8, 93; svc 0
}
"""The ELF machine number (elf.h) of each architecture, and its machine code for exit(0)."""
LOADED_AT = 0x400000
HEADERS = 64 + 56
STARTS = 30


def empty_program(machine: str) -> bytes:
    """An ELF executable that only exits: one segment, no interpreter, no libraries."""
    number, code = CODE[machine]
    size = HEADERS + len(code)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, number, 1, LOADED_AT + HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, LOADED_AT, LOADED_AT, size, size, 0x1000)
    return ident + header + segment + code


@contextmanager
def _executable(content: bytes) -> Iterator[str]:
    """A context with a path under which the program can be executed. The file is in memory, because /tmp may be mounted
    noexec.
    """
    fd = os.memfd_create("empty")
    try:
        os.write(fd, content)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def empty_starts(launcher: Launcher, starts: int = STARTS) -> tuple[ProgramEnd, ...]:
    """Start an empty program `starts` times; returns () on architectures for which CODE has no program."""
    if platform.machine() not in CODE:
        return ()
    with _executable(empty_program(platform.machine())) as path:
        return tuple(launcher.run(path, ("empty",)) for _ in range(starts))

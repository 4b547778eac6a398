"""Builds `quiet.noise._noise`: the detector (CFFI, API mode)."""

from __future__ import annotations

from pathlib import Path

import cffi

HEADER = Path("quiet/noise/c/detector.h").read_text(encoding="utf-8")

ffibuilder = cffi.FFI()
ffibuilder.cdef("".join(line for line in HEADER.splitlines(keepends=True) if not line.startswith("#")))
ffibuilder.set_source(
    "quiet.noise._noise",
    '#include "detector.h"\n',
    sources=["quiet/noise/c/detector.c"],
    include_dirs=["quiet/noise/c"],
    extra_compile_args=["-O2", "-g", "-Wall", "-falign-functions=64"],
)

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)

"""Build the extension module `quiet.noise._noise` from the files in c/ (CFFI, API mode)."""

from __future__ import annotations

from pathlib import Path

import cffi

HEADERS = [Path("quiet/noise/c", name).read_text(encoding="utf-8") for name in ("detector.h", "chain.h", "wake.h")]

ffibuilder = cffi.FFI()
for header in HEADERS:
    lines = (line for line in header.splitlines(keepends=True) if not line.startswith("#") or "CHAIN_BODY" in line)
    ffibuilder.cdef("".join(lines))
ffibuilder.set_source(
    "quiet.noise._noise",
    '#include "detector.h"\n#include "chain.h"\n#include "wake.h"\n',
    sources=[f"quiet/noise/c/{name}.c" for name in ("detector", "calibration", "chain", "wake")],
    include_dirs=["quiet/noise/c"],
    extra_compile_args=["-O2", "-g", "-Wall", "-falign-functions=64"],
)

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)

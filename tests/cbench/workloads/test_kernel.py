"""The C that also runs in the kernel uses nothing but the kernel's own types."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import CHECKOUT
from tests.c_code import EVERY_COMPILER, STRICT

FOLDER = CHECKOUT / "cbench" / "c" / "workloads"
IN_KERNEL = ["empty.c", "hash.c", "sieve.c", "branch.c", "chase.c", "memory.c"]
HEADERS = {
    "types.h": "typedef unsigned char uint8_t; typedef unsigned int uint32_t; typedef unsigned long size_t;\n"
    "typedef unsigned long long uint64_t; typedef unsigned long uintptr_t;\n",
    "stddef.h": "#define NULL ((void *)0)\n",
    "errno.h": "#define EINVAL 22\n",
}
"""What the kernel's headers have of it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_KERNEL)
@EVERY_COMPILER
def test_workloads_for_the_kernel_need_no_library_and_no_floating_point(
    compiler: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "linux").mkdir()
    for header, text in HEADERS.items():
        (tmp_path / "linux" / header).write_text(text)
    made = tmp_path / "made.o"
    freestanding = ["-D__KERNEL__", "-ffreestanding", "-nostdinc", "-mgeneral-regs-only", "-std=gnu11"]
    command = [compiler, "-O2", *STRICT, "-Wdeclaration-after-statement", *freestanding, "-isystem", str(tmp_path)]
    done = subprocess.run(
        [*command, "-c", "-o", str(made), str(FOLDER / name)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    missing = subprocess.run(["nm", "-u", str(made)], capture_output=True, text=True, check=True).stdout.split()[1::2]
    assert set(missing) <= {"memset", "memcpy", "cb_state_create", "cb_state_destroy"}

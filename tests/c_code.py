"""How C is checked here: by every compiler at hand, and by the sanitizers once."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import CHECKOUT

CHAINS = CHECKOUT / "quiet" / "noise" / "c"
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion"]
FOUND = [path for c in ("gcc", "gcc-14", "clang", "aarch64-linux-gnu-gcc") if (path := shutil.which(c))]
COMPILERS = list({Path(path).resolve(): Path(path).name for path in FOUND}.values())
"""Each once, whatever its names."""
EVERY_COMPILER = pytest.mark.parametrize(
    "compiler", COMPILERS or [pytest.param("", marks=pytest.mark.skip("no C compiler"))]
)


def compile_strictly(compiler: str, folder: Path, sources: Sequence[Path]) -> None:
    assert sources
    for source in sources:
        command = [compiler, "-O2", *STRICT, f"-I{folder}", f"-I{CHAINS}", "-c", "-o", "/dev/null", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def run_sanitized(main: Path, folder: Path, sources: Sequence[Path], scratch: Path) -> None:
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    (scratch / "empty.c").write_text("int main(void) { return 0; }\n")
    probe = ["cc", *flags, "-o", str(scratch / "empty"), str(scratch / "empty.c")]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("SANITIZERS NOT RUN: cc lacks the libraries of -fsanitize=address,undefined")
    program = scratch / "sanitize"
    build = ["cc", *flags, *STRICT, f"-I{folder}", f"-I{CHAINS}", "-o", str(program), str(main), *map(str, sources)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr

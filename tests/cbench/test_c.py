"""The C compiles without a warning, and does nothing that a sanitizer objects to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "cbench" / "c"
SOURCES = sorted([*ROOT.glob("*.c"), *ROOT.glob("workloads/*.c")])
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", f"-I{ROOT}"]
COMPILERS = [c for c in ("gcc-12", "gcc-14", "gcc", "clang", "aarch64-linux-gnu-gcc") if shutil.which(c)]


@pytest.mark.parametrize("compiler", COMPILERS or [pytest.param("", marks=pytest.mark.skip("no C compiler"))])
def test_every_compiler_at_hand_accepts_the_c_without_a_warning(compiler: str) -> None:
    for source in SOURCES:
        command = [compiler, "-O2", *STRICT, "-c", "-o", "/dev/null", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_sanitizers_find_nothing(tmp_path: Path) -> None:
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    probe = ["cc", *flags, "-o", str(tmp_path / "empty"), str(tmp_path / "empty.c")]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("SANITIZERS NOT RUN: cc lacks the libraries of -fsanitize=address,undefined")
    program = tmp_path / "sanitize"
    main = Path(__file__).with_name("sanitize.c")
    build = ["cc", *flags, *STRICT, "-o", str(program), str(main), *map(str, SOURCES)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_timed_region_holds_nothing_but_the_call() -> None:
    """No allocation, no output, no exit anywhere near the measuring."""
    text = (ROOT / "measure.c").read_text()
    for forbidden in ("malloc", "calloc", "printf", "exit(", "abort("):
        assert forbidden not in text

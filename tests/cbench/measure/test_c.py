"""The C compiles without a warning, and does nothing that a sanitizer objects to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import CHECKOUT
from tests.c_code import CHAINS, EVERY_COMPILER, compile_strictly, run_sanitized

ROOT = CHECKOUT / "cbench" / "c"
SOURCES = sorted([*ROOT.glob("*.c"), *ROOT.glob("workloads/*.c"), CHAINS / "chain.c"])


@pytest.mark.slow
@EVERY_COMPILER
def test_every_compiler_at_hand_accepts_the_c_without_a_warning(compiler: str) -> None:
    compile_strictly(compiler, ROOT, SOURCES)


@pytest.mark.slow
def test_the_sanitizers_find_nothing(tmp_path: Path) -> None:
    run_sanitized(Path(__file__).with_name("sanitize.c"), ROOT, SOURCES, tmp_path)


def test_the_timed_region_holds_nothing_but_the_call() -> None:
    """No allocation, no output, no exit anywhere near the measuring."""
    text = (ROOT / "measure.c").read_text()
    for forbidden in ("malloc", "calloc", "printf", "exit(", "abort("):
        assert forbidden not in text

"""Write the synthetic machines of a checkout's own tests; run with that checkout's Python and PYTHONPATH."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def _profile(case: dict[str, Any]) -> str:
    lines = ['name = "case"', "[cpus]", f"isolated = {json.dumps(case['cpus'])}"]
    for table in ("knobs", "services"):
        lines += [f"[{table}]", *(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in case.get(table, {}).items())]
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """A tree and a profile for each case of a knob, a tree for each boot loader, one that keeps every write."""
    cases: Any = importlib.import_module("tests.quiet.test_cases")
    for name, case in cases.CASES.items():
        cases.tree(folder / "cases" / name / "root", case)
        (folder / "cases" / name / "profile.toml").write_text(_profile(case))
    loaders: Any = importlib.import_module("tests.quiet.boot.trees")
    for name in loaders.NAMES:
        loaders.grow(name, folder / "loaders" / name)
    importlib.import_module("tests.quiet.kernels").tree(folder / "hosts" / "synthetic")
    kernel: Any = importlib.import_module("tests.quiet.kernel.test_check")
    (folder / "files").mkdir()
    (folder / "files" / "all.config").write_text(kernel.whole())
    (folder / "files" / "some.config").write_text(kernel.whole(NO_HZ_FULL="n", KASAN="y"))


if __name__ == "__main__":
    write(Path(sys.argv[1]))

"""A harness in a file: `python3 harness.py list`, `python3 harness.py run RESULTS NAME ...`. Its values are not times.

The test "victim" is 10 after "culprit" in the same process and 5 otherwise; the others are always 1. A test whose name
begins with "broken" has no result, and the process then exits with 3.
"""

from __future__ import annotations

from pathlib import Path

PROGRAM = """\
import json, sys
NAMES = {names!r}
what, *rest = sys.argv[1:]
if what == "list":
    print("\\n".join(NAMES))
    sys.exit({listed})
results, *tests = rest
benchmarks, ran = [], set()
for name in tests:
    ran.add(name)
    if not name.startswith("broken"):
        value = (10 if "culprit" in ran else 5) if name == "victim" else 1
        benchmarks.append(dict(name=name, run_type="iteration", real_time=value, time_unit="ns"))
if {reverse}:
    benchmarks.reverse()
if benchmarks:
    with open(results, "w") as file:
        json.dump(dict(context=dict(), benchmarks=benchmarks), file)
if any(name.startswith("broken") for name in tests):
    sys.exit("it broke")
"""
NAMES = ("culprit", "victim", "other: [1] $(touch pwned) 'q' \"é\" {tests}", "-last; true")


def written(folder: Path, names: tuple[str, ...] = NAMES, listed: int = 0, reverse: bool = False) -> Path:
    """The harness with these tests, in a directory; `listed`: the exit status of `list`; `reverse`: of its results."""
    path = folder / "harness.py"
    path.write_text(PROGRAM.format(names=list(names), listed=listed, reverse=reverse))
    return path


def suite(more: str = "", **keys: str) -> str:
    """The table `[suite]` that runs it; `keys`: TOML in place of a key's own."""
    words = {
        "program": '["python3", "harness.py"]',
        "discover": '["{program}", "list"]',
        "run": '["{program}", "run", "{results}", "{tests}"]',
    }
    return "[suite]\n" + "".join(f"{key} = {value}\n" for key, value in {**words, **keys}.items()) + more


def study(more: str = "", head: str = "repetitions = 3", **keys: str) -> str:
    """A study of it."""
    return f"[study]\n{head}\n{suite(more, **keys)}"

"""Run one of the four tests, or an action around them: lookup.py warm|use|inert-1|inert-2|make|reset|empty|end.

The cache is a directory in $TMPDIR with one file: a stored table replaces the previous one. A test prints its time in
seconds and the number of table rows that it computed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

CACHE = Path(tempfile.gettempdir(), f"cbench-planted-{os.getuid()}")
PLACE = CACHE / "table.json"
ROWS, OWN = 2_000, 500
"""The number of rows of a table, and of those that `use` always computes."""
WANTS = {"warm": "shared", "use": "shared", "inert-1": "first", "inert-2": "second"}


def row(number: int) -> int:
    """The number of steps of a Collatz sequence: a small, constant amount of work."""
    steps = 0
    while number > 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


def found(name: str) -> list[int] | None:
    """The table with this name, if it is in the cache."""
    try:
        content = json.loads(PLACE.read_text())
    except (OSError, ValueError):
        return None
    return content["rows"] if content["name"] == name else None


def test(name: str) -> None:
    begun = time.perf_counter()
    table = found(WANTS[name]) if name == "use" else None
    computed = 0
    if table is None:
        table = [row(number) for number in range(1, ROWS + 1)]
        computed = ROWS
    if name == "use":
        computed += len([row(number) for number in range(ROWS, ROWS + OWN)])
    seconds = time.perf_counter() - begun
    if name != "use":  # a test depends only on the test right before it: `use` stores no table
        PLACE.write_text(json.dumps({"name": WANTS[name], "rows": table}))
    else:
        PLACE.unlink(missing_ok=True)
    sys.stdout.write(json.dumps({"seconds": seconds, "rows": computed}) + "\n")


def main(what: str) -> int:
    if what == "end":
        shutil.rmtree(CACHE, ignore_errors=True)
    elif what in ("make", "reset"):
        CACHE.mkdir(mode=0o700, exist_ok=True)
        if what == "reset":
            PLACE.unlink(missing_ok=True)
    elif what == "empty":
        return int(PLACE.exists())
    elif what in WANTS:
        test(what)
    else:
        sys.exit(f"lookup.py: {what}: one of {', '.join(WANTS)}, make, reset, empty, end")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))

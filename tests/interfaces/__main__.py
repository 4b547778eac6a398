"""Compare the commands of two checkouts: `python -m tests.interfaces BEFORE AFTER`; exit 1 when something differs."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.interfaces import intended
from tests.interfaces.commands import groups, select
from tests.interfaces.compare import Difference, Runs, differences, run_both
from tests.interfaces.inputs import make
from tests.interfaces.side import Side

DATA = Path(__file__).parents[2].parent / "shared"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.interfaces", description=__doc__)
    parser.add_argument("before", type=Path, metavar="BEFORE", help="checkout with .venv; its runs make the inputs")
    parser.add_argument("after", type=Path, metavar="AFTER", help="checkout with .venv")
    parser.add_argument(
        "--only", metavar="SUBSTRING", action="append", help="commands whose label contains it; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="list the commands and run none")
    parser.add_argument("--lines", type=int, default=12, metavar="N", help="lines of each diff (12); 0: all")
    parser.add_argument("--data", type=Path, default=DATA, help="directory with orders/*.csv and hosts/*.tar.*, if any")
    parser.add_argument(
        "--inputs", type=Path, metavar="DIR", help="keep the inputs there, and reuse those of a former run"
    )
    parser.add_argument("--verbose", action="store_true", help="report each group of commands on stderr")
    return parser.parse_args()


def _print(difference: Difference, lines: int) -> None:
    print(f"{difference.label}: {difference.part}" + (" (whitespace only)" if difference.space_only else ""))
    shown = difference.diff.splitlines()[2:]
    if difference.space_only:
        return
    for line in shown[: lines or None]:
        print(f"    {line[:300]}")
    if lines and len(shown) > lines:
        print(f"    ... {len(shown) - lines} more lines")


def main() -> int:
    """Run the comparison. Returns the exit code."""
    asked = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="interfaces-"))
    start = time.monotonic()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored under nohup, and some commands get it

    def progress(text: str) -> None:
        if asked.verbose:
            print(f"{time.monotonic() - start:6.0f} s  {text}", file=sys.stderr, flush=True)

    try:
        before, after = (
            Side(name, checkout.resolve(), folder / f"fonts-{name}")
            for name, checkout in (("old", asked.before), ("new", asked.after))
        )
        inputs = asked.inputs.absolute() if asked.inputs else folder / "inputs"
        if not inputs.exists():
            make(before, inputs, asked.data)
            progress("inputs made")
        wanted = select(groups(inputs), lambda label: not asked.only or any(each in label for each in asked.only))
        if asked.list:
            print(*(group.label(line) for group in wanted for line in group.lines), sep="\n")
            return 0
        (folder / "runs").mkdir()
        runs = [Runs(side, inputs, folder / "runs") for side in (before, after)]
        run_both(wanted, runs[0], runs[1], progress)
        found = differences(wanted, runs[0], runs[1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    expected = [each for each in found if intended.reason(each.label)]
    pages = [each for each in found if each.space_only and each not in expected]
    differing = [each for each in found if each not in expected and each not in pages]
    for each in (*differing, *pages):
        _print(each, asked.lines)
    for each in expected:
        print(f"{each.label}: {each.part}: intended: {intended.reason(each.label)}")
    count = sum(len(group.lines) for group in wanted)
    labels = {each.label for each in differing}
    print(f"{count} commands compared, {len(labels)} differ")
    if pages or expected:
        print(f"{len(pages)} outputs differ in whitespace or the order of keys only")
        print(f"{len({each.label for each in expected})} commands differ as intended")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

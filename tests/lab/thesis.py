"""`make thesis`: the thesis's table of variability, measured anew where time is counted in instructions.

Boots the exact machines (docs/exact-machine.md) with a kernel command line for each row, and prints each row beside
what the thesis claims. Exit code 0: what must be exact is; 1: it is not; 3: a machine could not be booted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quiet.errors import QuietError
from tests.lab import kmod, thesis_table
from tests.lab.debian import PackageError
from tests.lab.guest import GuestError, boot
from tests.lab.machines import MACHINES
from tests.lab.model import Machine
from tests.lab.thesis_rows import BOOTS, Boot
from tests.lab.thesis_table import Line

STEPPED = MACHINES["cpufreq"]
TIMEOUT_S = 900  # ten times what an idle machine takes
ABOUT = """\
hash, 10,000 rounds; cycles, counted where QEMU counts time in instructions. The percentiles are differences from the
mode. "thesis": what its abstract claims (0-cycle variability for CPU-bound work, less than 0.3 % for work that touches
memory; https://dspace.mit.edu/handle/1721.1/127419), "-" where the claim is not about the row. Without caches and
branch predictors nothing here is about memory."""
SHARED_CLOCK = """\
All 16 CPUs share one clock, which every instruction of any of them advances: a trial also gets longer by what other
CPUs do meanwhile. Those trials have no interrupt of their own and are told apart below."""


def measured(each: Boot) -> list[Line]:
    """Boot the machine and measure its rows. GuestError or PackageError when that cannot be."""
    load = kmod.loading(each.machine) if each.module else ""
    script = load + "\n".join(row.script() for row in each.rows)
    result = boot(each.machine, script, timeout=TIMEOUT_S, on_line=_tell)
    if result.code:
        raise GuestError(f"{each.machine.name}: ended with {result.code}: {result.output[-2000:]}")
    _tell(f"{each.machine.name}: {result.seconds:.0f} s with the boot")
    reports: dict[str, Any] = {row.key: json.loads(result.files[row.key]) for row in each.rows}
    return list(thesis_table.lines(each, reports))


def stepped(machine: Machine) -> dict[str, Any]:
    """Trials in sequence with one change of frequency (tests/lab/stepping.py). GuestError when that cannot be."""
    result = boot(machine, "python -m tests.lab.stepping", timeout=TIMEOUT_S)
    if result.code:
        raise GuestError(f"{machine.name}: ended with {result.code}: {result.output[-2000:]}")
    made: dict[str, Any] = json.loads(result.files["report.json"])
    return made


def _tell(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)


def text(groups: dict[str, list[Line]]) -> str:
    parts = ["The thesis's table 3.1 on the exact machines", ABOUT]
    for title, found in groups.items():
        shared = title != BOOTS[0].title
        parts.append(thesis_table.table(f"== {title}", found))
        if shared:
            parts.append(SHARED_CLOCK)
        parts.append("What makes the difference (figures 3-6 and 3-10):")
        parts.append("\n".join(f"  {thesis_table.explanation(each, shared)}" for each in found))
        parts.append("How the first trials settle, which are discarded (figure 3-13; differences from the mode):")
        parts.append("\n".join(f"  {thesis_table.settling(each)}" for each in found if each.settling))
    return "\n\n".join(parts)


def failures(groups: dict[str, list[Line]]) -> list[str]:
    found = [each for lines in groups.values() for each in lines]
    return [f"NOT EXACT: {each.name}: range {each.range:,} cycles" for each in found if not each.holds]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.thesis", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every row to this file too")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    groups: dict[str, list[Line]] = {}
    try:
        for each in BOOTS:
            _tell(f"booting {each.machine.name}: {each.title}, {each.machine.append or 'nothing isolated'}")
            groups.setdefault(each.title, []).extend(measured(each))
        _tell(f"booting {STEPPED.name}: one change of frequency")
        step = stepped(STEPPED)
    except KeyboardInterrupt:
        print("interrupted; the guest is gone", file=sys.stderr)
        return 130
    except (GuestError, PackageError, QuietError) as error:
        print(error, file=sys.stderr)
        return 3
    print(text(groups) + "\n\n" + thesis_table.step(step))
    if options.json:
        rows: dict[str, Any] = {
            title: [thesis_table.as_json(each) for each in found] for title, found in groups.items()
        }
        rows["one change of frequency"] = step
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    wrong = failures(groups)
    print("\n" + "\n".join(wrong or ["What must be exact is: the kernel module and all clean trials, range 0 cycles."]))
    _tell(f"{time.monotonic() - started:.0f} s in all")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

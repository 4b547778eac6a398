"""`make thesis`: the thesis's table of variability, measured again where time is counted in instructions.

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
from tests.lab.harness import kmod
from tests.lab.harness.boot import GuestError, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.machines import MACHINES
from tests.lab.harness.model import Machine
from tests.lab.thesis import table
from tests.lab.thesis.rows import BOOTS, Boot
from tests.lab.thesis.table import Line

STEPPED = MACHINES["cpufreq"]
TIMEOUT_S = 900  # ten times the duration on an idle machine


def measured(each: Boot) -> list[Line]:
    """Boot the machine and measure its rows. GuestError or PackageError when that cannot be."""
    load = kmod.loading(each.machine) if each.module else ""
    script = load + "\n".join(row.script() for row in each.rows)
    result = boot(each.machine, script, timeout=TIMEOUT_S, on_line=_tell)
    if result.code:
        raise GuestError(f"{each.machine.name}: exited with {result.code}: {result.output[-2000:]}")
    _tell(f"{each.machine.name}: {result.seconds:.0f} s with the boot")
    reports: dict[str, Any] = {row.key: json.loads(result.files[row.key]) for row in each.rows}
    return list(table.lines(each, reports))


def stepped(machine: Machine) -> dict[str, Any]:
    """Trials in sequence with one change of frequency (tests/lab/guest/step.py). GuestError when that cannot be."""
    result = boot(machine, "python -m tests.lab.guest.step", timeout=TIMEOUT_S)
    if result.code:
        raise GuestError(f"{machine.name}: exited with {result.code}: {result.output[-2000:]}")
    made: dict[str, Any] = json.loads(result.files["report.json"])
    return made


def _tell(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)


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
    print(table.report(groups) + "\n\n" + table.step(step))
    if options.json:
        rows: dict[str, Any] = {title: [table.as_json(each) for each in found] for title, found in groups.items()}
        rows["one change of frequency"] = step
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    wrong = table.failures(groups)
    print("\n" + "\n".join(wrong or ["Exact, as required: the kernel module and all clean trials, range 0 cycles."]))
    _tell(f"{time.monotonic() - started:.0f} s in all")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""`make effects`: what each knob removes from an isolated CPU, measured again in the lab.

Boots machines in which everything that knobs are for is provoked at once (tests/lab/guest/provoke.py), measures with
and without each knob, and writes quiet/knobs/effects.toml, from which `quiet explain`, `quiet plan` and the tables of
docs/knob-effects.md are made, and the column of docs/knobs.md. Exit code 0: measured; 3: a machine could not be booted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quiet.errors import QuietError
from tests import CHECKOUT
from tests.lab.effects import analyze, table
from tests.lab.harness.boot import GuestError, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.machines import MACHINES

# The CPU to quiet on each machine, and the purpose of the machine.
WHERE = {
    "plain-6.1": (3, "nothing on the kernel command line"),
    "plain-6.12": (3, "nothing on the kernel command line"),
    "isolated-6.12": (3, "CPUs 2-3 isolated and tickless from boot"),
    "numa": (3, "two NUMA nodes"),
    "net": (3, "a network device with a queue for each CPU"),
}
SECONDS = 4.0
TIMEOUT_S = 7200
DATA, PAGE = CHECKOUT / "quiet/knobs/effects.toml", CHECKOUT / "docs/knob-effects.md"


def _tell(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)


def measured(name: str, seconds: float) -> dict[str, Any]:
    """The measurements of a machine's guest. GuestError or PackageError when that cannot be."""
    cpu, _ = WHERE[name]
    result = boot(
        MACHINES[name], f"python -m tests.lab.guest.effects {cpu} {seconds:g}", timeout=TIMEOUT_S, on_line=_tell
    )
    found: dict[str, Any] = json.loads(result.files.get("effects.json", "{}"))
    if result.code or "knobs" not in found:
        raise GuestError(f"{name}: {found.get('broke') or result.output[-2000:]}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.effects", description=__doc__)
    parser.add_argument("machines", nargs="*", metavar="MACHINE", help="some of: " + ", ".join(WHERE))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each measurement (%(default)s)")
    parser.add_argument("--raw", type=Path, metavar="DIR", help="keep the guests' measurements, and reuse them")
    parser.add_argument("--write", action="store_true", help="write data and page, though of these machines alone")
    options = parser.parse_args(arguments)
    if wrong := [name for name in options.machines if name not in WHERE]:
        parser.error(f"no machine {wrong[0]}; there are: {', '.join(WHERE)}")
    reports: dict[str, dict[str, Any]] = {}
    try:
        for name in options.machines or WHERE:
            kept = options.raw / f"{name}.json" if options.raw else None
            if kept and kept.exists():
                reports[name] = json.loads(kept.read_text())
                continue
            _tell(f"booting {name}: {WHERE[name][1]}")
            began = time.monotonic()
            reports[name] = measured(name, options.seconds)
            _tell(f"{name}: {time.monotonic() - began:.0f} s")
            if kept:
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(reports[name]))
    except KeyboardInterrupt:
        print("interrupted; the guest is gone", file=sys.stderr)
        return 130
    except (GuestError, PackageError, QuietError) as error:
        print(error, file=sys.stderr)
        return 3
    effects = analyze.effects(reports)
    least = max(map(analyze.seen_from, reports.values()))
    print(table.text(effects, least))
    if not options.machines or options.write:
        DATA.write_text(table.toml(effects, least))
        PAGE.write_text(table.replaced(PAGE.read_text(), reports, effects))
        subprocess.run([sys.executable, "-m", "tests.quiet.knobs.page"], cwd=CHECKOUT, check=True)  # reads the new data
    return 0


if __name__ == "__main__":
    sys.exit(main())

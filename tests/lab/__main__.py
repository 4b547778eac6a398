"""`python -m tests.lab MACHINE [COMMAND]`: boot one machine by hand and run a command there."""

from __future__ import annotations

import argparse
import sys

from tests.lab.harness.boot import GuestError, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.machines import MACHINES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    parser.add_argument("machine", choices=MACHINES)
    parser.add_argument("command", nargs="?", default="quiet status", help="for bash, as root")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS")
    arguments = parser.parse_args()
    try:
        result = boot(
            MACHINES[arguments.machine],
            arguments.command,
            timeout=arguments.timeout,
            on_line=lambda line: print(line, flush=True),
        )
    except KeyboardInterrupt:
        print("interrupted; the guest is gone", file=sys.stderr)
        return 130
    except (GuestError, PackageError) as error:
        print(error, file=sys.stderr)
        return 3
    print(f"[exit status {result.code}, {result.seconds:.0f} s with the boot]", file=sys.stderr)
    return result.code


if __name__ == "__main__":
    sys.exit(main())

"""`make demo`: quiet a host, measure, and restore it, on a real kernel in an emulator. This machine is not changed.

The guest's part is guest/demo.py.
"""

from __future__ import annotations

import sys
import time

from tests.lab.harness import kernels
from tests.lab.harness.boot import GuestError, Machine, boot

TIMEOUT_S = 900
# Booted without a periodic tick on CPUs 2 and 3; all the rest is done while it runs. One emulator thread for each
# CPU, because here CPUs are measured while others are busy.
MACHINE = Machine("demo", "6.12", append="nohz_full=2-3 rcu_nocbs=2-3", threads="multi")


def main() -> int:
    series = next((name for name in ("6.12", "6.1") if kernels.cached(name)), "6.12")
    machine = Machine(**{**vars(MACHINE), "series": series})
    started = time.monotonic()
    print(f"==> booting Linux {series} with 4 CPUs in an emulator (20 s; nothing on this machine is changed)")
    try:
        script = "python -m tests.lab.guest.demo"
        environment = {"COLUMNS": "110", "PYTHONUNBUFFERED": "1"}
        result = boot(machine, script, timeout=TIMEOUT_S, env=environment, on_line=_show)
    except KeyboardInterrupt:
        print("==> interrupted; the guest is gone", file=sys.stderr)
        return 130
    except (GuestError, kernels.KernelError) as error:
        print(error, file=sys.stderr)
        return 3
    seconds, parts = time.monotonic() - started, result.files.get("parts", "")
    print(f"==> the guest is gone; {seconds:.0f} s in all{f': {parts}' if parts else ''}", flush=True)
    return result.code


def _show(line: str) -> None:
    print(f"    {line}" if line else "", flush=True)


if __name__ == "__main__":
    sys.exit(main())

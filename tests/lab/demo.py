"""`make demo`: the whole job once, on a real kernel in an emulator, so that nothing on this machine is touched.

It boots a guest and shows what happens there (guest/demo.py), and then a second one that counts time in instructions,
where work that nothing interrupts repeats to the cycle.
"""

from __future__ import annotations

import sys
import time

from quiet.errors import QuietError
from tests.lab.harness import kernels, kmod
from tests.lab.harness.boot import GuestError, Machine, boot, missing
from tests.lab.harness.debian import PackageError
from tests.lab.harness.machines import MACHINES

TIMEOUT_S = 900
# Booted without a periodic tick on CPUs 2 and 3; all the rest is done while it runs. One emulator thread for each
# CPU, because here CPUs are measured while others are busy.
MACHINE = Machine("demo", "6.12", append="nohz_full=2-3 rcu_nocbs=2-3", threads="multi")

# cbench warns on stderr that nothing is isolated, which one CPU cannot be.
EXACT = """
show() { printf '\\n--- %s\\n$ %s\\n' "$1" "$2"; $2 2>/dev/null || code=$?; }
code=0
show 'In user space: as many trials as it takes for 200 that nothing interrupted' \\
    'cbench run hash sieve --param n=2000 --until-clean 200'
show 'In the kernel with interrupts off: look at the range' \\
    'cbench run hash sieve --param n=2000 --trials 200 --in-kernel'
exit $code
"""


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
    print(f"==> the guest is gone; {time.monotonic() - started:.0f} s until now", flush=True)
    try:
        exact_code = exact()
    except KeyboardInterrupt:
        print("==> interrupted; the guest is gone", file=sys.stderr)
        return 130
    print(f"==> {time.monotonic() - started:.0f} s in all", flush=True)
    return result.code or exact_code


def exact() -> int:
    """The same work where time is counted in instructions. Without the arm64 parts one line says so."""
    machine = MACHINES["exact"]
    if absent := missing(machine.kind):
        print(f"==> not shown: work that repeats to the cycle, on an arm64 machine; not installed: {', '.join(absent)}")
        return 0
    try:
        load = kmod.loading(machine)
        print("==> booting an arm64 machine that counts time in instructions: what is not interrupted is exact there")
        environment = {"COLUMNS": "110", "PYTHONUNBUFFERED": "1"}
        result = boot(machine, load + EXACT, timeout=TIMEOUT_S, env=environment, on_line=_show)
    except (GuestError, PackageError, QuietError) as error:
        print(f"==> not shown: work that repeats to the cycle, on an arm64 machine; {error}")
        return 0
    return result.code


def _show(line: str) -> None:
    print(f"    {line}" if line else "", flush=True)


if __name__ == "__main__":
    sys.exit(main())

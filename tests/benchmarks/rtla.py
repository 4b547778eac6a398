"""What interrupted a CPU, by name, as the kernel's osnoise tracer counts it, `rtla osnoise`, and `quiet noise`.

    python tests/benchmarks/rtla.py

All in one boot of the lab's own kernel in an emulator, because Debian's kernels have no such tracer; when that kernel
is not built, it says how. Nothing is changed on this host. rtla is in Debian's package of that name.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.inside import planted
from tests.lab.harness import kernels
from tests.lab.harness.boot import GuestError, boot
from tests.lab.harness.kernels import KernelError
from tests.lab.harness.machines import MACHINES

TIMEOUT_S = 600
NOTES = """
Both count an interruption once where it is compared here. What quiet reports is what it was for: a timer interrupt in
which two timers expired is two causes, a call its function, a kworker's run its works, and a non-maskable interrupt
each handler that was asked. In turn, the planted parts are the same and the rest is the system's own. rtla's loop
is a kernel thread, which never rests in user space as a tickless CPU's task does; hw is what no event explains: here
the emulator, from 5 us on for rtla and from 50 us on for quiet.
"""


def main() -> int:
    if not kernels.cached(kernels.OWN):
        print("the lab's own kernel is not built, so nothing is compared: `make kernel` builds it (7 minutes)")
        return 0
    print(f"planted on CPU 3 of the guest, which is isolated and tickless: {planted.PLANTED}", flush=True)
    try:
        result = boot(MACHINES[kernels.OWN], "python -m tests.benchmarks.inside.compare", timeout=TIMEOUT_S)
    except (GuestError, KernelError) as error:
        print(error, file=sys.stderr)
        return 1
    print(result.output.rstrip())
    print(NOTES.strip())
    return result.code


if __name__ == "__main__":
    sys.exit(main())

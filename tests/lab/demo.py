"""`make demo`: the whole job once, on a real kernel in an emulator, so that nothing on this machine is touched.

Without arguments it boots the guest and shows what happens there (`--in-guest` is what runs in it), and then a second
one that counts time in instructions, where work that nothing interrupts repeats to the cycle.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from quiet.errors import QuietError
from tests.lab import guest, kernels, kmod, snapshot
from tests.lab.debian import PackageError
from tests.lab.guest import GuestError, Machine, boot
from tests.lab.machines import MACHINES
from tests.lab.observe import busy_loops

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
        script = "python -m tests.lab.demo --in-guest"
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
    if missing := guest.missing(machine.kind):
        print(
            f"==> not shown: work that repeats to the cycle, on an arm64 machine; not installed: {', '.join(missing)}"
        )
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


def in_guest() -> int:
    before = snapshot.take()
    say("This host, as quiet sees it")
    run("quiet", "status")
    say("What quieting it for benchmarks would change, and why (nothing is written yet)")
    run("quiet", "plan", "--profile", "bench")
    with busy_loops(4) as loops:
        say("Somebody else's work: 4 busy loops, allowed on every CPU")
        show_where(loops)
        say("Now it is done: every setting is noted in a journal, written, and read back")
        if code := run("quiet", "apply", "--profile", "bench"):
            return code
        say("The same 4 busy loops have left the isolated CPUs to the one who measures")
        show_where(loops)
        say("An ordinary CPU and an isolated one, side by side: look at the polluted trials")
        measure = "cbench run hash sieve memory --trials 100 --cpu 0,2 --no-trace"
        measured = run("quiet", "run", "--profile", "bench", "--", *measure.split())
        print("\nAn emulator shows who interrupts a CPU, not how fast it is: its own pauses stay unexplained.")
        say("Do the settings still hold?")
        verified = run("quiet", "verify", "--duration", "0")
        say("Everything back as it was found")
        restored = run("quiet", "restore")
    say("Is it? Every setting and every task's CPUs, read without quiet and compared byte for byte")
    left = snapshot.compare(before, snapshot.take())
    for line in left:
        print(f"STILL CHANGED: {line}")
    if not left:
        print(f"nothing left changed ({len(before['files'])} settings, {len(before['tasks'])} tasks compared)")
    # cbench ends with 1 when trials differ, which is what is to be seen here
    return (measured if measured > 1 else 0) or verified or restored or bool(left)


def say(what: str) -> None:
    print(f"\n--- {what}", flush=True)


def run(*command: str) -> int:
    print(f"$ {' '.join(command)}", flush=True)
    return subprocess.run(command, check=False).returncode


def show_where(loops: list[int]) -> None:
    for pid in loops:
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        allowed = next(line.split()[1] for line in status if line.startswith("Cpus_allowed_list"))
        print(f"busy loop {pid}: may run on CPUs {allowed}", flush=True)


if __name__ == "__main__":
    sys.exit(in_guest() if "--in-guest" in sys.argv else main())

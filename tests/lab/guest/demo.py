"""Runs in the guest of `make demo`: measure an ordinary and an isolated CPU under load, and restore the host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lab.guest import snapshot
from tests.lab.guest.observe import busy_loops


def main() -> int:
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
    sys.exit(main())

"""Inside a guest with cpufreq, as root: one frequency step to its end, and some that are ended before it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

POLICY = Path("/sys/devices/system/cpu/cpufreq/policy1")
STEP = [sys.executable, "-P", "-m", "cbench", "step", "hash", "--cpu", "1", "--param", "n=5000", "--json"]
PATIENCE_S = 60


def state() -> list[str]:
    """The settings of the policy that a step changes, or might change in passing."""
    names = ("scaling_min_freq", "scaling_max_freq", "scaling_governor")
    return [(POLICY / name).read_text().strip() for name in names]


def journal() -> bool:
    return Path("/run/quiet/journal.jsonl").exists()


def ended_by(number: signal.Signals) -> dict[str, object]:
    """A step that would take for ever gets a signal while it holds the frequency."""
    before = state()
    print(f"ended by {number.name}", flush=True)  # for whoever looks at a guest that takes too long
    command = subprocess.Popen(
        [*STEP, "--trials", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + PATIENCE_S
    while state()[:2] != ["1000000", "1000000"] and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    held = state()
    command.send_signal(number)
    try:
        out, err = command.communicate(timeout=PATIENCE_S)
    finally:
        command.kill()
    left = {"after": state(), "journal": journal()}
    restored = subprocess.run(["quiet", "restore"], capture_output=True, text=True, check=False)
    return {
        "before": before,
        "held": held,
        "code": command.returncode,
        "out": out,
        "err": err,
        **left,
        "restore": restored.returncode,
        "restore_said": restored.stdout + restored.stderr,
        "restored": state(),
    }


def main() -> None:
    before = state()
    whole = subprocess.run([*STEP, "--trials", "800"], capture_output=True, text=True, check=False)
    report: dict[str, object] = {
        "before": before,
        "code": whole.returncode,
        "out": whole.stdout,
        "err": whole.stderr,
        "after": state(),
        "journal": journal(),
    }
    for number in (signal.SIGTERM, signal.SIGKILL):
        report[number.name] = ended_by(number)
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()

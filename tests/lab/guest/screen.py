"""Runs in a guest: `python -m tests.lab.guest.screen`, an experiment whose levels change the host, killed and resumed.

Leaves report.json: how each command ended, what the stores have, and what is left changed on the host after each.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.lab.guest import snapshot

LOOK = (
    "cat /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor /proc/sys/vm/watermark_boost_factor; "
    "grep Cpus_allowed_list /proc/self/status; cat /proc/self/personality; "
)
KNOBS = f"""
[screen]
iterations = 2
[[factor]]
name = "governor"
[[factor.level]]
name = "save"
governor = "powersave"
[[factor.level]]
name = "fast"
governor = "performance"
[[factor]]
name = "stat"
[[factor.level]]
name = "found"
found = true
[[factor.level]]
name = "quiet"
knob = "vm.watermark_boost"
[[workload]]
command = "{LOOK}test -e go || {{ touch now; sleep 300; }}; echo 1"
[[response]]
name = "y"
"""
PROFILE = f"""
[screen]
iterations = 1
batches = 2
cpus = "2-3"
[[factor]]
name = "host"
hard = true
[[factor.level]]
name = "found"
found = true
[[factor.level]]
name = "bench"
profile = "bench"
[[factor]]
name = "env"
[[factor.level]]
name = "0"
environment = {{ V = "0" }}
[[factor.level]]
name = "1"
environment = {{ V = "1" }}
[[workload]]
command = "{LOOK}echo 1"
[[response]]
name = "y"
"""
SAME = KNOBS.replace('knob = "vm.watermark_boost"', 'command = "true"\nrestore = ""').replace(
    '"powersave"', '"nonesuch"'
)
PATIENCE_S = 600


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cbench", "screen", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def ended(process: subprocess.Popen[str], before: snapshot.Snapshot) -> dict[str, Any]:
    said = process.communicate(timeout=PATIENCE_S)[1]
    return {"code": process.returncode, "said": said, "left": snapshot.compare(before, snapshot.take())}


def stored(path: str) -> dict[str, Any]:
    with sqlite3.connect(path) as store:
        trials = store.execute(
            "SELECT run, position, test, failure, output, facts FROM study_trial ORDER BY run, position"
        ).fetchall()
        names, host = store.execute("SELECT tests, host FROM study").fetchone()
        runs = store.execute("SELECT kind, facts FROM study_run ORDER BY run").fetchall()
    return {
        "trials": [
            (run, position, json.loads(names)[test], failure, output.decode(), json.loads(facts))
            for run, position, test, failure, output, facts in trials
        ],
        "batches": json.loads(host)["screen"]["batches"],
        "runs": [(kind, json.loads(facts or "{}")) for kind, facts in runs],
    }


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent process may have it ignored
    os.chdir(tempfile.mkdtemp())
    Path("k.toml").write_text(KNOBS)
    Path("p.toml").write_text(PROFILE)
    Path("same.toml").write_text(SAME)
    before = snapshot.take()
    report: dict[str, Any] = {"refused": ended(started("run", "same.toml"), before)}
    process = started("run", "k.toml")
    limit = time.monotonic() + PATIENCE_S
    while not Path("now").exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.2)
    process.kill()
    report["killed"] = ended(process, before)
    Path("go").touch()
    report["resumed"] = ended(started("resume", "k.db"), before)
    report["knobs"] = stored("k.db")
    report["profile"] = ended(started("run", "p.toml"), before)
    report["profiled"] = stored("p.db")
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())

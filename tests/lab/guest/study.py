"""Runs in a guest: `python -m tests.lab.guest.study`, a study in a profile that is interrupted and resumed.

Leaves report.json: how both commands ended, what the store has, and what is left changed on the host after each.
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

STUDY = """
[study]
repetitions = 1
design = "random"
profile = "bench"
cpus = "2-3"
teardown = "echo down >>steps"
[reset]
kind = "drop-caches"
[[test]]
name = "where"
command = "grep Cpus_allowed_list /proc/self/status; echo 1"
[[test]]
name = "hash"
workload = "hash"
params = { n = 1000 }
[[test]]
name = "long"
command = "test -e again || { touch now; sleep 300; }; echo 2"
"""
PATIENCE_S = 300


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cbench", "order", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def ended(process: subprocess.Popen[str], before: snapshot.Snapshot) -> dict[str, Any]:
    said = process.communicate(timeout=PATIENCE_S)[1]
    return {"code": process.returncode, "said": said, "left": snapshot.compare(before, snapshot.take())}


def stored() -> dict[str, Any]:
    with sqlite3.connect("s.db") as store:
        trials = store.execute("SELECT test, failure, output, facts FROM study_trial ORDER BY run, position").fetchall()
        run = store.execute("SELECT reset, facts, resumed FROM study_run").fetchall()
    return {
        "trials": [(test, failure, output.decode(), json.loads(facts)) for test, failure, output, facts in trials],
        "runs": [[json.loads(each or "null") for each in row] for row in run],
    }


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent process may have it ignored
    os.chdir(tempfile.mkdtemp())
    Path("s.toml").write_text(STUDY)
    before = snapshot.take()
    process = started("run", "s.toml")
    limit = time.monotonic() + PATIENCE_S
    while not Path("now").exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    report = {"interrupted": ended(process, before)}
    Path("again").touch()
    report["resumed"] = ended(started("resume", "s.db"), before)
    report["store"] = stored()
    report["steps"] = {"text": Path("steps").read_text()}
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())

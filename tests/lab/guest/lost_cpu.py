"""Runs in a guest: the CPU under test goes offline in the middle of a series, and the trials measured so far are
kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from cbench.store.store import Store
from quiet.errors import UsageError

PATIENCE_S = 120


def kept(path: Path) -> int:
    try:
        with Store.open(path) as store:
            return sum(len(series.trials) for series in store.series())
    except UsageError as error:
        if "no such file" in str(error) or "empty" in str(error):
            return 0  # not begun yet
        raise


def main(cpu: int) -> None:
    online = Path(f"/sys/devices/system/cpu/cpu{cpu}/online")
    path = Path("/tmp/lost.db")
    command = [sys.executable, "-P", "-m", "cbench", "run", "hash", "--param", "n=20000", "--trials", "1000000"]
    command += ["--warmup", "0", "--no-trace", "--cpu", str(cpu), "-o", str(path)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not kept(path):
        time.sleep(1)
    before = kept(path)
    online.write_text("0")
    try:
        out, err = run.communicate(timeout=PATIENCE_S)
    finally:
        run.kill()
        online.write_text("1")
    print(json.dumps({"before": before, "after": kept(path), "code": run.returncode, "out": out, "err": err}))


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""The recipes of contrib/fleet, with doubles of the programs that they call."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests import CHECKOUT

DOUBLES = {
    "salloc": 'echo "$@" >>"$CALLS"; echo granted',
    "squeue": "echo 'n[1-2]'",
    "scontrol": "echo n1; echo n2",
    "scancel": 'echo "$@" >>"$CALLS"',
}


def test_slurm_prints_its_nodes_as_an_inventory_and_cancels_by_the_fleets_name(tmp_path: Path) -> None:
    for name, script in DOUBLES.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    calls = tmp_path / "calls"
    known = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls), "FLEET_ID": "f00d"}
    recipes = CHECKOUT / "contrib" / "fleet"
    done = subprocess.run([recipes / "slurm-allocate"], env=known, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"all": {"hosts": {"n1": {}, "n2": {}}}}
    subprocess.run([recipes / "slurm-release"], env=known, check=True)
    assert [("f00d" in line) for line in calls.read_text().splitlines()] == [True, True]

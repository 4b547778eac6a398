"""Runs in a guest: `python -m tests.lab.guest.knobs SCREEN...`, known causes on CPU 3 and a screening of the knobs.

Leaves plan.json, screen.json, mine.toml, mine.txt (what `quiet plan` says of it), page.html where pages can be made,
and report.json: how the commands ended, what a kill left behind, and what differs on the host at the end.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from cbench import cli
from cbench.knobs import measure
from quiet import Host, QuietError, applied_state
from quiet.cli import start
from tests.lab.guest import causes, drive, plant, snapshot
from tests.lab.guest.provoke import Loads

OUT = Path(os.environ.get("LAB_OUT", "."))
PROFILE = Path("causes.toml")
PATIENCE_S, INTO_IT_S = 300, 3
PR_SET_PDEATHSIG = 1
# Loaded once, instead of by each fork.
LOADED = ("quiet.cli.app", "quiet.cli.json_output", "quiet.cli.text", "quiet.noise.measure_and_judge")
Report = dict[str, Any]


def _noise() -> None:
    """`quiet`, which ends with the screening that waits for it."""
    plant.LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    start.main()


def _output(command: list[str]) -> str:
    """Output of `quiet noise`, in a fork: starting Python takes the emulator longer than the measurement."""
    with tempfile.TemporaryFile("w+") as out:
        pid = drive.forked_main(_noise, "quiet", *command[4:], out=out.fileno(), err=2)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        if code not in (0, 1):
            raise QuietError(f"quiet noise exited with {code}")
        with open(OUT / "progress", "a") as log:  # seen from outside while the guest runs
            log.write(f"{time.monotonic():.0f} s: measured\n")
        return out.read()


def screen(name: str, *words: str) -> int:
    """Start `cbench screen knobs` in a fork; its output goes to files of this name. The process id."""
    with open(OUT / f"{name}.json", "w") as out, open(OUT / f"{name}.err", "w") as err:
        return drive.forked_main(cli.main, "cbench", "screen", "knobs", *words, out=out.fileno(), err=err.fileno())


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def chosen(wanted: list[str]) -> dict[str, list[str]]:
    """Write the profile: the causes' knobs, and 40 others that change something here."""
    PROFILE.write_text(causes.profile([*wanted, *causes.INERT]))
    plan = drive.quiet_json("plan", "--profile", f"./{PROFILE}")
    assert plan["code"] == 0, plan
    changing = {change["knob"] for change in plan["json"]["changes"]}
    inert = [name for name in causes.INERT if name in changing][: causes.MOST_INERT]
    PROFILE.write_text(causes.profile([*wanted, *inert]))
    return {"inert": inert, "lacking": [name for name in wanted if name not in changing]}


def killed(pid: int) -> Report:
    """Kill the screening while a profile is applied."""
    limit = time.monotonic() + PATIENCE_S
    while applied_state(Host()) is None and time.monotonic() < limit:
        time.sleep(0.1)
    time.sleep(INTO_IT_S)
    os.kill(pid, signal.SIGKILL)
    return {"killed": ended(pid), "after_kill": drive.quiet("status")["out"]}


def screening(report: Report, words: list[str]) -> None:
    wanted = causes.CAUSES_OF_A_HOST if causes.has_systemd() else causes.CAUSES
    causes.prepare()
    loads = Loads(causes.CPU)
    causes.start(loads, wanted)
    time.sleep(2)
    before = snapshot.take()
    report |= chosen(list(wanted))
    common = ["--response", "interrupts", "--profile", f"./{PROFILE}"]
    report["plan_code"] = ended(screen("plan", *common, "--plan", "--json"))
    began = time.monotonic()
    report |= killed(screen("first", *common, "-o", "knobs.db", *words))
    report["code"] = ended(screen("screen", "--resume", "knobs.db", "--json", "--write-profile", "mine.toml"))
    report["said"], report["seconds"] = (OUT / "screen.err").read_text(), time.monotonic() - began
    pages = ["--report", str(OUT / "page.html")] if importlib.util.find_spec("matplotlib") else []
    ended(screen("shown", "--resume", "knobs.db", *pages))
    print((OUT / "shown.json").read_text(), flush=True)
    planned = drive.quiet("plan", "--profile", "./mine.toml")
    report["planned"] = planned["code"]
    (OUT / "mine.txt").write_text(planned["out"] + planned["err"])
    if Path("mine.toml").exists():
        (OUT / "mine.toml").write_text(Path("mine.toml").read_text())
    report["left"] = drive.differences(before)


def main() -> int:
    """The words: those of the screening, such as --applications 40."""
    os.sched_setaffinity(0, {0, 1})
    for module in LOADED:
        importlib.import_module(module)
    vars(measure)["_output"] = _output
    report: Report = {}
    try:
        screening(report, sys.argv[1:])
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
    (OUT / "report.json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)

"""Runs in the guest: the interruptions that each knob removes. `python -m tests.lab.guest.effects CPU SECONDS`.

While everything is provoked (provoke.py), the CPU is measured without any knob and with one, in turn for each knob,
and at last with all of them. Writes $LAB_OUT/effects.json.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quiet.errors import QuietError
from quiet.host.host import Host
from quiet.knobs.registry import BY_NAME, KNOBS
from quiet.noise import measure, report
from quiet.noise.budgets import NONE
from quiet.settings import api, profile
from quiet.settings.profile import Profile
from tests.lab.guest.provoke import provoked

THRESHOLD_NS = 1_000
LEFT = (
    *("modules", "rivals", "services"),  # a suggestion; daemons that only a machine with systemd has
    *("power.", "cpufreq.", "idle.", "smt", "resctrl", "aslr"),  # facilities that an emulated machine lacks
)
Counts = dict[str, int]


def quiet_choice(name: str) -> str:
    """The first choice that changes something."""
    knob = BY_NAME[name]
    choices = [choice for choice in knob.choices if choice != "leave"]
    return "quiet" if "quiet" in choices else choices[0] if choices else ""


def of_knobs(names: Iterable[str], cpu: int) -> Profile:
    """A profile of these knobs and of those that they need."""
    wanted = {name for name in names if quiet_choice(name)}
    wanted |= {need for name in wanted if (need := BY_NAME[name].needs)}
    lines = [f'"{name}" = "{quiet_choice(name)}"' for name in BY_NAME if name in wanted]
    text = f'name = "effects"\n[cpus]\nisolated = "{cpu}"\nhousekeeping = "0-{cpu - 1}"\n[knobs]\n'
    return profile.parse(text + "\n".join(lines), "effects")


def plain(cause: str) -> str:
    """A cause without the numbers of processes, CPUs and works: the same one on each boot."""
    cause = re.sub(r" \(\d+\)", "", cause)
    cause = re.sub(r"kworker/\S+", "kworker", cause)
    return re.sub(r"(ksoftirqd|migration|rcuc|rcuop|rcuog|cpuhp|idle_inject)/\d+", r"\1", cause)


def observed(cpu: int, seconds: float) -> dict[str, Any]:
    """One measurement: how long, and how often each cause came."""
    wanted = measure.NoiseRequest(frozenset({cpu}), seconds, THRESHOLD_NS)
    measured = measure.measure(Host(), wanted)
    seen = report.make(measured, NONE, {})
    causes: Counter[str] = Counter()
    for each in seen.cpus[cpu].causes:
        if each.kind not in ("host", "stall", "unattributed"):
            causes[plain(each.cause)] += each.count
    return {"seconds": seen.duration_s, "causes": dict(causes)}


def under(names: Iterable[str], cpu: int, seconds: float) -> dict[str, Any]:
    """The same with these knobs applied, and the host restored."""
    receipt = api.apply_profile(of_knobs(names, cpu))
    try:
        time.sleep(0.5)
        return observed(cpu, seconds) | {"changes": len(receipt.changes)}
    finally:
        outcome = api.restore_host(keep=True)
        assert not outcome.left, outcome.left


def changing(cpu: int) -> list[str]:
    """The knobs that would change something here."""
    everything = api.plan_profile(of_knobs((knob.name for knob in KNOBS if not knob.name.startswith(LEFT)), cpu))
    wanted = {change.knob for change in everything.changes}
    return [knob.name for knob in KNOBS if knob.name in wanted]


def effects(cpu: int, seconds: float) -> dict[str, Any]:
    names = changing(cpu)
    rows: dict[str, Any] = {}
    for name in names:
        row = rows[name] = {}
        try:
            row["none"] = observed(cpu, seconds)
            row["alone"] = under([name], cpu, 4 * seconds)
        except QuietError as error:
            row["refused"] = str(error)
        print(f"{name}: {len(rows)} of {len(names)}", flush=True)
    return {"knobs": rows, "all": under(names, cpu, 5 * seconds)}


def main(cpu: int, seconds: float) -> None:
    made: dict[str, Any] = {"kernel": platform.release(), "cpu": cpu}
    try:
        with provoked(cpu) as loads:
            made |= effects(cpu, seconds) | {"left_out": loads.left_out}
    except Exception:
        made["broke"] = traceback.format_exc()
    (Path(os.environ["LAB_OUT"]) / "effects.json").write_text(json.dumps(made))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))

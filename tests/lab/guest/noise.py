"""Runs in the guest: disturb a CPU in known ways while it is measured. `python -m tests.lab.guest.noise ROUNDS`.

Writes $LAB_OUT/report.json: for each round, what was planted and what the two measurements of it reported.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quiet.cli import json_output
from quiet.host.host import Host
from quiet.noise import detector, measure, report
from quiet.noise.budgets import NONE
from tests.lab.guest import plant
from tests.lab.guest.threaded import threads

CPU = 3
THRESHOLD_NS = 1_000  # an emulated processor has many shorter gaps of its own
LONGEST_S = 600
TIMERS = 100
STOP_ME = "stop me now"
STOPS, STOP_S = 3, 0.5  # how often and for how long the host then stops the machine; the pauses between are as long
CALM_S = 1.5
Report = dict[str, Any]


def disturbed(disturb: Callable[[], Report], detectors: Any) -> Report:
    """Measure while a thread disturbs; what it did, and what was reported."""
    done: Report = {}

    def work() -> None:
        time.sleep(0.3)
        try:
            done.update(disturb())
        except Exception:
            done["broke"] = traceback.format_exc()

    thread = threading.Thread(target=work)

    def go_on(_passed: float) -> bool:
        if not thread.ident:
            thread.start()
        return not thread.is_alive()

    wanted = measure.NoiseRequest(frozenset({CPU}), LONGEST_S, THRESHOLD_NS)
    measured = measure.measure(Host(), wanted, go_on, detectors)
    assert "broke" not in done, done["broke"]
    assert not thread.is_alive(), done
    return {"planted": done, "noise": json_output.to_object(report.make(measured, NONE, {})), "gaps": gaps(measured)}


def gaps(measured: measure.NoiseMeasurement) -> list[list[Any]]:
    """The gaps of a millisecond and more: when, how long, by what kind of cause most."""
    on = measured.cpus[CPU]
    ns = measured.clock.ns
    found = [each for each in on.account.explained if ns(each.gap.length) > 1e6]
    return [[ns(each.gap.begin - on.watched.begin), ns(each.gap.length), each.parts[0][0].kind] for each in found]


def stopped() -> None:
    """Return after the last stop: for a sleeper, time jumps with each."""
    seen, last = 0, time.monotonic()
    calm_since, limit = last, last + LONGEST_S / 2
    while (seen < STOPS or last < calm_since + CALM_S) and last < limit:
        time.sleep(0.02)
        now = time.monotonic()
        if now - last >= 0.9 * STOP_S:
            seen, calm_since = seen + 1, now
        last = now


def one_round() -> Report:
    folder = Path(os.environ["LAB_OUT"]).parent
    line = plant.busiest_interrupt(folder)
    task = plant.Task(CPU, 30)

    def apart() -> Report:
        done: Report = {"line": line, "task": task.pid}
        done["timer"], done["timer_at_most"] = plant.timer(CPU, TIMERS, 20)
        done["switches"] = task.run()
        done["works"] = plant.works(CPU, 30)
        plant.interrupts(CPU, line, folder, 15)
        done["packets"] = plant.packets(CPU, 100)
        return done

    def shared() -> Report:
        done: Report = {"shootdowns": plant.shootdowns(50), "barriers": plant.barriers(CPU, 50)}
        print(STOP_ME, flush=True)
        stopped()
        return done

    try:
        return {"apart": disturbed(apart, detector.detectors), "shared": disturbed(shared, threads)}
    finally:
        task.end()


def main() -> int:
    found: Report = {"rounds": []}
    try:
        for _ in range(int(sys.argv[1])):
            found["rounds"].append(one_round())
    except Exception:  # the rounds until then are worth having
        found["broke"] = traceback.format_exc()
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

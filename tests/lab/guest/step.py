"""Inside a guest with cpufreq, as root: trials in sequence while the frequency changes once (the thesis's figure 5-1).

The two limits of CPU 1's cpufreq policy are written between two chunks of trials, so no trial contains the write.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cbench.measure import measurement
from cbench.measure.options import measure_options
from cbench.workloads import registry
from quiet.noise.clock import Clock, moment

CPU, TRIALS, ROUNDS = 1, 800, 5000
POLICY = Path("/sys/devices/system/cpu/cpufreq/policy1")


def set_frequency(khz: int) -> None:
    for name in ("scaling_max_freq", "scaling_min_freq"):
        (POLICY / name).write_text(str(khz))


def number(name: str) -> int:
    return int((POLICY / name).read_text())


def main() -> None:
    low, high = number("cpuinfo_min_freq"), number("cpuinfo_max_freq")
    written: list[int] = []
    seen: list[int] = []

    def step(_text: str, done: int, total: int) -> None:
        if not written and 2 * done >= total:
            seen.append(number("scaling_cur_freq"))
            set_frequency(high)
            written.append(done)

    workload = registry.find("hash")
    params = registry.parameters(workload, {"n": ROUNDS}, quick=False)
    options = measure_options(TRIALS, "auto", "auto", 120, False)
    set_frequency(low)
    first = moment()
    (result,) = measurement.measure([workload], [params], [CPU], isolated=frozenset(), options=options, show=step)
    clock = Clock(first, moment())
    seen.append(number("scaling_cur_freq"))
    trials = result.trials
    report: dict[str, Any] = {
        "from_khz": low,
        "to_khz": high,
        "seen_khz": seen,
        "written_after": written[0],
        "unit": result.session.counter.unit,
        "trials": [trial.value for trial in trials],
        "trials_ns": [round(clock.ns(trial.end - trial.begin), 1) for trial in trials],
    }
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()

"""Whom counts without a trace charge with the time that a command waited."""

from __future__ import annotations

from pathlib import Path

from quiet.host.reader import Reader
from quiet.noise.command_tasks import CommandTasks
from quiet.noise.interruptions import COUNTS, Observation
from quiet.noise.observe_counts import CountsObserver
from tests.trees import plant

CPU = 3


def task(tid: int, comm: str, allowed: str, run_ns: int, slices: int) -> dict[str, str]:
    """A thread that last used the CPU."""
    base = f"proc/{tid}/task/{tid}"
    return {
        f"{base}/schedstat": f"{run_ns} 0 {slices}\n",
        f"{base}/stat": f"{tid} ({comm}) S {'0 ' * 35}{CPU} 0\n",
        f"proc/{tid}/status": f"Name:\t{comm}\nCpus_allowed_list:\t{allowed}\n",
    }


def test_a_task_that_can_run_nowhere_else_is_counted_fully_beside_a_busy_one_that_came_last(tmp_path: Path) -> None:
    files = task(71, "pinned", str(CPU), 1_000_000, 31) | task(72, "elsewhere", "0-3", 900_000_000, 50)
    reader = Reader(str(plant(tmp_path, files)))
    observer = CountsObserver(reader, frozenset({CPU}), CommandTasks(reader))
    vars(observer).update(_others={}, _own_ns={CPU: 1e9}, _wait_ns=10_000_000, _cost_ns=0, _looks=0)
    done = Observation(COUNTS)
    observer._enter_tasks(done, 1.0)
    counts = {cause.name: tally.count for cause, tally in done.tallies.items()}
    assert counts["pinned"] == 31
    assert counts["elsewhere"] == 0.5  # 9 ms of the 10 ms are left for its 900 ms

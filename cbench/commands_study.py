"""What `cbench order init`, `run`, `resume` and `status` do, between the command line and the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cbench import host
from cbench.commands import tell
from cbench.design import orders
from cbench.study import config, reset, selfstart
from cbench.study.example import EXAMPLE
from cbench.study.model import REBOOT, Study
from cbench.study.runner import Progress, Runner
from cbench.study.store import Header, StudyStore
from quiet.errors import QuietError, Refused, UsageError
from quiet.placement import isolated_cpus

INSIDE = "CBENCH_INSIDE_QUIET"
ORDER = "order"
SHORT_S = 0.2
Show = Callable[[Progress], None]


def init(path: str) -> None:
    """Write the commented example. Raises UsageError where something is there already."""
    try:
        with open(path, "x") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        raise UsageError(f"{path}: is there already; choose another name") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    tell(f"{path} written; now: cbench order run {path}")


def start(file: str, output: str | None, show: Show) -> dict[str, Any]:
    """Plan a study, store the plan and run it. Raises QuietError."""
    path = Path(file)
    study = config.load(path)
    target = Path(output) if output is not None else path.with_suffix(".db")
    _check_reboot(study)
    _inside(study, ["run", file, "--output", str(target)])
    plan = orders.plan(study.design, len(study.tests), study.repetitions, study.seed)
    names = tuple(test.name for test in study.tests)
    described = host.describe(sorted(os.sched_getaffinity(0)), isolated_cpus())
    source = path.read_bytes().decode()
    header = Header(ORDER, study.name, study.seed, source, study.folder, names, described)
    with StudyStore.create(target, header, plan) as store:
        return _go_on(study, store, show)


def resume(data: str, show: Show) -> dict[str, Any]:
    """Go on with a study at its next trial. Raises QuietError."""
    with StudyStore.open(Path(data), writing=True) as store:
        header = store.header()
        study = config.parse(header.source, f"{data} (its study)", header.folder)
        _inside(study, ["resume", data])
        return _go_on(study, store, show)


def status(data: str) -> dict[str, Any]:
    """How far a study is, also while another process runs it."""
    with StudyStore.open(Path(data)) as store:
        header, runs, trials = store.header(), store.runs(), store.trials()
    done, of = len(trials), sum(len(run.order) for run in runs)
    lost = sum(len(run.order) - run.done for run in runs if run.over)
    spent = [end - begin for _, _, _, _, begin, end in trials]
    pace = (trials[-1][5] - trials[0][4]) / done if done else None
    last = trials[-1] if trials else None
    return {
        "name": header.name,
        "data": data,
        "runs": len(runs),
        "runs_over": sum(run.over for run in runs),
        "runs_left_out": sum(run.failure is not None for run in runs),
        "trials": of,
        "trials_done": done,
        "trials_failed": sum(each[3] is not None for each in trials),
        "finished": header.ended_ns is not None,
        "last_ended_s_ago": None if last is None else (time.time_ns() - last[5]) / 1e9,
        "left_s": None if pace is None else pace * (of - done - lost) / 1e9,
        "trial_s_mean": sum(spent) / len(spent) / 1e9 if spent else None,
    }


def _go_on(study: Study, store: StudyStore, show: Show) -> dict[str, Any]:
    kept = f"what has ended is kept; go on with: cbench order resume {store.path}"
    runner = Runner(study, store, lambda: _look(study), tell, show)
    if study.reset.kind == REBOOT:
        _after_each_boot(study, store.path)
    try:
        runner.run()
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {kept}") from None
    except QuietError as error:
        raise type(error)(f"{error}; {kept}") from None
    finally:
        if study.reset.kind == REBOOT:
            selfstart.remove(store.path)
    return {"data": str(store.path), "finished": True}


def _after_each_boot(study: Study, data: Path) -> None:
    """Have the study go on by itself, or say that it will not. Raises Refused."""
    if selfstart.obstacle():
        tell(f"after each reboot, run: cbench order resume {data}; {selfstart.obstacle()}")
        return
    unit = selfstart.install(data, os.environ)
    tell(f"after each reboot the study goes on by itself ({unit}); see: cbench order status {data}")


def _check_reboot(study: Study) -> None:
    """A host that is rebooted in a way of its own may also be one where the study does not go on by itself."""
    if study.reset.kind == REBOOT and not study.reset.command and selfstart.obstacle():
        raise Refused(
            f"reset by reboot: the study cannot go on by itself: {selfstart.obstacle()}; or give [reset] a `command` "
            "that reboots the host, and run `cbench order resume` after each boot"
        )


class Interrupted(QuietError):
    """Ctrl-C, with the exit code that shells give it."""

    exit_code = 130


def _look(study: Study) -> dict[str, Any]:
    """What is stored with a run: boot, load, and inside a profile what `quiet verify` says in a short time."""
    found: dict[str, Any] = {"boot_id": reset.boot_id(), "load": list(os.getloadavg())}
    found["cpus"] = sorted(os.sched_getaffinity(0))
    if study.profile:
        command = [sys.executable, "-m", "quiet", "verify", "--duration", str(SHORT_S), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            found["quiet"] = json.loads(done.stdout)
        except ValueError:
            found["quiet"] = {"error": done.stderr.strip()[-500:]}
    return found


def _inside(study: Study, arguments: list[str]) -> None:
    """Where a profile is asked for, begin anew inside of `quiet run`."""
    if not study.profile or os.environ.get(INSIDE):
        return
    cpus = ["--cpus", study.cpus] if study.cpus else []
    command = [sys.executable, "-m", "quiet", "run", "--profile", study.profile, *cpus, "--"]
    inner = [sys.executable, "-m", "cbench", "order", *arguments]
    done = subprocess.run([*command, *inner], env={**os.environ, INSIDE: "1"}, check=False)
    sys.exit(done.returncode)

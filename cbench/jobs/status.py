"""Determine the state of the measurement that writes to a store: a study, experiment, comparison or plain run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cbench.ab import stored as comparison
from cbench.store.database import for_reading, has_study, reading
from cbench.store.store import Store
from cbench.study import detached, lifecycle, lock
from cbench.study.store import StudyStore
from quiet import QuietError, UsageError

RUNNING, FINISHED, STOPPED, FAILED = "running", "finished", "stopped", "failed"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The progress of a measurement. `kind`: order, screen, ab or run; `state`: running, finished, stopped or failed.

    `trials`: None if the total is unknown before the end; `left_s`: remaining time in seconds, None if unknown;
    `noise`: the last verdict of `quiet verify`, "quiet" or "not quiet", None if no profile is applied; `message`: the
    last line of the job's log, "" unless it stopped or failed.
    """

    data: str
    kind: str
    state: str
    trials_done: int
    trials: int | None = None
    trials_failed: int = 0
    left_s: float | None = None
    noise: str | None = None
    message: str = ""


def status(data: str) -> JobStatus:
    """The state of a store's measurement. Raises UsageError if there is neither a store nor a detached job."""
    path = Path(data)
    job = detached.read(path)
    running = (job is not None and job.alive) or lock.held(path)
    found = _progress(path, job.kind if job else "", running)
    if found is None:
        if job is None:
            raise UsageError(f"{data}: no measurement is stored here; give the output file (-o) of a measurement")
        found = JobStatus(data, job.kind, STOPPED, 0)
    if running:
        return replace(found, state=RUNNING)
    if found.state == FINISHED:
        return found
    if job is None:
        return found
    if job.code is not None and _run_since(path):
        return _progress(path, "", running=False) or found
    code = job.code
    if found.kind == "run" and code in (0, 1):
        return replace(found, state=FINISHED)
    failed = code is not None and code < 128 and (found.kind != "ab" or code > 1)
    return replace(found, state=FAILED if failed else STOPPED, message=detached.last_message(path))


def _run_since(path: Path) -> bool:
    """Whether a run in a terminal has written to the store since its last detached job ended."""
    written = [each for suffix in ("", "-wal") if (each := Path(f"{path}{suffix}")).exists()]
    ended = detached.job_file(path).stat().st_mtime_ns
    return any(each.stat().st_mtime_ns > ended for each in written)


def _progress(path: Path, kind: str, running: bool) -> JobStatus | None:
    """The state recorded in the store, FINISHED or STOPPED; None if nothing is stored yet."""
    if not path.is_file() or not path.stat().st_size:
        return None
    try:
        with reading(path):
            connection = for_reading(path)
            study = has_study(connection)
            connection.close()
        return _study(path) if study else _series(path, kind)
    except QuietError:
        if running or kind:  # the store is being created, or its creator was killed
            return None
        raise


def _study(path: Path) -> JobStatus:
    with StudyStore.open(path) as store:
        kind, facts = store.header().kind, store.run_facts()
    reached = lifecycle.status(str(path), kind)
    verdicts = [each.verified.quiet and not each.verified.drift for each in facts if each.verified is not None]
    return JobStatus(
        data=str(path),
        kind=kind,
        state=FINISHED if reached.finished else STOPPED,
        trials_done=reached.trials_done,
        trials=reached.trials,
        trials_failed=reached.trials_failed,
        left_s=None if reached.finished else reached.left_s,
        noise=("quiet" if verdicts[-1] else "not quiet") if verdicts else None,
    )


def _series(path: Path, kind: str) -> JobStatus:
    with Store.open(path) as store:
        every = store.series()
    done = sum(len(each.trials) for each in every)
    if any("comparison" in each.facts for each in every):
        ended = comparison.read(path).end is not None
        return JobStatus(str(path), "ab", FINISHED if ended else STOPPED, done)
    ended = bool(every) and all(each.ended_ns is not None for each in every) and kind == ""
    return JobStatus(str(path), "run", FINISHED if ended else STOPPED, done)

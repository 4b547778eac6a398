"""Print jobs as text, one line per job."""

from __future__ import annotations

from dataclasses import dataclass

from rich.markup import escape

from cbench.console import table_console
from cbench.jobs.status import JobStatus
from cbench.study.table import span


@dataclass(frozen=True, slots=True)
class Jobs:
    """The JSON object of `cbench status --json` and `cbench stop --json`."""

    jobs: tuple[JobStatus, ...]


def jobs(result: Jobs) -> None:
    """Print a line for each job."""
    console = table_console()
    for each in result.jobs:
        console.print(escape(f"{each.data}: {line(each)}"), soft_wrap=True)


def line(job: JobStatus) -> str:
    """A line with the state, trials, remaining time, noise and the reason for a failure, if known."""
    done = f"{job.trials_done:,}" + (f" of {job.trials:,}" if job.trials is not None else "")
    parts = [job.state, f"{done} trials"]
    if job.trials_failed:
        parts.append(f"{job.trials_failed:,} failed")
    if job.left_s is not None:
        parts.append(f"{span(job.left_s)} to go")
    if job.noise:
        parts.append(job.noise)
    if job.message:
        parts.append(job.message)
    return ", ".join(parts)

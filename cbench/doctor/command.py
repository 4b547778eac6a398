"""The commands `cbench doctor` and `cbench passport`."""

from __future__ import annotations

from typing import Annotated

import typer

from cbench.command import MEASURE, Counter, Cpu, Json, Seed
from cbench.console import interruptible, show
from quiet import emit, printable


def doctor_command(
    *,
    cpu: Cpu = None,
    counter: Counter = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="Measure for 10 seconds instead of 60.")] = False,
    processes: Annotated[
        int, typer.Option(metavar="N", help="Processes per side of the comparisons in the report.")
    ] = 10,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Report the smallest difference this machine can detect. Also reports how to detect smaller ones."""
    from cbench.console import TrialBar
    from cbench.doctor import table
    from cbench.doctor.measure import DoctorOptions, examine
    from cbench.doctor.result import doctor_result

    options = DoctorOptions(cpu=cpu, counter=counter, quick=quick, processes=processes, seed=seed)
    with interruptible(), TrialBar() as bar:
        found = examine(options, bar.show)
    show(doctor_result(found, processes, seed), as_json, table.report)


def passport_command(*, as_json: Json = False) -> None:
    """Print the facts that must be equal for comparable results."""
    import os

    from cbench.machine.describe import passport

    show(passport(os.sched_getaffinity(0)), as_json, lambda facts: emit(printable("\n".join(facts.lines())) + "\n"))


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("doctor", rich_help_panel=MEASURE)(doctor_command)
    app.command("passport", rich_help_panel=MEASURE)(passport_command)

"""The commands `cbench order ...`, for order-dependence studies."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cbench.command import STUDY, Detach, Json
from cbench.console import shell_path, show, tell_or_json, write_json
from quiet import emit

if TYPE_CHECKING:
    from cbench.order.result import OrderResult

order = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Study whether the order of tests changes the results.",
)

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="One of: a study's store, or the stores of one study on several hosts; a file of OrderSage's results; a "
        "CSV or Parquet file with the columns test, order (fixed or random), value and, optionally, metric, run, "
        "position and host. Several Parquet files, or a directory of them, are read as one table.",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        metavar="A", help="Chance of a false alarm in the whole verdict (default: the study's own; 0.05 for tables)."
    ),
]
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published", help="Use the definitions of OrderSage, as in the tables of Duplyakin et al. (ATC 2023)."
    ),
]
Unpaired = Annotated[
    bool, typer.Option("--unpaired", help="Compare the orders as unpaired samples, even if the design pairs the runs.")
]
Delta = Annotated[
    float | None,
    typer.Option(
        metavar="PERCENT",
        help="Report the number of runs needed to detect a shift of PERCENT between the orders (without this option: "
        "1 %, only in --json and on the page).",
    ),
]
Study = Annotated[str, typer.Argument(metavar="STUDY.toml")]
Host = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of this host (default: its host name). It determines the random orders, together with the seed.",
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option("--value", metavar="COLUMN", help="Read this column instead of `value`; repeatable."),
]


@order.command("analyze")
def analyze_command(
    data: Data,
    *,
    alpha: Alpha = None,
    as_published: AsPublished = False,
    unpaired: Unpaired = False,
    delta: Delta = None,
    value: Values = None,
    as_json: Json = False,
) -> None:
    """Test whether the order changes the results.

    Exits with 1 if it does. Exits with 2 if the design cannot separate effects of the order from changes over time, or
    if the study is not finished and has not shown an effect so far.
    """
    from cbench.order import analyze

    options = analyze.OrderOptions(data[0], alpha, as_published, delta, value or (), unpaired, data[1:])
    result = analyze.analyzed(options)
    show(result, as_json, partial(_print, runs=delta is not None))
    _end(" ".join(data), result)


def _print(result: OrderResult, runs: bool) -> None:
    from cbench.order import table  # needs numpy; analyzed() reports if it is missing

    table.analysis(result, runs=runs)


@order.command("report")
def report_command(
    data: Data,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE.html", help="Output file.")],
    alpha: Alpha = None,
    as_published: AsPublished = False,
    unpaired: Unpaired = False,
    delta: Delta = None,
    value: Values = None,
    as_json: Json = False,
) -> None:
    """Write the analysis as a self-contained, printable HTML page.

    Exits with the same code as `analyze`.
    """
    from cbench.order import analyze

    options = analyze.OrderOptions(data[0], alpha, as_published, delta, value or (), unpaired, data[1:])
    result = analyze.reported(options, output)
    tell_or_json(result, as_json, f"{output} written: {result.verdict[0]}")
    _end(" ".join(data), result)


def _end(data: str, result: OrderResult) -> None:
    """End the command. Raises UsageError if nothing was tested, Exit(2) if effects of the order and of time cannot be
    separated, Exit(1) if the order matters, Exit(2) if an unfinished study shows no effect.
    """
    from cbench.order import verdict
    from quiet import UsageError

    if verdict.nothing_compared(result.tests):
        why = "no test has results in both orders; measure both"
        if any(test.n_fixed and test.n_random for test in result.tests.values()) and not result.hosts:
            why = "no pair of neighboring runs has results in both orders; --unpaired compares all runs"
        raise UsageError(f"{data}: nothing to compare: {why}")
    if result.design.blocked:
        raise typer.Exit(2)
    if result.order_matters:
        raise typer.Exit(1)
    if result.design.runs_left:
        raise typer.Exit(2)


@order.command("init")
def init_command(
    path: Annotated[str, typer.Argument(metavar="FILE")] = "study.toml",
) -> None:
    """Write an example study file that explains every key."""
    from cbench.study import lifecycle

    lifecycle.init(path)


@order.command("plan")
def plan_command(study: Study, *, host: Host = None, as_json: Json = False) -> None:
    """Show the tests, the runs and the orders of a study. Measures nothing."""
    from cbench.order import plan

    show(plan.plan(study, host), as_json, lambda planned: emit("\n".join(plan.lines(planned)) + "\n"))


@order.command("run")
def run_command(
    study: Study,
    *,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The study's store (default: STUDY.db).")
    ] = None,
    host: Host = None,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Run a study; each trial is stored before the next one starts. `resume` continues an interrupted study."""
    from cbench.study import lifecycle, table

    table.warn_without_numpy()
    if detach:
        job = lifecycle.detach(study, output)
        if as_json:
            write_json(job)
        return
    start = lifecycle.StartStudy(study, output, host)
    with table.study_progress() as progress:
        status = start.run(progress)
    tell_or_json(status, as_json, table.finished(status))


@order.command("resume")
def resume_command(
    data: Annotated[str, typer.Argument(metavar="DATA")], *, detach: Detach = False, as_json: Json = False
) -> None:
    """Resume an interrupted study at its next trial."""
    from cbench.study import lifecycle, table

    if detach:
        job = lifecycle.detach_again(data)
        if as_json:
            write_json(job)
        return
    resume = lifecycle.ResumeStudy(data)
    with table.study_progress() as progress:
        status = resume.run(progress)
    tell_or_json(status, as_json, table.finished(status))


@order.command("status")
def status_command(data: Annotated[str, typer.Argument(metavar="DATA")], *, as_json: Json = False) -> None:
    """Show the progress of a study. This works from another terminal while the study runs."""
    from cbench.study import lifecycle, table

    show(lifecycle.status(data), as_json, table.print_status)


@order.command("stop")
def stop_command(data: Annotated[str, typer.Argument(metavar="DATA")], *, as_json: Json = False) -> None:
    """Stop a detached study.

    Every trial that has ended is kept; `resume` continues the study.
    """
    from cbench.study import lifecycle, table

    status = lifecycle.stop(data)
    stopped = f"stopped; resume with: cbench order resume {shell_path(data)}"
    said = table.finished(status) if status.finished else stopped
    tell_or_json(status, as_json, f"already {said}" if status.finished else said)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(order, name="order", rich_help_panel=STUDY)

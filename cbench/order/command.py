"""`cbench order`: order-dependence studies."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cbench.command import Json
from cbench.console import show, tell_or_json

if TYPE_CHECKING:
    from cbench.order.result import OrderResult

order = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Order-dependence studies: does the order of trials change the conclusion?",
)

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="A study's store, or the stores of one study on several hosts; OrderSage's own results, or a CSV or "
        "Parquet file with columns test, order (fixed or random), value and, where they are known, metric, run, "
        "position and host; several Parquet files, or a folder of them, are one table.",
    ),
]
Alpha = Annotated[float | None, typer.Option(metavar="A", help="Chance of a false alarm in the whole verdict (0.05).")]
AsPublished = Annotated[
    bool, typer.Option("--as-published", help="By the definitions of OrderSage's tool: the paper's tables come out.")
]
Unpaired = Annotated[
    bool, typer.Option("--unpaired", help="Compare the orders as two samples also where the design pairs the runs.")
]
Delta = Annotated[
    float | None, typer.Option(metavar="PERCENT", help="Say how many runs it takes to see such a shift (1).")
]
Values = Annotated[
    list[str] | None,
    typer.Option("--value", metavar="COLUMN", help="Read this column in place of `value`; repeatable."),
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
    """Does the order change the results? Ends with 1 when it does, with 2 when the design cannot tell."""
    from cbench.order import analyze

    options = analyze.OrderOptions(data[0], alpha, as_published, delta, value or (), unpaired, data[1:])
    result = analyze.analyzed(options)
    from cbench.order import table  # which needs numpy, as analyzed() reports

    show(result, as_json, partial(table.analysis, runs=delta is not None))
    _end(" ".join(data), result)


@order.command("report")
def report_command(
    data: Data,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE.html", help="Where to.")],
    alpha: Alpha = None,
    as_published: AsPublished = False,
    unpaired: Unpaired = False,
    delta: Delta = None,
    value: Values = None,
    as_json: Json = False,
) -> None:
    """The analysis as one HTML page that opens offline and prints. Ends with 1 when the order matters."""
    from cbench.order import analyze

    options = analyze.OrderOptions(data[0], alpha, as_published, delta, value or (), unpaired, data[1:])
    result = analyze.reported(options, output)
    tell_or_json(result, as_json, f"{output} written: {result.verdict[0]}")
    _end(" ".join(data), result)


def _end(data: str, result: OrderResult) -> None:
    """Raises UsageError for an analysis without an answer, and Exit with 1 where the order matters, with 2 where this
    cannot be told from the design."""
    from cbench.order import verdict
    from quiet import UsageError

    if verdict.nothing_compared(result.tests):
        raise UsageError(f"{data}: nothing to compare: no test has results in both orders")
    if result.design.blocked:
        raise typer.Exit(2)
    if result.order_matters:
        raise typer.Exit(1)


@order.command("init")
def init_command(
    path: Annotated[str, typer.Argument(metavar="FILE")] = "study.toml",
) -> None:
    """Write an example of a study's file, with every key explained."""
    from cbench.study import lifecycle

    lifecycle.init(path)


@order.command("run")
def run_command(
    study: Annotated[str, typer.Argument(metavar="STUDY.toml")],
    *,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The study's store (STUDY.db).")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of this host (its host name): drawn orders depend on it and the seed."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a study: every trial is stored before the next begins, and `resume` goes on after whatever ends it."""
    from cbench.study import lifecycle, table

    start = lifecycle.StartStudy(study, output, host)
    with table.StudyBar() as bar:
        status = start.run(bar.show)
    tell_or_json(status, as_json, table.finished(status))


@order.command("resume")
def resume_command(data: Annotated[str, typer.Argument(metavar="DATA")], *, as_json: Json = False) -> None:
    """Go on with a study that was interrupted, at its next trial."""
    from cbench.study import lifecycle, table

    resume = lifecycle.ResumeStudy(data)
    with table.StudyBar() as bar:
        status = resume.run(bar.show)
    tell_or_json(status, as_json, table.finished(status))


@order.command("status")
def status_command(data: Annotated[str, typer.Argument(metavar="DATA")], *, as_json: Json = False) -> None:
    """How far a study is; from another terminal too."""
    from cbench.study import lifecycle, table

    show(lifecycle.status(data), as_json, table.print_status)


def add_to(app: typer.Typer) -> None:
    """Give the application these commands."""
    app.add_typer(order, name="order")

"""`cbench order`: order-dependence studies."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated

import typer

from cbench.command import Json
from cbench.results import to_json

order = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Order-dependence studies: does the order of trials change the conclusion?",
)

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A study's store, OrderSage's own results, or a CSV or Parquet file with columns test, order (fixed or "
        "random), value and, where they are known, metric, run and position.",
    ),
]
Alpha = Annotated[float | None, typer.Option(metavar="A", help="Chance of a false alarm in the whole study (0.05).")]
Correction = Annotated[
    str | None, typer.Option(metavar="bonferroni|holm|bh|none", help="For the number of tests (bonferroni).")
]
Intervals = Annotated[
    str | None, typer.Option(metavar="exact|narrowest|normal|published", help="Ranks of the median's interval (exact).")
]
Level = Annotated[str | None, typer.Option("--ci-level", metavar="PERCENT|bonferroni", help="Of the intervals (95).")]
Case = Annotated[
    str | None, typer.Option(metavar="algorithm|prose|tool", help="When medians count as inside (algorithm).")
]
Failures = Annotated[
    str | None,
    typer.Option(metavar="trial|run|published", help="What a failed trial takes with it (trial: itself alone)."),
]
Null = Annotated[
    str | None,
    typer.Option(metavar="permutation|chi2", help="Whose distribution of H gives the p that decides (permutation)."),
]
AsPublished = Annotated[
    bool, typer.Option("--as-published", help="By the definitions of OrderSage's tool: the paper's tables come out.")
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
    correction: Correction = None,
    intervals: Intervals = None,
    level: Level = None,
    case: Case = None,
    failures: Failures = None,
    null: Null = None,
    as_published: AsPublished = False,
    delta: Delta = None,
    value: Values = None,
    as_json: Json = False,
) -> None:
    """Does the order change the results? Ends with 1 when it does."""
    from cbench.order import analyze
    from cbench.order.options import OrderOptions

    options = OrderOptions(
        data, alpha, correction, intervals, level, case, failures, null, as_published, delta, value or ()
    )
    result = analyze.analyzed(options)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if as_json:
        sys.stdout.write(json.dumps(to_json(result)) + "\n")
    else:
        analyze.show(result, runs=delta is not None)
    sys.stdout.flush()
    analyze.check_compared(data, result)
    if result.order_matters:
        raise typer.Exit(1)


@order.command("report")
def report_command(
    data: Data,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE.html", help="Where to.")],
    alpha: Alpha = None,
    correction: Correction = None,
    intervals: Intervals = None,
    level: Level = None,
    case: Case = None,
    failures: Failures = None,
    null: Null = None,
    as_published: AsPublished = False,
    delta: Delta = None,
    value: Values = None,
    as_json: Json = False,
) -> None:
    """The analysis as one HTML page that opens offline and prints. Ends with 1 when the order matters."""
    from cbench.order import analyze
    from cbench.order.options import OrderOptions

    options = OrderOptions(
        data, alpha, correction, intervals, level, case, failures, null, as_published, delta, value or ()
    )
    result = analyze.reported(options, output)
    _say(to_json(result) if as_json else None, as_json, f"{output} written: {result.verdict[0]}")
    analyze.check_compared(data, result)
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
    as_json: Json = False,
) -> None:
    """Run a study: every trial is stored before the next begins, and `resume` goes on after whatever ends it."""
    from cbench.study import lifecycle, table

    start = lifecycle.StartStudy(study, output)
    with table.StudyBar() as bar:
        made = start.run(bar.show)
    _say(made, as_json, table.finished(made))


@order.command("resume")
def resume_command(data: Annotated[str, typer.Argument(metavar="DATA")], *, as_json: Json = False) -> None:
    """Go on with a study that was interrupted, at its next trial."""
    from cbench.study import lifecycle, table

    resume = lifecycle.ResumeStudy(data)
    with table.StudyBar() as bar:
        made = resume.run(bar.show)
    _say(made, as_json, table.finished(made))


@order.command("status")
def status_command(data: Annotated[str, typer.Argument(metavar="DATA")], *, as_json: Json = False) -> None:
    """How far a study is; from another terminal too."""
    from cbench.study import lifecycle, table

    made = lifecycle.status(data)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if as_json:
        sys.stdout.write(json.dumps(to_json(made)) + "\n")
    else:
        table.print_status(made)


def _say(made: object, as_json: bool, line: str) -> None:
    if as_json:
        sys.stdout.write(json.dumps(to_json(made)) + "\n")
    else:
        sys.stderr.write(f"cbench: {line}\n")


def add_to(app: typer.Typer) -> None:
    """Give the application these commands."""
    app.add_typer(order, name="order")

"""`cbench screen analyze` and `cbench screen report`."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from typing import TYPE_CHECKING, Annotated

import typer

from cbench.command import Json
from cbench.results import to_json
from cbench.screen.analysis.options import ScreenOptions, Studying

if TYPE_CHECKING:
    from cbench.screen.analysis.result import ScreenResult

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A screen's store, or a CSV or Parquet file with a column for each factor, iteration, the responses' "
        "columns (or response and value) and, where they are known, batch (or boot), position, workload, unit and "
        "questionable.",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(metavar="A", help="Chance of a false alarm in the whole screen (the screen's own, 0.05)."),
]
Level = Annotated[float | None, typer.Option("--ci-level", metavar="PERCENT", help="Of the intervals (95).")]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="Of the bootstrap and the subsamples (the screen's own, 1).")
]
Named = Annotated[str | None, typer.Option("--abridgment", metavar="NAME", help="Use this choice of treatments.")]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar='"F=L G=M|N"', help="Use these treatments only; repeatable.")
]
Minus = Annotated[list[str] | None, typer.Option("--minus", metavar='"F=L"', help="Leave these out; repeatable.")]
Exclude = Annotated[bool, typer.Option("--exclude-questionable", help="Leave questionable treatments out.")]
Digits = Annotated[
    int | None,
    typer.Option(metavar="1|2", help="Make bootstrap intervals stable in so many digits, not to a pixel of the plot."),
]
Subsamples = Annotated[
    int | None, typer.Option(metavar="N", help="Of each size in the study of intervals (1000); 0: no such study.")
]
Factors = Annotated[
    list[str] | None, typer.Option("--factor", metavar="COLUMN", help="Of a table: these are the factors; repeatable.")
]
Values = Annotated[
    list[str] | None, typer.Option("--value", metavar="COLUMN", help="Of a table: a response's column; repeatable.")
]
Hard = Annotated[
    list[str] | None,
    typer.Option("--hard", metavar="COLUMN", help="Of a table: this factor changes between batches only; repeatable."),
]


def _options(
    *,
    alpha: Alpha = None,
    level: Level = None,
    seed: Seed = None,
    abridgment: Named = None,
    only: Only = None,
    minus: Minus = None,
    exclude: Exclude = False,
    digits: Digits = None,
    subsamples: Subsamples = None,
    factor: Factors = None,
    value: Values = None,
    hard: Hard = None,
) -> ScreenOptions:
    """The options that both commands have. Raises UsageError."""
    return ScreenOptions(
        alpha=alpha,
        confidence=level,
        seed=seed,
        abridgment=abridgment,
        only=only or (),
        minus=minus or (),
        exclude=exclude,
        digits=digits,
        studying=Studying() if subsamples is None else Studying(subsamples=subsamples),
        factors=factor or (),
        values=value or (),
        hard=hard or (),
    )


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of _options() in place of its parameter `options`, before its last one."""
    own, shared = signature(command, eval_str=True), signature(_options, eval_str=True)
    parameters = [each for name, each in own.parameters.items() if name != "options"]

    @wraps(command)
    def called(**given: object) -> None:
        options = {name: given.pop(name) for name in shared.parameters}
        command(options=_options(**options), **given)  # type: ignore[arg-type]

    every = [*parameters[:-1], *shared.parameters.values(), parameters[-1]]
    vars(called)["__signature__"] = Signature(every)
    called.__annotations__ = {each.name: each.annotation for each in every}
    return called


def analyze_command(data: Data, *, options: ScreenOptions, as_json: Json = False) -> None:
    """Which factors matter, and does it matter in practice? Ends with 1 when some factor matters."""
    from cbench.screen import analyze

    with AnalysisProgress() as progress:
        result = analyze.analyzed(data, options, progress)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if as_json:
        sys.stdout.write(json.dumps(to_json(result)) + "\n")
    else:
        from cbench.screen import table

        table.analysis(result)
    sys.stdout.flush()
    _end(data, result)


def report_command(
    data: Data,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE.html", help="Where to.")],
    options: ScreenOptions,
    as_json: Json = False,
) -> None:
    """The analysis as one HTML page that opens offline and prints. Ends with 1 when some factor matters."""
    from cbench.screen import analyze

    with AnalysisProgress() as progress:
        result = analyze.reported(data, options, output, progress)
    if as_json:
        sys.stdout.write(json.dumps(to_json(result)) + "\n")
    else:
        sys.stderr.write(f"cbench: {output} written: {result.verdict[0]}\n")
    _end(data, result)


def _end(data: str, result: ScreenResult) -> None:
    """Raises UsageError for an analysis without an answer, and Exit with 1 where some factor matters."""
    from cbench.screen import analyze

    analyze.check_tested(data, result)
    if result.factors_matter:
        raise typer.Exit(1)


class AnalysisProgress:
    """On a terminal one line that says what is being looked at; nothing else where."""

    def __enter__(self) -> Callable[[str], None]:
        return self._say if sys.stderr.isatty() else lambda words: None

    def _say(self, words: str) -> None:
        sys.stderr.write(f"\r\x1b[Kcbench: {words} ...")
        sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def add_to(screen: typer.Typer) -> None:
    """Give `cbench screen` these commands."""
    screen.command("analyze")(_with_options(analyze_command))
    screen.command("report")(_with_options(report_command))

"""The commands `cbench screen ...`, for screening experiments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cbench.command import STUDY, Detach, Json
from cbench.console import shell_path, show, tell, tell_or_json, write_json
from cbench.screen.analysis.options import ScreenOptions
from quiet import UsageError, emit, one_line, save

if TYPE_CHECKING:
    from cbench.screen.analysis.result import ScreenResult
    from cbench.screen.data.data import Data as ScreenData
    from cbench.screen.run import ResumeScreen, StartScreen

screen = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Screen factors for their effect on the results.",
)

NEEDED = "cbench screen analyze and report need numpy: pip install 'quiet-cbench[order]'"

File = Annotated[str, typer.Argument(metavar="SCREEN.toml")]
Data = Annotated[str, typer.Argument(metavar="DATA")]

Trials = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="The store of a screen, the stores of one screen on several hosts, or a CSV or Parquet file. Such a file "
        "has a column for each factor, a column for each response (or the columns response and value) and, if known, "
        "the columns iteration, batch (or boot), position, workload, unit and questionable.",
    ),
]


def _option(name: str, metavar: str, words: str) -> Any:
    return typer.Option(name, metavar=metavar, help=words, show_default=False)


OPTIONS = {
    "alpha": Annotated[
        float | None,
        _option(
            "--alpha", "A", "Chance of a false alarm in the whole screen (default: the screen's own; 0.05 for tables)."
        ),
    ],
    "confidence": Annotated[
        float | None,
        _option(
            "--ci-level", "PERCENT", "Confidence level of the intervals (default: the screen's own; 95 for tables)."
        ),
    ],
    "seed": Annotated[
        int | None,
        _option("--seed", "N", "Seed of the bootstrap and the subsamples (default: the screen's own; 1 for tables)."),
    ],
    "abridgment": Annotated[
        str | None, _option("--abridgment", "NAME", "Use this abridgment (a named selection of treatments).")
    ],
    "only": Annotated[list[str], _option("--only", '"F=L G=M|N"', "Use only these treatments; repeatable.")],
    "minus": Annotated[list[str], _option("--minus", '"F=L"', "Leave out these treatments; repeatable.")],
    "exclude": Annotated[bool, typer.Option("--exclude-questionable", help="Leave questionable treatments out.")],
    "subsamples": Annotated[
        int,
        _option("--subsamples", "N", "Subsamples of each size in the study of intervals (default: 1000; 0: no study)."),
    ],
    "factors": Annotated[
        list[str], _option("--factor", "COLUMN", "Column of the table to use as a factor; repeatable.")
    ],
    "values": Annotated[
        list[str], _option("--value", "COLUMN", "Column of the table to use as a response; repeatable.")
    ],
    "hard": Annotated[
        list[str],
        _option("--hard", "COLUMN", "Factor column of the table that changes only between batches; repeatable."),
    ],
    "block": Annotated[
        str,
        _option("--block", "COLUMN", "Column of the table with the names of blocks, or of replicates of whole plots."),
    ],
    "batch": Annotated[
        str,
        _option("--batch", "COLUMN", "Column of the table with the batches between resets (default: batch or boot)."),
    ],
    "by_order": Annotated[
        bool,
        typer.Option(
            "--iteration-by-order",
            help="In a table without the column iteration, pair the n-th rows of all treatments.",
        ),
    ],
}
"""The options of `analyze` and `report`, by the field of ScreenOptions."""


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its parameter `options` replaced by OPTIONS, which are inserted before its last parameter."""
    own = [each for each in signature(command, eval_str=True).parameters.values() if each.name != "options"]
    defaults = {each.name: each.default for each in fields(ScreenOptions)}
    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=option)
        for name, option in OPTIONS.items()
    ]

    @wraps(command)
    def called(**given: object) -> None:
        options = {name: given.pop(name) for name in OPTIONS}
        command(options=ScreenOptions(**options), **given)  # type: ignore[arg-type]

    every = [*own[:-1], *shared, own[-1]]
    vars(called)["__signature__"] = Signature(every)
    called.__annotations__ = {each.name: each.annotation for each in every}
    return called


class AnalysisProgress:
    """A context manager that shows one line of progress on a terminal, and nothing elsewhere."""

    def __enter__(self) -> Callable[[str], None]:
        return self._say if sys.stderr.isatty() else lambda words: None

    def _say(self, words: str) -> None:
        sys.stderr.write(f"\r\x1b[Kcbench: {one_line(words)} ...")
        sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


@screen.command("init")
def init_command(path: Annotated[str, typer.Argument(metavar="FILE")] = "screen.toml") -> None:
    """Write an example experiment file that explains every key."""
    from cbench.screen.config.example import EXAMPLE
    from cbench.study.lifecycle import write_example

    write_example(path, EXAMPLE, f"cbench screen plan {path}, then: cbench screen run {path}")


@screen.command("plan")
def plan_command(path: File, *, as_json: Json = False) -> None:
    """Show an experiment's runs and the effects they can test. Runs nothing."""
    from cbench.screen import run
    from cbench.screen.config.plan import lines

    show(run.plan(path), as_json, lambda plan: emit("\n".join(lines(plan)) + "\n"))


@screen.command("run")
def run_command(
    path: File,
    *,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The experiment's store (default: SCREEN.db).")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="NAME", help="Draw the orders from the seed and this name.", show_default=False)
    ] = "",
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Run an experiment and store each trial before the next. `resume` continues it after an interruption."""
    from cbench.screen import run
    from cbench.study import table

    table.warn_without_numpy()
    if detach:
        job = run.detach(path, output)
        if as_json:
            write_json(job)
        return
    _run(run.StartScreen(path, output, host), as_json)


@screen.command("resume")
def resume_command(data: Data, *, detach: Detach = False, as_json: Json = False) -> None:
    """Resume an interrupted experiment at its next trial."""
    from cbench.screen import run

    if detach:
        from cbench.study import lifecycle

        job = lifecycle.detach_again(data, "screen")
        if as_json:
            write_json(job)
        return
    _run(run.ResumeScreen(data), as_json)


def _run(experiment: StartScreen | ResumeScreen, as_json: bool) -> None:
    from cbench.study import table

    with table.study_progress() as progress:
        reached = experiment.run(progress)
    tell_or_json(reached, as_json, table.finished(reached, "screen"))
    for words in experiment.clocks():
        tell(words)


@screen.command("status")
def status_command(data: Data, *, as_json: Json = False) -> None:
    """Show the progress of an experiment. This works from another terminal while the experiment runs."""
    from cbench.screen import run
    from cbench.study import table

    show(run.status(data), as_json, partial(table.print_status, kind="screen"))


@screen.command("stop")
def stop_command(data: Data, *, as_json: Json = False) -> None:
    """Stop a detached experiment.

    Every trial that has ended is kept; `resume` continues the experiment.
    """
    from cbench.study import lifecycle

    reached = lifecycle.stop(data, "screen")
    stopped = f"stopped; resume with: cbench screen resume {shell_path(data)}"
    tell_or_json(reached, as_json, "already finished" if reached.finished else stopped)


@screen.command("analyze")
@_with_options
def analyze_command(data: Trials, *, options: ScreenOptions, as_json: Json = False) -> None:
    """Test which factors matter, statistically and in practice.

    Exits with 1 if a factor matters, and with 2 if the experiment is not finished and has not shown an effect so far.
    """
    with AnalysisProgress() as progress:
        result, _ = _analyzed(data, options, progress)
    from cbench.screen import table

    show(result, as_json, table.analysis)
    end(" ".join(data), result)


@screen.command("report")
@_with_options
def report_command(
    data: Trials,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE.html", help="Output file.")],
    options: ScreenOptions,
    as_json: Json = False,
) -> None:
    """Write the analysis as a self-contained, printable HTML page.

    Exits with the same code as `analyze`.
    """
    from cbench.report import figures
    from cbench.report.page import NEEDED_BY_PAGES, check_page

    for each in data:
        check_page(each, output)
    figures.pyplot(NEEDED_BY_PAGES)
    with AnalysisProgress() as progress:
        result, read = _analyzed(data, options, progress)
        from cbench.screen.report import page

        progress("the page")
        save(output, page.page(result, read), "-o")
    tell_or_json(result, as_json, f"{output} written: {result.verdict[0]}")
    end(" ".join(data), result)


def _analyzed(
    paths: Sequence[str], options: ScreenOptions, progress: Callable[[str], None]
) -> tuple[ScreenResult, ScreenData]:
    """The analysis of one or several files, and the data. Raises UsageError for unusable files or options."""
    try:
        from cbench.screen.analysis.analysis import analyse
        from cbench.screen.data import hosts
        from cbench.screen.data.read_table import read
        from cbench.screen.data.roles import Chosen
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError(NEEDED) from None
    chosen = Chosen(options.factors, options.values, options.hard, options.block, options.batch, options.by_order)
    if len(paths) > 1 and chosen:
        raise UsageError(
            "--factor, --value, --hard, --block, --batch and --iteration-by-order apply only to a table, not to the "
            "stores of several hosts: omit them"
        )
    data = read(Path(paths[0]), chosen) if len(paths) == 1 else hosts.read([Path(each) for each in paths])
    return analyse(data, options, progress), data


def end(data: str, result: ScreenResult) -> None:
    """End the command. Raises UsageError if nothing was tested, Exit(1) if a factor matters, and Exit(2) if an
    unfinished experiment shows no effect.
    """
    from cbench.screen.analysis.verdict import nothing_told

    if nothing_told(result):
        raise UsageError(f"{data}: {result.verdict[0]}")
    if result.factors_matter:
        raise typer.Exit(1)
    if result.design.iterations_left:
        raise typer.Exit(2)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(screen, name="screen", rich_help_panel=STUDY)

"""The command `cbench screen knobs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cbench.command import Json
from cbench.console import TrialBar, interruptible, show, tell
from quiet import UsageError


def knobs_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORKLOAD | -- CMD...]", help="Workload or command to measure, for median, spread and floor."
        ),
    ] = None,
    *,
    response: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Response: lost, gap or interrupts (of the CPUs); median, spread or floor (of a command).",
        ),
    ] = "lost",
    profile: Annotated[str, typer.Option(metavar="P", help="Profile to screen: a name or a file.")] = "bench",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="KNOB", help="Screen only these knobs; the others stay applied."),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="KNOB", help="Never apply this knob; repeatable.")
    ] = None,
    cpus: Annotated[str, typer.Option(metavar="LIST", help="CPUs to isolate (default: the profile's).")] = "",
    duration: Annotated[
        float, typer.Option(metavar="S", help="Measure CPUs for S seconds in each application.")
    ] = 10.0,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="Number of runs in each application (of a command or workload).")
    ] = None,
    within: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Allowed extra noise of the smallest profile, relative to the full one."),
    ] = "5%",
    applications: Annotated[int, typer.Option(metavar="N", help="Apply and restore at most N times.")] = 40,
    budget: Annotated[float | None, typer.Option(metavar="S", help="Stop after S seconds.")] = None,
    alpha: Annotated[float, typer.Option(metavar="A", help="Chance of reporting any knob that has no effect.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the groups and the random orders.")] = 1,
    plan: Annotated[bool, typer.Option("--plan", help="Show the design and its duration; change nothing.")] = False,
    write_profile: Annotated[
        Path | None,
        typer.Option("--write-profile", metavar="FILE.toml", help="Write the smallest profile to this file."),
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", metavar="FILE.html", help="Write an HTML page.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Store every application in this file.")
    ] = Path("knobs.db"),
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Resume the screening in FILE, or show its result if it has ended."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Screen a profile's settings for their effect on this host. Needs root to apply them.

    Exits with 1 when the smallest profile is noisier than the full one.
    """
    from cbench.knobs import run, table
    from cbench.knobs.options import KnobOptions, share

    if report is not None:
        from cbench.report.figures import pyplot
        from cbench.report.page import NEEDED_BY_PAGES, check_page

        check_page(str(resume or output), str(report))
        pyplot(NEEDED_BY_PAGES)
    if write_profile is not None:
        _check_profile(write_profile, resume or output)
    if resume is not None:
        allowed = ("--resume", "--json", "--report", "--write-profile")
        others = [word for word in sys.argv[3:] if word.startswith("-") and word.partition("=")[0] not in allowed]
        if words or others:
            raise UsageError(f"--resume takes the options of the stored screening: omit {(others or words or [''])[0]}")
    if resume is None:
        options = KnobOptions(
            profile=profile,
            response=response,
            only=tuple(only or ()),
            without=tuple(without or ()),
            cpus=cpus,
            words=tuple(words or ()),
            is_command="--" in sys.argv,
            trials=trials,
            duration=duration,
            within=share(within),
            applications=applications,
            budget=budget,
            seed=seed,
            alpha=alpha,
        )
        if plan:
            show(run.design(options), as_json, table.design)
            return
    with interruptible(kept=True), TrialBar() as bar:
        result = run.resume(resume, bar.show, tell) if resume else run.start(options, output, bar.show, tell)
    data = resume or output
    if write_profile is not None:
        run.write_profile(result, data, write_profile, tell)
    if report is not None:
        run.write_page(result, report)
    show(result, as_json, table.result)
    if result.is_noisier:
        raise typer.Exit(1)


def _check_profile(path: Path, data: Path) -> None:
    from quiet import check_savable

    check_savable(str(path), "--write-profile")
    if path.suffix != ".toml":
        raise UsageError(
            f"--write-profile {path}: must end with .toml, because `quiet plan --profile` reads a value without / and "
            ".toml as the name of a bundled profile"
        )
    if path.exists() and data.exists() and path.samefile(data):
        raise UsageError(f"--write-profile {path}: is the data file itself; choose another name")


def add_to(group: typer.Typer) -> None:
    """Add the command to `cbench screen`."""
    group.command("knobs")(knobs_command)

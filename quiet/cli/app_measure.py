"""Define the options of the commands that measure or run a program: noise, run, lock, why."""

from __future__ import annotations

from typing import Annotated

import typer

from quiet.cli import noise, run, why
from quiet.cli.options import (
    MEASURE,
    Cpus,
    Duration,
    Json,
    MaxGap,
    MaxInterrupts,
    MaxLost,
    Profile,
    Threshold,
    Timeline,
)
from quiet.noise.measure_and_judge import NoiseTexts
from quiet.run.options import FrontOptions, RunRequest


def noise_command(
    cpus: Annotated[
        str | None,
        typer.Option(
            "--cpus", help="The CPUs to measure, such as 2-3,8. Default: the isolated ones, or else the last one."
        ),
    ] = None,
    duration: Duration = None,
    threshold: Threshold = None,
    max_lost: MaxLost = None,
    max_gap: MaxGap = None,
    max_interrupts: MaxInterrupts = None,
    timeline: Timeline = None,
    fifo: Annotated[
        str | None,
        typer.Option(
            "--fifo",
            metavar="PRIORITY",
            help="Measure at this real-time priority, so that ordinary tasks do not interrupt.",
        ),
    ] = None,
    no_trace: Annotated[
        bool, typer.Option("--no-trace", help="Detect causes from kernel counters, as without root.")
    ] = False,
    prove: Annotated[
        str | None,
        typer.Option("--prove", metavar="SECONDS", help="Also detect gaps with interrupts off (firmware, hardware)."),
    ] = None,
    wake: Annotated[
        bool, typer.Option("--wake", help="Measure how late a sleeping thread wakes, instead of gaps.")
    ] = False,
    period: Annotated[
        str | None,
        typer.Option("--period", metavar="TIME", help="With --wake: time between two wake-ups. Default: 1ms."),
    ] = None,
    max_latency: Annotated[
        str | None,
        typer.Option(
            "--max-latency", metavar="TIME", help="With --wake: the longest delay that still counts as quiet."
        ),
    ] = None,
    stop_above: Annotated[
        str | None,
        typer.Option(
            "--stop-above",
            metavar="TIME",
            help="With --wake: stop at the first wake-up later than this, and explain it.",
        ),
    ] = None,
    save_trace: Annotated[
        str | None,
        typer.Option(
            "--save-trace", metavar="FILE", help="With --stop-above: write the events around that wake-up to FILE."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Report what interrupts CPUs, how often, and for how long. Needs no root; root adds the causes' names.

    With --wake: report how late a sleeping thread on each of these CPUs wakes up, and why.
    """
    given = {"no_trace": "yes" if no_trace else None, "wake": "yes" if wake else None}
    texts = NoiseTexts(
        *(duration, threshold, max_lost, max_gap, max_interrupts, timeline, fifo),
        **given,
        period=period,
        max_latency=max_latency,
        stop_above=stop_above,
        save_trace=save_trace,
        prove=prove,
    )
    raise typer.Exit((noise.wake if wake else noise.noise)(cpus, texts, as_json))


_Share = Annotated[bool, typer.Option("--share", help="Run at the same time as other --share runs.")]
_Wait = Annotated[str | None, typer.Option("--wait", metavar="S", help="Wait at most S seconds. Default: no limit.")]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Exit with 3 if another run uses the CPUs.")]
_Command = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")]
_LAST = {"allow_interspersed_args": False}


def run_command(
    command: _Command,
    profile: Profile = "bench",
    cpus: Cpus = None,
    share: _Share = False,
    wait: _Wait = None,
    no_wait: _NoWait = False,
    linger: Annotated[
        str | None,
        typer.Option(
            "--linger", metavar="S", help="Keep the profile applied for S seconds (at most 3600) for the next run."
        ),
    ] = None,
    as_user: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="USER",
            help="Run the command as USER, such as root. Default: the current user, or the user who called sudo.",
        ),
    ] = None,
    threads: Annotated[
        bool | None,
        typer.Option(
            "--threads/--no-threads", help="Spread threads over the CPUs. Default: yes, unless CMD pins itself."
        ),
    ] = None,
    mems: Annotated[
        str | None, typer.Option("--mems", metavar="NODES", help="NUMA nodes of CMD's memory: auto, leave, or a list.")
    ] = None,
    container: Annotated[
        bool,
        typer.Option("--container", help="Add the option that pins the container started by CMD to the isolated CPUs."),
    ] = False,
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write the command's interruptions to FILE as JSON.")
    ] = None,
    quiet_report: Annotated[bool, typer.Option("--quiet-report", help="Print nothing about interruptions.")] = False,
    max_lost: Annotated[
        str | None,
        typer.Option("--max-lost", metavar="PCT", help="Exit with 1 if more than this share of the time is lost."),
    ] = None,
    max_interrupts: Annotated[
        str | None, typer.Option("--max-interrupts", metavar="N", help="Exit with 1 after more than N interruptions.")
    ] = None,
) -> None:
    """Run a command on quiet, isolated CPUs, then restore. Starts its root helper with sudo, doas or pkexec.

    The command runs as you. Only one run is active at a time, except with --share; later runs queue. Exits with the
    command's exit code, 3 when refused, 4 when the restore is incomplete.
    """
    options = RunRequest(profile, cpus, share, run.wait_limit(wait, no_wait), run.seconds(linger, "--linger") or 0.0)
    options = options._replace(threads=threads, mems=mems)
    own = FrontOptions(as_user, report, quiet_report, max_lost, max_interrupts, container)
    raise typer.Exit(run.run(options, own, command))


def lock(command: _Command, share: _Share = False, wait: _Wait = None, no_wait: _NoWait = False) -> None:
    """Run a command while no other run uses the isolated CPUs. Changes nothing; needs no root.

    Exits with the command's exit code, or 3 when the wait timed out.
    """
    raise typer.Exit(run.lock(command, share, run.wait_limit(wait, no_wait)))


def run_helper() -> None:
    """The root helper of `quiet run`, which reads a fixed protocol from its standard input, a socket."""
    raise typer.Exit(run.helper())


def why_command(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")],
    profile: Profile = "bench",
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="Write the report to FILE as JSON instead of to stderr as text."),
    ] = None,
    no_trace: Annotated[
        bool, typer.Option("--no-trace", help="Detect causes from kernel counters, as without root.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the report as JSON to stdout, after CMD's output.")
    ] = False,
) -> None:
    """Run a command and report its interruptions, with causes. Changes nothing; needs no root.

    Also predicts how many interruptions `quiet run` would remove. Root adds each cause's name and length. By
    default, the report is on stderr.
    """
    raise typer.Exit(why.why(command, profile, report, no_trace, as_json))


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("noise", rich_help_panel=MEASURE)(noise_command)
    app.command("run", rich_help_panel=MEASURE, context_settings=_LAST)(run_command)
    app.command(rich_help_panel=MEASURE, context_settings=_LAST)(lock)
    app.command("run-helper", hidden=True)(run_helper)
    app.command("why", rich_help_panel=MEASURE, context_settings={"allow_interspersed_args": False})(why_command)

"""Define the Typer application of `quiet`. app_measure and app_reboot add commands; other modules run the commands."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from quiet import __version__
from quiet.cli import app_measure, app_reboot, host, noise, settings, watch
from quiet.cli.options import (
    HOST,
    SETTINGS,
    All,
    Cpus,
    Duration,
    Json,
    MaxGap,
    MaxInterrupts,
    MaxLost,
    Named,
    Profile,
    Root,
    Threshold,
    Timeline,
)
from quiet.cli.panel_group import PanelGroup
from quiet.console import emit
from quiet.noise.measure_and_judge import NoiseTexts

app = typer.Typer(
    cls=PanelGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Quiet this host for benchmarking, verify it, and restore every setting.",
)

if "_QUIET_COMPLETE" in os.environ:  # a shell requests completions
    from typer._completion_classes import completion_init

    completion_init()


@app.command(rich_help_panel=SETTINGS)
def status(root: Root = "/", as_json: Json = False) -> None:
    """Show this host's CPUs, capabilities, and applied profile."""
    raise typer.Exit(host.status(root, as_json))


@app.command(rich_help_panel=SETTINGS)
def plan(
    profile: Profile = "bench", cpus: Cpus = None, every: All = False, root: Root = "/", as_json: Json = False
) -> None:
    """Show what `quiet apply` would change. Writes nothing; needs no root.

    --all lists the changes by knob, with current and wanted values and the reason; --json lists every target.
    """
    raise typer.Exit(settings.plan(profile, cpus, root, as_json, every))


@app.command(rich_help_panel=SETTINGS)
def apply(
    profile: Profile = "bench", cpus: Cpus = None, every: All = False, root: Root = "/", as_json: Json = False
) -> None:
    """Apply a profile. Idempotent. Exits with 1 when a setting could not be applied."""
    raise typer.Exit(settings.apply(profile, cpus, root, as_json, every))


@app.command(rich_help_panel=SETTINGS)
def verify(
    profile: Named = None,
    cpus: Cpus = None,
    root: Root = "/",
    duration: Duration = None,
    threshold: Threshold = None,
    max_lost: MaxLost = None,
    max_gap: MaxGap = None,
    max_interrupts: MaxInterrupts = None,
    timeline: Timeline = None,
    as_json: Json = False,
) -> None:
    """Verify the profile's settings and measure interruptions. Exits with 0 when quiet.

    --duration 0 checks the settings only. With root, kernel tracing identifies the causes; without root, kernel
    counters do.
    """
    texts = NoiseTexts(duration, threshold, max_lost, max_gap, max_interrupts, timeline)
    raise typer.Exit(noise.verify(profile, cpus, root, texts, as_json))


@app.command(rich_help_panel=SETTINGS)
def restore(
    force: Annotated[
        bool, typer.Option("--force", help="Also restore settings that another program changed after the apply.")
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Keep settings that another program changed after the apply or that cannot be restored; accept a "
            "damaged journal.",
        ),
    ] = False,
    root: Root = "/",
    as_json: Json = False,
) -> None:
    """Restore every setting to its original value. Exits with 4 when one could not be restored."""
    raise typer.Exit(settings.restore(force, keep, root, as_json))


@app.command("watch", rich_help_panel=SETTINGS)
def watch_command(
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Reapply drifted settings. `quiet restore` still restores the original values."),
    ] = False,
    rescan: Annotated[float, typer.Option(metavar="S", help="Check every setting every S seconds.")] = 60.0,
    interval: Annotated[
        float, typer.Option("--interval", metavar="S", help="Count interruptions of the isolated CPUs every S seconds.")
    ] = 10.0,
    duration: Annotated[float | None, typer.Option(metavar="S", help="Stop after S seconds. Default: never.")] = None,
    cpus: Annotated[
        str | None, typer.Option("--cpus", help="Count interruptions of these CPUs; needs no applied profile.")
    ] = None,
    textfile: Annotated[
        str | None,
        typer.Option("--textfile", metavar="FILE", help="Write metrics for node_exporter's textfile collector."),
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="DIR", help="Directory of the history. Default: /var/lib/quiet.")
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Report the recorded interruptions by cause, and exit.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="With --history: start time, such as 8h (ago), 22:00, or a date."),
    ] = None,
    cpu: Annotated[int | None, typer.Option("--cpu", metavar="N", help="With --history: report this CPU only.")] = None,
    unit: Annotated[
        bool, typer.Option("--unit", help="Print a systemd unit that watches with these options, and exit.")
    ] = False,
    root: Root = "/",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Report drift and interruptions as they happen.

    Ends at SIGINT, SIGTERM or SIGHUP, after --duration, or when the profile is restored. Runs on the housekeeping CPUs
    and sleeps until an event or the next check. Exits with 1 when drift was not repaired.
    """
    request = watch.WatchRequest(repair, rescan, interval, duration, cpus, store, textfile, root, as_json)
    raise typer.Exit(watch.chosen(request, history, since, cpu, unit))


app_measure.add_to(app)
app_reboot.add_to(app)


@app.command(rich_help_panel=HOST)
def profiles(as_json: Json = False) -> None:
    """List the bundled profiles."""
    raise typer.Exit(settings.profiles(as_json))


@app.command(rich_help_panel=HOST)
def explain(
    knob: Annotated[str | None, typer.Argument(help="The name of a knob or kernel parameter.")] = None,
    as_json: Json = False,
) -> None:
    """Explain a knob or kernel parameter, or list all knobs."""
    raise typer.Exit(settings.explain(knob, as_json))


@app.command(rich_help_panel=HOST)
def record(
    file: Annotated[str, typer.Argument(help="The archive to write, such as myhost.tar.gz.")],
    root: Root = "/",
    unmasked: Annotated[
        bool, typer.Option("--unmasked", help="Keep names, addresses, identifiers, and serial numbers.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Record this machine as a file tree for --root. Needs no root; root can read more files.

    Records the files that `plan` and `status` read, with private data redacted.
    """
    raise typer.Exit(host.record(file, root, unmasked, as_json))


def _version(wanted: bool) -> None:
    if wanted:
        emit(f"quiet {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass

"""The options of `quiet`, in Typer. What the commands do is in the other files of this folder."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from quiet import __version__
from quiet.cli import boot, host, kernel, noise, run, service, settings, watch, why
from quiet.console import emit
from quiet.noise.measure_and_judge import NoiseTexts
from quiet.run.options import FrontOptions, RunRequest


class PanelGroup(TyperGroup):
    """A group whose `--help` lists the commands by their panels, each with a complete one-line help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                row = (name, command.get_short_help_str(limit=500))
                panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append(row)
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl(rows)


_MEASURE, _SETTINGS, _REBOOT, _HOST = "Measure", "Change and restore settings", "Across reboots", "Look up and record"

app = typer.Typer(
    cls=PanelGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Quiet this host for benchmarking, verify it, and restore every setting.",
)

if "_QUIET_COMPLETE" in os.environ:  # a shell that completes a line
    from typer._completion_classes import completion_init

    completion_init()

kernel_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Check the build configuration of the kernel."
)
app.add_typer(kernel_app, name="kernel", rich_help_panel=_REBOOT)

_Profile = Annotated[
    str, typer.Option("--profile", "-p", help="A bundled profile (as-is, bench, strict), or the path of a .toml file.")
]
_Named = Annotated[str | None, typer.Option("--profile", "-p", help="A profile. Default: the applied one, else bench.")]
_Cpus = Annotated[
    str | None, typer.Option("--cpus", help="The CPUs to isolate, such as 2-3,8. Default: selected automatically.")
]
_Root = Annotated[
    str, typer.Option("--root", metavar="DIR", help="The tree of a recorded machine, instead of this host.")
]
_All = Annotated[bool, typer.Option("--all", help="List every change, and every setting left alone with its reason.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]

_Duration = Annotated[str | None, typer.Option("--duration", metavar="S", help="Measure for S seconds. Default: 10.")]
_Threshold = Annotated[
    str | None,
    typer.Option("--threshold", metavar="TIME", help="Shortest gap to report, such as 100ns. Default: 3 loop periods."),
]
_MaxLost = Annotated[
    str | None, typer.Option("--max-lost", metavar="PCT", help="Not quiet above this share of the time, such as 0.1%.")
]
_MaxGap = Annotated[
    str | None, typer.Option("--max-gap", metavar="TIME", help="Not quiet with a longer gap, such as 50us.")
]
_MaxInterrupts = Annotated[
    str | None, typer.Option("--max-interrupts", metavar="N", help="Not quiet with more interrupts a second.")
]
_Timeline = Annotated[
    str | None,
    typer.Option("--timeline", metavar="FILE.html", help="Write a figure of the gaps over time, colored by cause."),
]


@app.command(rich_help_panel=_SETTINGS)
def status(root: _Root = "/", as_json: _Json = False) -> None:
    """Show this host's CPUs, capabilities, and applied profile."""
    raise typer.Exit(host.status(root, as_json))


@app.command(rich_help_panel=_SETTINGS)
def plan(
    profile: _Profile = "bench", cpus: _Cpus = None, every: _All = False, root: _Root = "/", as_json: _Json = False
) -> None:
    """Show what `quiet apply` would change. Writes nothing; needs no root.

    --all lists every change with its current and wanted value and its reason.
    """
    raise typer.Exit(settings.plan(profile, cpus, root, as_json, every))


@app.command(rich_help_panel=_SETTINGS)
def apply(
    profile: _Profile = "bench", cpus: _Cpus = None, every: _All = False, root: _Root = "/", as_json: _Json = False
) -> None:
    """Apply a profile. Idempotent. Exits with 1 when a setting could not be applied."""
    raise typer.Exit(settings.apply(profile, cpus, root, as_json, every))


@app.command(rich_help_panel=_SETTINGS)
def verify(
    profile: _Named = None,
    cpus: _Cpus = None,
    root: _Root = "/",
    duration: _Duration = None,
    threshold: _Threshold = None,
    max_lost: _MaxLost = None,
    max_gap: _MaxGap = None,
    max_interrupts: _MaxInterrupts = None,
    timeline: _Timeline = None,
    as_json: _Json = False,
) -> None:
    """Check that the settings hold, and measure interruptions. Exits with 0 when quiet.

    --duration 0 checks the settings only. With root, the kernel's tracing names the causes; without, counters do.
    """
    texts = NoiseTexts(duration, threshold, max_lost, max_gap, max_interrupts, timeline)
    raise typer.Exit(noise.verify(profile, cpus, root, texts, as_json))


@app.command("noise", rich_help_panel=_MEASURE)
def noise_command(
    cpus: Annotated[str, typer.Option("--cpus", help="The CPUs to measure, such as 2-3,8.")],
    duration: _Duration = None,
    threshold: _Threshold = None,
    max_lost: _MaxLost = None,
    max_gap: _MaxGap = None,
    max_interrupts: _MaxInterrupts = None,
    timeline: _Timeline = None,
    fifo: Annotated[
        str | None,
        typer.Option("--fifo", metavar="PRIORITY", help="Measure at this real-time priority, which hides tasks."),
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
        str | None, typer.Option("--max-latency", metavar="TIME", help="With --wake: not quiet with a later wake-up.")
    ] = None,
    stop_above: Annotated[
        str | None,
        typer.Option("--stop-above", metavar="TIME", help="With --wake: stop at the first later wake-up, explain it."),
    ] = None,
    save_trace: Annotated[
        str | None,
        typer.Option("--save-trace", metavar="FILE", help="Write the events around that wake-up to a file."),
    ] = None,
    as_json: _Json = False,
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


@app.command(rich_help_panel=_SETTINGS)
def restore(
    force: Annotated[
        bool, typer.Option("--force", help="Also restore settings that another program has changed since.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep settings that changed since, and accept a damaged journal.")
    ] = False,
    root: _Root = "/",
    as_json: _Json = False,
) -> None:
    """Restore every setting to its original value. Exits with 4 when one could not be restored."""
    raise typer.Exit(settings.restore(force, keep, root, as_json))


@app.command(name="install-service", rich_help_panel=_REBOOT)
def install_service(
    profile: _Profile = "bench",
    cpus: _Cpus = None,
    trust: Annotated[
        bool, typer.Option("--trust-program", help="Install even if users other than root can modify this program.")
    ] = False,
    root: _Root = "/",
    as_json: _Json = False,
) -> None:
    """Install a systemd service that applies a profile at boot. Stopping quiet.service restores.

    A profile file outside /etc is copied to /etc/quiet. With --root, only the files are written.
    """
    raise typer.Exit(service.install_service(profile, cpus, trust, root, as_json))


@app.command(name="remove-service", rich_help_panel=_REBOOT)
def remove_service(root: _Root = "/", as_json: _Json = False) -> None:
    """Stop the systemd service, restore, and remove its files."""
    raise typer.Exit(service.remove_service(root, as_json))


_Share = Annotated[bool, typer.Option("--share", help="Run at the same time as other --share runs.")]
_Wait = Annotated[
    str | None, typer.Option("--wait", metavar="S", help="Wait for S seconds at most. Default: no limit.")
]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Exit with 3 when another run uses the CPUs.")]
_Command = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")]
_LAST = {"allow_interspersed_args": False}


@app.command("run", rich_help_panel=_MEASURE, context_settings=_LAST)
def run_command(
    command: _Command,
    profile: _Profile = "bench",
    cpus: _Cpus = None,
    share: _Share = False,
    wait: _Wait = None,
    no_wait: _NoWait = False,
    linger: Annotated[
        str | None,
        typer.Option("--linger", metavar="S", help="Keep the profile applied for S seconds for the next run."),
    ] = None,
    as_user: Annotated[
        str | None, typer.Option("--as", metavar="USER", help="Run the command as root, or as another user.")
    ] = None,
    threads: Annotated[
        bool | None,
        typer.Option("--threads/--no-threads", help="Spread threads over the CPUs. Default: unless CMD pins itself."),
    ] = None,
    mems: Annotated[
        str | None, typer.Option("--mems", metavar="NODES", help="NUMA nodes of CMD's memory: auto, leave, or a list.")
    ] = None,
    container: Annotated[
        bool, typer.Option("--container", help="Pass CMD's container engine the option that pins its container.")
    ] = False,
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write what interrupted the command, as JSON.")
    ] = None,
    quiet_report: Annotated[bool, typer.Option("--quiet-report", help="Print nothing about interruptions.")] = False,
    max_lost: Annotated[
        str | None, typer.Option("--max-lost", metavar="PCT", help="Exit 1 above this share of lost time.")
    ] = None,
    max_interrupts: Annotated[
        str | None, typer.Option("--max-interrupts", metavar="N", help="Exit 1 after more interruptions.")
    ] = None,
) -> None:
    """Run a command on quiet, isolated CPUs, then restore. Starts its root helper with sudo.

    The command runs as you. One run at a time; others queue. Exits with the command's exit code, 3 when refused,
    4 when the restore is incomplete.
    """
    options = RunRequest(profile, cpus, share, run.wait_limit(wait, no_wait), run.seconds(linger, "--linger") or 0.0)
    options = options._replace(threads=threads, mems=mems)
    own = FrontOptions(as_user, report, quiet_report, max_lost, max_interrupts, container)
    raise typer.Exit(run.run(options, own, command))


@app.command(rich_help_panel=_MEASURE, context_settings=_LAST)
def lock(command: _Command, share: _Share = False, wait: _Wait = None, no_wait: _NoWait = False) -> None:
    """Run a command while no other run uses the isolated CPUs. Changes nothing; needs no root.

    Exits with the command's exit code, or 3 when the wait timed out.
    """
    raise typer.Exit(run.lock(command, share, run.wait_limit(wait, no_wait)))


@app.command("run-helper", hidden=True)
def run_helper() -> None:
    """What `quiet run` starts as root: reads a fixed protocol from its standard input, a socket."""
    raise typer.Exit(run.helper())


@app.command("why", rich_help_panel=_MEASURE, context_settings={"allow_interspersed_args": False})
def why_command(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")],
    profile: _Profile = "bench",
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write the report as JSON to a file instead.")
    ] = None,
    no_trace: Annotated[
        bool, typer.Option("--no-trace", help="Detect causes from kernel counters, as without root.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as JSON to stdout, after CMD's.")] = False,
) -> None:
    """Run a command and report its interruptions, with causes. Changes nothing; needs no root.

    Also predicts how much of the lost time `quiet run` would save. Root adds each cause's name and length. The report
    is on stderr.
    """
    raise typer.Exit(why.why(command, profile, report, no_trace, as_json))


@app.command(rich_help_panel=_HOST)
def profiles(as_json: _Json = False) -> None:
    """List the bundled profiles."""
    raise typer.Exit(settings.profiles(as_json))


@app.command(rich_help_panel=_HOST)
def explain(knob: Annotated[str | None, typer.Argument(help="A knob's name.")] = None, as_json: _Json = False) -> None:
    """Explain a knob, or list all knobs when none is named."""
    raise typer.Exit(settings.explain(knob, as_json))


@app.command(rich_help_panel=_HOST)
def record(
    file: Annotated[str, typer.Argument(help="The archive to write, such as myhost.tar.gz.")],
    root: _Root = "/",
    unmasked: Annotated[
        bool, typer.Option("--unmasked", help="Keep names, addresses, identifiers, and serial numbers.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Record this machine as a file tree for --root. Needs no root; root can read more files.

    Records the files that `plan` and `status` read, with private data redacted.
    """
    raise typer.Exit(host.record(file, root, unmasked, as_json))


_boot = typer.Typer(no_args_is_help=True, help="Set kernel parameters, which take effect at the next boot.")
app.add_typer(_boot, name="boot", rich_help_panel=_REBOOT)
_Loader = Annotated[
    str | None, typer.Option("--loader", metavar="NAME", help="The boot loader, when several are installed.")
]


@_boot.command("plan")
def boot_plan(
    profile: _Profile = "bench", cpus: _Cpus = None, root: _Root = "/", loader: _Loader = None, as_json: _Json = False
) -> None:
    """Show the parameters to add, the files, and the commands. Writes nothing."""
    raise typer.Exit(boot.plan(profile, cpus, root, loader, as_json))


@_boot.command("apply")
def boot_apply(
    profile: _Profile = "bench", cpus: _Cpus = None, root: _Root = "/", loader: _Loader = None, as_json: _Json = False
) -> None:
    """Add a profile's parameters to the command line of later boots. Idempotent."""
    raise typer.Exit(boot.apply(profile, cpus, root, loader, as_json))


@_boot.command("remove")
def boot_remove(root: _Root = "/", as_json: _Json = False) -> None:
    """Restore every file to its original content. Exits with 4 when one could not be restored."""
    raise typer.Exit(boot.remove(root, as_json))


@_boot.command("once")
def boot_once(
    profile: _Profile = "bench",
    cpus: _Cpus = None,
    root: _Root = "/",
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="FILE", help="Kernel image. Default: the running one.")
    ] = None,
    initrd: Annotated[
        str | None, typer.Option("--initrd", metavar="FILE", help="Initial RAM disk. Default: the image's own.")
    ] = None,
    load_only: Annotated[
        bool, typer.Option("--load-only", help="Load the kernel only; `systemctl kexec` starts it.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Restart now with a profile's parameters, for one boot (kexec)."""
    raise typer.Exit(boot.once(profile, cpus, root, kernel, initrd, load_only, as_json))


@app.command("watch", rich_help_panel=_SETTINGS)
def watch_command(
    repair: Annotated[
        bool, typer.Option("--repair", help="Set drifted settings again. The values to restore stay the same.")
    ] = False,
    rescan: Annotated[float, typer.Option(metavar="S", help="Check every setting every S seconds.")] = 60.0,
    interval: Annotated[
        float, typer.Option("--interval", metavar="S", help="Count interruptions of the isolated CPUs every S seconds.")
    ] = 10.0,
    duration: Annotated[float | None, typer.Option(metavar="S", help="End after S seconds. Default: never.")] = None,
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
        bool, typer.Option("--history", help="Report what interrupted the CPUs, by cause, and exit.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="With --history: start, such as 8h (ago), 22:00, or a date."),
    ] = None,
    cpu: Annotated[int | None, typer.Option("--cpu", metavar="N", help="With --history: of this CPU only.")] = None,
    unit: Annotated[
        bool, typer.Option("--unit", help="Print a systemd unit that watches with these options, and exit.")
    ] = False,
    root: _Root = "/",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Report drift and interruptions as they happen.

    Ends at SIGINT or SIGTERM, or when the profile is restored. Runs on the housekeeping CPUs and sleeps until an event.
    Exits with 1 when drift was not repaired.
    """
    request = watch.WatchRequest(repair, rescan, interval, duration, cpus, store, textfile, root, as_json)
    raise typer.Exit(watch.chosen(request, history, since, cpu, unit))


@kernel_app.command("check")
def kernel_check(
    fragments: Annotated[
        list[str] | None, typer.Argument(help="Check only these, such as isolation. Default: all.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Another kernel's configuration, such as .config."),
    ] = None,
    root: _Root = "/",
    as_json: _Json = False,
) -> None:
    """Report the build options that quiet can use. Exits with 0 when none is missing."""
    raise typer.Exit(kernel.kernel_check(fragments or (), config, root, as_json))


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

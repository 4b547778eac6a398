"""The options of `quiet`, in Typer. What the commands do is in the other files of this folder."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from typer._completion_classes import completion_init

from quiet import __version__
from quiet.cli import boot, host, kernel, noise, run, service, settings, watch, why
from quiet.console import emit
from quiet.noise.measure_and_judge import NoiseTexts
from quiet.run.options import FrontOptions, RunRequest

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make this host quiet for measuring, prove it, and put everything back exactly as it was found.",
)

if "_QUIET_COMPLETE" in os.environ:  # a shell that completes a line
    completion_init()

kernel_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What this host's kernel was built with.")
app.add_typer(kernel_app, name="kernel")

_Profile = Annotated[
    str, typer.Option("--profile", "-p", help="A bundled profile (as-is, bench, strict), or the path of a .toml file.")
]
_Named = Annotated[str | None, typer.Option("--profile", "-p", help="Default: the applied one, else bench.")]
_Cpus = Annotated[str | None, typer.Option("--cpus", help="The CPUs to isolate, such as 2-3,8. Default: chosen well.")]
_Root = Annotated[str, typer.Option("--root", metavar="DIR", help="A recorded machine's tree instead of this host.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else there.")]

_Duration = Annotated[str | None, typer.Option("--duration", metavar="S", help="How long to measure. Default: 10 s.")]
_Threshold = Annotated[
    str | None,
    typer.Option("--threshold", metavar="TIME", help="Gaps from here on, such as 100ns. Default: 3 loop periods."),
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
    str | None, typer.Option("--timeline", metavar="FILE.html", help="Draw the gaps over time, coloured by cause.")
]


@app.command()
def status(root: _Root = "/", as_json: _Json = False) -> None:
    """This host: its CPUs, what it can and cannot do, and whether a profile is applied."""
    raise typer.Exit(host.status(root, as_json))


@app.command()
def plan(profile: _Profile = "bench", cpus: _Cpus = None, root: _Root = "/", as_json: _Json = False) -> None:
    """Every change that apply would make, with current and wanted value and why. Writes nothing, needs no root."""
    raise typer.Exit(settings.plan(profile, cpus, root, as_json))


@app.command()
def apply(profile: _Profile = "bench", cpus: _Cpus = None, root: _Root = "/", as_json: _Json = False) -> None:
    """Apply a profile. Twice is the same as once. Exit 1 when something could not be applied."""
    raise typer.Exit(settings.apply(profile, cpus, root, as_json))


@app.command()
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
    """Do the settings still hold, and who interrupts the isolated CPUs, how often and how long? Exit 0 when quiet.

    --duration 0 looks at the settings only. Without root, causes are found by counting, else by the kernel's tracing.
    """
    texts = NoiseTexts(duration, threshold, max_lost, max_gap, max_interrupts, timeline)
    raise typer.Exit(noise.verify(profile, cpus, root, texts, as_json))


@app.command("noise")
def noise_command(
    cpus: Annotated[str, typer.Option("--cpus", help="The CPUs to measure, such as 2-3,8.")],
    duration: _Duration = None,
    threshold: _Threshold = None,
    max_lost: _MaxLost = None,
    max_gap: _MaxGap = None,
    max_interrupts: _MaxInterrupts = None,
    timeline: _Timeline = None,
    fifo: Annotated[
        str | None, typer.Option("--fifo", metavar="PRIORITY", help="Watch at this real-time priority: hides tasks.")
    ] = None,
    no_trace: Annotated[bool, typer.Option("--no-trace", help="Find causes by counting, as without root.")] = False,
    prove: Annotated[
        str | None,
        typer.Option("--prove", metavar="SECONDS", help="Also look for gaps with interrupts off: firmware, hardware."),
    ] = None,
    wake: Annotated[
        bool, typer.Option("--wake", help="Measure how late a sleeping thread wakes, instead of gaps.")
    ] = False,
    period: Annotated[
        str | None, typer.Option("--period", metavar="TIME", help="With --wake: between two wake-ups. Default: 1ms.")
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
    """Who interrupts these CPUs, how often, how long, and what would stop it? Needs no root; with it, it knows more.

    With --wake: how late a thread that sleeps on each of these CPUs runs again, and why.
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


@app.command()
def restore(
    force: Annotated[bool, typer.Option("--force", help="Also put back what somebody else has changed since.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Accept what was changed since, and a damaged journal.")] = False,
    root: _Root = "/",
    as_json: _Json = False,
) -> None:
    """Put everything back as it was found. Exit 4 when something could not be."""
    raise typer.Exit(settings.restore(force, keep, root, as_json))


@app.command(name="install-service")
def install_service(
    profile: _Profile = "bench",
    cpus: _Cpus = None,
    trust: Annotated[
        bool, typer.Option("--trust-program", help="Also where others than root can change this program.")
    ] = False,
    root: _Root = "/",
    as_json: _Json = False,
) -> None:
    """Have systemd apply a profile after each boot, and restore when the unit quiet.service is stopped.

    A file of your own is copied to /etc/quiet, unless it is in /etc. With --root only the files are written.
    """
    raise typer.Exit(service.install_service(profile, cpus, trust, root, as_json))


@app.command(name="remove-service")
def remove_service(root: _Root = "/", as_json: _Json = False) -> None:
    """Stop quiet.service, which restores, and take away everything that install-service made."""
    raise typer.Exit(service.remove_service(root, as_json))


_Share = Annotated[bool, typer.Option("--share", help="Run beside others that share, not alone.")]
_Wait = Annotated[str | None, typer.Option("--wait", metavar="S", help="Wait so long at most. Default: for ever.")]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Exit 3 when another run is on the CPUs.")]
_Command = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")]
_LAST = {"allow_interspersed_args": False}


@app.command("run", context_settings=_LAST)
def run_command(
    command: _Command,
    profile: _Profile = "bench",
    cpus: _Cpus = None,
    share: _Share = False,
    wait: _Wait = None,
    no_wait: _NoWait = False,
    linger: Annotated[
        str | None, typer.Option("--linger", metavar="S", help="Keep the profile applied so long for the next run.")
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
        bool, typer.Option("--container", help="Add the option that brings a container of CMD to the CPUs.")
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
    """Apply, run a command on the isolated CPUs as yourself, restore. Starts its root helper with sudo.

    One run at a time; others queue. Exits with the command's exit code, 3 when refused, 4 when restore is incomplete.
    """
    options = RunRequest(profile, cpus, share, run.wait_limit(wait, no_wait), run.seconds(linger, "--linger") or 0.0)
    options = options._replace(threads=threads, mems=mems)
    own = FrontOptions(as_user, report, quiet_report, max_lost, max_interrupts, container)
    raise typer.Exit(run.run(options, own, command))


@app.command(context_settings=_LAST)
def lock(command: _Command, share: _Share = False, wait: _Wait = None, no_wait: _NoWait = False) -> None:
    """Run a command while no other run is on the isolated CPUs. Changes nothing, needs no root.

    Exits with the command's exit code, or 3 when the turn did not come.
    """
    raise typer.Exit(run.lock(command, share, run.wait_limit(wait, no_wait)))


@app.command("run-helper", hidden=True)
def run_helper() -> None:
    """What `quiet run` starts as root: reads a fixed protocol from its standard input, a socket."""
    raise typer.Exit(run.helper())


@app.command("why", context_settings={"allow_interspersed_args": False})
def why_command(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")],
    profile: _Profile = "bench",
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write the report as JSON to a file instead.")
    ] = None,
    no_trace: Annotated[bool, typer.Option("--no-trace", help="Find causes by counting, as without root.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the report as JSON to stdout, after CMD's.")] = False,
) -> None:
    """Run a command as it is and report what disturbed it, and how much of that `quiet run` would prevent.

    Changes nothing and needs no root; with it, each cause has a name and a length. The report is on stderr.
    """
    raise typer.Exit(why.why(command, profile, report, no_trace, as_json))


@app.command()
def profiles(as_json: _Json = False) -> None:
    """The bundled profiles."""
    raise typer.Exit(settings.profiles(as_json))


@app.command()
def explain(knob: Annotated[str | None, typer.Argument(help="A knob's name.")] = None, as_json: _Json = False) -> None:
    """What a knob does, why, and what the kernel documents; without a name, the list of knobs."""
    raise typer.Exit(settings.explain(knob, as_json))


@app.command()
def record(
    file: Annotated[str, typer.Argument(help="The archive to write, such as myhost.tar.gz.")],
    root: _Root = "/",
    unmasked: Annotated[
        bool, typer.Option("--unmasked", help="With names of tasks and hosts, addresses, identifiers, serial numbers.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Record this machine as a tree for --root: the files that plan and status read, without what is nobody's business.

    Needs no root; with it, more can be read.
    """
    raise typer.Exit(host.record(file, root, unmasked, as_json))


_boot = typer.Typer(no_args_is_help=True, help="The kernel command line: what only a reboot can set.")
app.add_typer(_boot, name="boot")
_Loader = Annotated[
    str | None, typer.Option("--loader", metavar="NAME", help="The boot loader, where several are here.")
]


@_boot.command("plan")
def boot_plan(
    profile: _Profile = "bench", cpus: _Cpus = None, root: _Root = "/", loader: _Loader = None, as_json: _Json = False
) -> None:
    """What apply would add, and why; which files and commands. Writes nothing."""
    raise typer.Exit(boot.plan(profile, cpus, root, loader, as_json))


@_boot.command("apply")
def boot_apply(
    profile: _Profile = "bench", cpus: _Cpus = None, root: _Root = "/", loader: _Loader = None, as_json: _Json = False
) -> None:
    """Put a profile's parameters on the next boots' command line. Twice is the same as once."""
    raise typer.Exit(boot.apply(profile, cpus, root, loader, as_json))


@_boot.command("remove")
def boot_remove(root: _Root = "/", as_json: _Json = False) -> None:
    """Put every file back as it was found. Exit 4 when it could not be."""
    raise typer.Exit(boot.remove(root, as_json))


@_boot.command("once")
def boot_once(
    profile: _Profile = "bench",
    cpus: _Cpus = None,
    root: _Root = "/",
    kernel: Annotated[str | None, typer.Option("--kernel", metavar="FILE", help="Default: the running one's.")] = None,
    initrd: Annotated[str | None, typer.Option("--initrd", metavar="FILE", help="Default: the image's own.")] = None,
    load_only: Annotated[bool, typer.Option("--load-only", help="Load it; `systemctl kexec` then starts it.")] = False,
    as_json: _Json = False,
) -> None:
    """Restart now with a profile's parameters, this once (kexec). The boot after it is as ever."""
    raise typer.Exit(boot.once(profile, cpus, root, kernel, initrd, load_only, as_json))


@app.command("watch")
def watch_command(
    repair: Annotated[
        bool, typer.Option("--repair", help="Set again what drifted, whoever changed it; restore stays as it was.")
    ] = False,
    rescan: Annotated[float, typer.Option(metavar="S", help="Look at everything this often, at most.")] = 60.0,
    interval: Annotated[
        float, typer.Option("--interval", metavar="S", help="Count interruptions of the isolated CPUs this often.")
    ] = 10.0,
    duration: Annotated[float | None, typer.Option(metavar="S", help="End after so long. Default: never.")] = None,
    cpus: Annotated[
        str | None, typer.Option("--cpus", help="Count interruptions of these CPUs; no profile has to be applied.")
    ] = None,
    textfile: Annotated[
        str | None,
        typer.Option("--textfile", metavar="FILE", help="Write metrics for node_exporter's textfile collector."),
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="DIR", help="The history's folder. Default: /var/lib/quiet.")
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Report what interrupted the CPUs, by cause, and exit.")
    ] = False,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="With --history: from 8h ago, 22:00 or a date on.")
    ] = None,
    cpu: Annotated[int | None, typer.Option("--cpu", metavar="N", help="With --history: of this CPU only.")] = None,
    unit: Annotated[
        bool, typer.Option("--unit", help="Print a systemd unit that watches with these options, and exit.")
    ] = False,
    root: _Root = "/",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Stay, and report what interrupts the isolated CPUs and what drifts from the applied profile, as it happens.

    Ends at SIGINT or SIGTERM, or when the profile is restored. Runs on the housekeeping CPUs, and costs next to nothing
    while nothing happens. Exit 1 when drift was not repaired.
    """
    request = watch.WatchRequest(repair, rescan, interval, duration, cpus, store, textfile, root, as_json)
    raise typer.Exit(watch.chosen(request, history, since, cpu, unit))


@kernel_app.command("check")
def kernel_check(
    fragments: Annotated[list[str] | None, typer.Argument(help="Only these, such as isolation. Default: all.")] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Another kernel's configuration, such as .config."),
    ] = None,
    root: _Root = "/",
    as_json: _Json = False,
) -> None:
    """Which options the running kernel has that quiet can use, and what each missing one costs. Exit 0: all there."""
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

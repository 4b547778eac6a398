"""The command `quiet`. Everything it does is in the other modules; here are only options, exit codes and output."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from quiet import __version__
from quiet.entry import emit, enter
from quiet.errors import UsageError

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make this host quiet for measuring, prove it, and put everything back exactly as it was found.",
)

_Profile = Annotated[
    str, typer.Option("--profile", "-p", help="A bundled profile's name, or the path of a .toml file.")
]
_Named = Annotated[str | None, typer.Option("--profile", "-p", help="Default: the applied one, else bench.")]
_Cpus = Annotated[str | None, typer.Option("--cpus", help="The CPUs to isolate, such as 2-3,8. Default: chosen well.")]
_Root = Annotated[str, typer.Option("--root", metavar="DIR", help="A recorded machine's tree instead of this host.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else there.")]


def _print(shape: object) -> None:
    import json

    emit(json.dumps(shape, indent=1) + "\n")


@app.command()
def status(root: _Root = "/", as_json: _Json = False) -> None:
    """This host: its CPUs, what it can and cannot do, and whether a profile is applied."""
    from quiet import journal, shapes
    from quiet.facts import Facts
    from quiet.host import Reader

    reader = Reader(root)
    state = shapes.status(Facts(reader), journal.load(reader))
    if as_json:
        _print(state)
    else:
        from quiet import render

        render.status(state)


@app.command()
def plan(profile: _Profile = "bench", cpus: _Cpus = None, root: _Root = "/", as_json: _Json = False) -> None:
    """Every change that apply would make, with current and wanted value and why. Writes nothing, needs no root."""
    from quiet import cpulist, journal
    from quiet.host import Reader
    from quiet.profile import load
    from quiet.verify import plan_now

    reader = Reader(root)
    made, record = plan_now(reader, load(profile), cpus)
    if record is None and (other := journal.load(reader)):
        applied = f"{other.profile} on CPUs {cpulist.format(other.cpus.isolated)}"
        sys.stderr.write(f"quiet: note: {applied} is applied now; restore it before you apply this plan\n")
    if as_json:
        from quiet import shapes

        _print(shapes.plan(made, record is not None))
    else:
        from quiet import render

        render.plan(made, record is not None)


@app.command()
def apply(profile: _Profile = "bench", cpus: _Cpus = None, root: _Root = "/", as_json: _Json = False) -> None:
    """Apply a profile. Twice is the same as once. Exit 1 when something could not be applied."""
    from quiet import render, shapes
    from quiet.apply import apply as do
    from quiet.host import Host
    from quiet.profile import load

    receipt = do(Host(root), load(profile), cpus)
    if as_json:
        _print(shapes.receipt(receipt))
    else:
        render.receipt(receipt)
    raise typer.Exit(1 if receipt.failures else 0)


@app.command()
def verify(
    profile: _Named = None,
    cpus: _Cpus = None,
    root: _Root = "/",
    duration: Annotated[float, typer.Option("--duration", help="Reserved for the noise measurement.", hidden=True)] = 0,
    as_json: _Json = False,
) -> None:
    """Do the settings still hold? Exit 0 when they do, 1 when something differs."""
    from quiet import render, shapes
    from quiet.host import Reader
    from quiet.verify import applied_profile, plan_now

    reader = Reader(root)
    made, record = plan_now(reader, applied_profile(reader, profile), cpus)
    if as_json:
        _print(shapes.verify(made, record is not None))
    else:
        render.verify(made, record is not None)
    raise typer.Exit(1 if made.changes else 0)


@app.command()
def restore(
    force: Annotated[bool, typer.Option("--force", help="Also put back what somebody else has changed since.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Accept what somebody else has changed since.")] = False,
    root: _Root = "/",
    as_json: _Json = False,
) -> None:
    """Put everything back as it was found. Exit 4 when something could not be."""
    from quiet import render, shapes
    from quiet.host import Host
    from quiet.restore import restore as do

    if force and keep:
        raise UsageError("--force and --keep contradict each other; give one of them")
    outcome = do(Host(root), force, keep)
    if as_json:
        _print(shapes.restore(outcome))
    else:
        render.restored(outcome)
    raise typer.Exit(0 if outcome.complete else 4)


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")],
    profile: _Profile = "bench",
    cpus: _Cpus = None,
) -> None:
    """Apply, run a command on the isolated CPUs, restore. Exits with the command's exit code, or 4 (see restore)."""
    from quiet import render
    from quiet.apply import Receipt
    from quiet.cpulist import format as cpu_list
    from quiet.profile import load
    from quiet.restore import Outcome
    from quiet.run import run as do

    def applied(receipt: Receipt) -> None:
        isolated = cpu_list(receipt.cpus.isolated)
        changes = render.counted(len(receipt.changes), "change")
        render.note(f"{receipt.profile} on CPUs {isolated}: {changes}, {len(receipt.skips)} left alone")
        for failure in receipt.failures:
            render.note(f"could not be applied: {failure.target}: {failure.reason}")

    def restored(outcome: Outcome | None) -> None:
        if outcome is None:
            render.note("the profile stays applied: it was before, or another quiet run still uses it")
        elif outcome.complete:
            render.note(f"restored {render.counted(outcome.restored, 'setting')}, nothing left changed")
        for left in (outcome.conflicts + outcome.failures) if outcome else ():
            render.note(f"not restored: {left.target}: {left.reason}")

    raise typer.Exit(do(load(profile), cpus, command, applied, restored))


@app.command()
def profiles(as_json: _Json = False) -> None:
    """The bundled profiles."""
    from quiet import render, shapes
    from quiet.profile import bundled, load

    found = [load(name) for name in bundled()]
    if as_json:
        _print({"profiles": [shapes.profile(p.name, p.summary, p.source, p.knobs) for p in found]})
    else:
        render.columns([(p.name, p.summary) for p in found], "")


@app.command()
def explain(knob: Annotated[str | None, typer.Argument(help="A knob's name.")] = None, as_json: _Json = False) -> None:
    """What a knob does, why, and what the kernel documents; without a name, the list of knobs."""
    from quiet import render, shapes
    from quiet.knobs import BY_NAME, KNOBS

    if knob is None:
        if as_json:
            _print({"knobs": [shapes.knob(item) for item in KNOBS]})
        else:
            render.columns([(item.name, item.title) for item in KNOBS], "")
        return
    if knob not in BY_NAME:
        raise UsageError(f"unknown knob '{knob}'; `quiet explain` lists the knobs")
    if as_json:
        _print(shapes.knob(BY_NAME[knob]))
    else:
        render.explain(BY_NAME[knob])


@app.command()
def record(
    file: Annotated[str, typer.Argument(help="The archive to write, such as myhost.tar.gz.")],
    root: _Root = "/",
    as_json: _Json = False,
) -> None:
    """Record this machine as a tree for --root: the files of /sys and /proc that plan and status read."""
    from quiet import render
    from quiet.recorder import Recording
    from quiet.recorder import record as do

    count = do(Recording(root), file)
    if as_json:
        _print({"file": file, "files": count})
        return
    render.out(f"{file}: {count} files; unpack it with tar -xzf and give the folder as --root")
    render.note(
        "it holds names and CPUs of tasks, the mount table and the kernel command line; no memory, no environment"
    )


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"quiet {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point."""
    enter(app, "quiet")


if __name__ == "__main__":
    main()

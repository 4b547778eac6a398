"""What the commands that measure do: results to stdout, and the exit code. No option parsing, no Typer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiet.console import emit_json, save
from quiet.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def verify(
    profile: str | None = None,
    cpus: str | None = None,
    root: str = "/",
    noise: Mapping[str, str] | None = None,
    as_json: bool = False,
) -> int:
    """Do the settings still hold, and who interrupts the isolated CPUs? Exit 0 when quiet, 1 when not.

    `noise`: the options of the measuring as given, by name (see `noise`); "duration" 0 leaves it out.
    """
    from quiet.cli import json_output, text
    from quiet.host.reader import Reader
    from quiet.noise import budgets, measure_and_judge
    from quiet.settings.verify import applied_profile, plan_now

    reader = Reader(root)
    chosen = applied_profile(reader, profile)
    options = measure_and_judge.options(noise or {}, 10.0 if reader.live else 0.0)
    if options.seconds and not reader.live:
        raise UsageError("--duration: a recorded machine cannot be measured; leave it out")
    made, record = plan_now(reader, chosen, cpus)
    if not as_json:
        text.verify(made, record is not None)
    heard = None
    if options.seconds:
        limits = budgets.over(options.budgets, chosen.budgets)
        drifted = {change.knob for change in made.changes}
        applied = frozenset(name for name, choice in chosen.knobs.items() if record and choice != "leave") - drifted
        heard = measure_and_judge.hear(made.cpus.isolated, options, limits, "the isolated CPUs", text.waiting, applied)
    if as_json:
        emit_json(json_output.verify(made, record is not None, heard.shape if heard else None))
    elif heard:
        text.heard(heard.lines)
    if heard and options.timeline and heard.timeline:
        save(options.timeline, heard.timeline, "--timeline")
    return 1 if made.changes or (heard and heard.exceeded) else 0


def verify_plain(
    profile: str | None = None, cpus: str | None = None, root: str = "/", duration: str = "", as_json: bool = False
) -> int:
    """As `verify`, with no other option of the measuring than how long."""
    return verify(profile, cpus, root, {"duration": duration} if duration else {}, as_json)


def noise(cpus: str, given: Mapping[str, str], as_json: bool) -> int:
    """Who interrupts these CPUs, how often and for how long? Exit 0, or 1 when a budget is exceeded.

    `given`: the options by name as given: duration, threshold, max-lost, max-gap, max-interrupts, timeline, fifo,
    no-trace.
    """
    from quiet import cpulist
    from quiet.cli import text
    from quiet.noise import measure_and_judge

    options = measure_and_judge.options(given, 10.0)
    if not options.seconds:
        raise UsageError("--duration 0: measuring takes time; write seconds, such as 10")
    try:
        wanted = cpulist.parse(cpus)
    except UsageError as error:
        raise UsageError(f"--cpus {cpus}: {error}") from None
    if not wanted:
        raise UsageError("--cpus names no CPU; write a list such as 2-3,8")
    heard = measure_and_judge.hear(wanted, options, options.budgets, "--cpus", text.waiting)
    if as_json:
        emit_json(heard.shape)
    else:
        text.heard(heard.lines)
    if options.timeline and heard.timeline:
        save(options.timeline, heard.timeline, "--timeline")
    return 1 if heard.exceeded else 0

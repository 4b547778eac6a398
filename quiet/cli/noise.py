"""Run `quiet verify` and `quiet noise`: print results to stdout and return the exit code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from quiet.console import emit_json, save
from quiet.errors import QuietError, UsageError

if TYPE_CHECKING:
    from quiet.cpulist import CpuSet
    from quiet.noise.measure_and_judge import NoiseOptions, NoiseResult, NoiseTexts
    from quiet.settings.applied_state import AppliedState
    from quiet.settings.plan import Plan
    from quiet.settings.profile import Profile


def verify(
    profile: str | None = None,
    cpus: str | None = None,
    root: str = "/",
    texts: NoiseTexts | None = None,
    as_json: bool = False,
) -> int:
    """Check the settings, and report interruptions of the isolated CPUs. Returns 0 if quiet, 1 if not.

    `texts`: the measurement's options as entered; a duration of 0 omits the measurement.
    """
    from quiet.cli import json_output, text
    from quiet.host.reader import Reader
    from quiet.noise import budgets
    from quiet.noise import measure_and_judge as measuring
    from quiet.settings.verify import applied_profile, plan_now

    reader = Reader(root)
    chosen = applied_profile(reader, profile)
    options = measuring.options(texts or measuring.NoiseTexts(), 10.0 if reader.live else 0.0)
    if options.seconds and not reader.live:
        raise UsageError("--duration: a recorded machine cannot be measured; omit --duration")
    plan, state = plan_now(reader, chosen, cpus)
    if not as_json:
        text.verify(plan, state is not None, chosen.source)
    measured = None
    if options.seconds:
        limits = budgets.over(options.budgets, chosen.budgets)
        measured = measuring.measure_and_judge(
            plan.cpus.isolated, options, limits, "the isolated CPUs", text.waiting, _in_place(plan, state, chosen)
        )
    if measured:
        _save(measured, options)
    if as_json:
        emit_json(json_output.verify(plan, state is not None, measured.report if measured else None))
    elif measured:
        _show(measured)
    return 1 if plan.changes or (measured and measured.report.exceeded) else 0


def verify_plain(
    profile: str | None = None, cpus: str | None = None, root: str = "/", duration: str = "", as_json: bool = False
) -> int:
    """Call `verify` with the duration as the only option of the measurement."""
    from quiet.noise.measure_and_judge import NoiseTexts

    return verify(profile, cpus, root, NoiseTexts(duration or None), as_json)


def noise(cpus: str | None, texts: NoiseTexts, as_json: bool) -> int:
    """Report the interruptions of these CPUs (None: the default ones), with causes, counts and durations.

    Returns 1 if a budget is exceeded, else 0.
    """
    from quiet.cli import json_output, text
    from quiet.noise import measure_and_judge as measuring

    options = measuring.options(texts, 10.0)
    if not options.seconds:
        raise UsageError("--duration 0: must be above 0 to measure; write seconds, such as 10")
    wanted = _cpus(cpus)
    measured = measuring.measure_and_judge(wanted, options, options.budgets, "--cpus", text.waiting, _applied(wanted))
    _save(measured, options)
    if as_json:
        emit_json(json_output.to_object(measured.report))
    else:
        _show(measured)
    return 1 if measured.report.exceeded else 0


def _applied(cpus: CpuSet) -> frozenset[str]:
    """The knobs of the applied profile whose values are in place, so that the report does not suggest them as remedies.

    Empty if the profile does not isolate all of these CPUs, or if it cannot be checked.
    """
    from quiet.host.reader import Reader
    from quiet.settings.journal import isolated_cpus
    from quiet.settings.verify import applied_profile, plan_now

    reader = Reader()
    try:
        if not cpus <= isolated_cpus():
            return frozenset()
        chosen = applied_profile(reader, None)
        return _in_place(*plan_now(reader, chosen, None), chosen)
    except QuietError:  # such as a profile whose file is gone
        return frozenset()


def _in_place(plan: Plan, state: AppliedState | None, chosen: Profile) -> frozenset[str]:
    """The knobs of the applied profile whose values are in place; empty if `state` is None: no profile is applied."""
    drifted = {change.knob for change in plan.changes}
    return frozenset(name for name, choice in chosen.knobs.items() if state and choice != "leave") - drifted


def wake(cpus: str | None, texts: NoiseTexts, as_json: bool) -> int:
    """Report how late threads on these CPUs (None: the default ones) wake, and why. Returns 1 if a limit is exceeded,
    else 0.
    """
    from quiet.cli import json_output, text
    from quiet.noise.wake import command, table

    options = command.options(texts)
    report = command.run(_cpus(cpus), options, text.waiting)
    if options.save_trace:
        save(options.save_trace, command.saved_trace(report), "--save-trace")
    if as_json:
        emit_json(json_output.to_object(report))
    else:
        text.out()
        for line in table.lines(report):
            text.out(line)
    return 1 if report.exceeded else 0


def _cpus(text: str | None) -> CpuSet:
    """Parse a CPU list. None: the isolated CPUs or, if there are none, the last CPU that this process may use.

    Raises UsageError.
    """
    from quiet import cpulist
    from quiet.settings.journal import isolated_cpus

    if text is None:
        return isolated_cpus() or frozenset({max(os.sched_getaffinity(0))})
    try:
        wanted = cpulist.parse(text)
    except UsageError as error:
        raise UsageError(f"--cpus {text}: {error}") from None
    if not wanted:
        raise UsageError("--cpus lists no CPU; write a list such as 2-3,8")
    return wanted


def _save(measured: NoiseResult, options: NoiseOptions) -> None:
    """Save the timeline, if requested. Called before anything is printed, because stdout may be a closed pipe."""
    if options.timeline and measured.timeline:
        save(options.timeline, measured.timeline, "--timeline")


def _show(measured: NoiseResult) -> None:
    from quiet.cli import text
    from quiet.noise import table

    text.out()
    for line in table.lines(measured.report):
        text.out(line)

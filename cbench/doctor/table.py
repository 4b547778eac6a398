"""Print the result of `cbench doctor` as text."""

from __future__ import annotations

from rich.markup import escape

from cbench.console import table_console
from cbench.doctor.result import DoctorResult, percent
from cbench.model import TRACING
from cbench.stats.detectable import Detectable

MOST_CAUSES = 5
WIDTH = 12


def report(result: DoctorResult) -> None:
    """Print the verdict, then its basis, then the remedies."""
    console = table_console(120)
    console.print(escape(result.verdict), style="bold", soft_wrap=True)
    for name, text in lines(result):
        console.print(escape(f"{name:{WIDTH}}{text}"), soft_wrap=True)
    if result.remedies:
        console.print("the most effective remedies here:")
    for number, remedy in enumerate(result.remedies, 1):
        text = (
            f"{number}. {remedy.remedy}: {percent(remedy.difference)}, {remedy.gain:.2g} times smaller ({remedy.how})"
        )
        console.print(escape(f"  {text}"), soft_wrap=True)
    console.print(
        "a program that uses memory or files is noisier; its own noise floor: cbench ab -- ./mybench ./mybench"
    )
    console.print("its interruptions, and those that `quiet run` would remove: quiet why -- ./mybench")


def lines(result: DoctorResult) -> list[tuple[str, str]]:
    """The lines of the text, as pairs of a fact's name and its value."""
    counter, width, core = result.counter, result.spread, result.core
    step = ""
    if result.step_share is not None:
        of = "" if counter.quantum in (None, 1) else f" of {counter.quantum}"
        step = f", steps{of} ({percent(result.step_share)} of a trial)"
    visible = result.detectable
    third = f"a third of the difference is detected in {percent(visible.third_found)} of comparisons"
    found = [
        (
            "interval",
            f"from {percent(visible.low)} to {percent(visible.high)}, based on {width.processes} processes; {third}",
        ),
        *_in_time(result.detectable_time),
        ("counter", f"{counter.name} in {counter.unit}{step}{f': {counter.why}' if counter.why else ''}"),
        (
            "spread",
            f"{percent(width.within)} within a process of {width.trials:,} trials, {percent(width.between)} between "
            f"processes' medians (interquartile ranges), which range over {percent(width.range)}",
        ),
    ]
    if result.one_after_the_other.of:
        blocks = result.one_after_the_other
        drifts = "; this machine drifts: alternate A and B, as `cbench ab` does" if blocks.drifts else ""
        counts = f"A before B: {blocks.called} of {blocks.of} comparisons of equal code showed a difference"
        found.append(("order", counts + drifts))
    if result.not_told:
        found.append(("fallback", f"medians of all trials are used: {result.not_told}"))
    if result.frequency:
        hz = result.frequency
        found.append(("frequency", f"{hz.hz / 1e9:.4g} GHz ({hz.low_hz / 1e9:.4g} to {hz.high_hz / 1e9:.4g} GHz)"))
    if result.states:
        found.append(("states", result.states))
    names = ", ".join(f"{name} {count:,}" for name, count in list(result.causes.items())[:MOST_CAUSES])
    source = "kernel tracing" if result.causes_from.source == TRACING else "counted, not named by the kernel's trace"
    found.append(
        ("interrupted", f"{percent(result.disturbed_trials)} of the trials{f': {names} ({source})' if names else ''}")
    )
    if result.kept_trials < 1:
        found.append(("kept", f"{percent(result.kept_trials)} of the trials; the others cannot be calibrated reliably"))
    found.append(
        ("stolen", "not known" if result.stolen_share is None else f"{percent(result.stolen_share)} of the time")
    )
    busy = "" if core.others_busy is None else f"; the other CPUs were {percent(core.others_busy)} busy"
    shared = core.shared_trials
    beside = "" if shared is None else f"; another thread ran on this core during {percent(shared)} of the trials"
    if core.siblings:
        threads = ", ".join(map(str, core.siblings))
        other = "" if core.sibling_busy is None else f", which was {percent(core.sibling_busy)} busy"
        found.append(("core", f"CPU {core.cpu} shares its core with CPU {threads}{other}{busy}{beside}"))
    else:
        guest = " as far as this guest can see" if result.host.virtual else ""
        found.append(("core", f"CPU {core.cpu} has its core to itself{guest}{busy}{beside}"))
    return found


def _in_time(time: Detectable | None) -> list[tuple[str, str]]:
    if time is None:
        return []
    interval = f"from {percent(time.low)} to {percent(time.high)}"
    return [("time", f"measured in time, as by most tools: differences below {percent(time.difference)} ({interval})")]

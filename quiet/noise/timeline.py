"""Draw the gaps over time in one self-contained HTML file, each gap as a mark colored by its cause."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import asdict, dataclass

from quiet.noise.attribute import HOST, STALL, UNKNOWN
from quiet.noise.call_nesting import (
    CALL,
    COUNTED,
    FAULT,
    HRTIMER,
    IRQ,
    NMI,
    PULLED,
    SOFTIRQ,
    THREAD,
    TIMER,
    VECTOR,
    WORK,
)
from quiet.noise.clock import Clock
from quiet.noise.measure import NoiseMeasurement, OnCpu
from quiet.noise.names import label

MOST = 20_000  # maximum number of gaps drawn per CPU; the longest are drawn
COLOURS = {
    HRTIMER: "#4477aa",
    TIMER: "#66ccee",
    PULLED: "#117799",
    VECTOR: "#88aaff",
    IRQ: "#228833",
    SOFTIRQ: "#88bb44",
    CALL: "#ccbb44",
    THREAD: "#ee6677",
    WORK: "#aa3377",
    NMI: "#552200",
    FAULT: "#994455",
    HOST: "#222222",
    STALL: "#bbbbbb",
    UNKNOWN: "#ff8800",
    COUNTED: "#228833",
}


_ALLOWED = "THE-SCRIPT-OF-THIS-PAGE"  # the page permits only this script, so that no script in the data can run


@dataclass(frozen=True, slots=True)
class Panel:
    """The drawing of one CPU.

    Each mark is the time in ms, the length in ns and the index of the cause's name; `left`: the number of marks that
    are not drawn.
    """

    cpu: int
    ms: float
    names: tuple[str, ...]
    colours: tuple[str, ...]
    marks: tuple[tuple[float, int, int], ...]
    left: int


def page(measured: NoiseMeasurement) -> str:
    """The timeline as an HTML page."""
    import jinja2  # slow to load, and only needed for --timeline

    folder = os.path.join(os.path.dirname(__file__), "templates")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    panels = [_panel(measured.clock, cpu, on) for cpu, on in sorted(measured.cpus.items())]
    text = environment.get_template("timeline.html.jinja").render(
        allowed=_ALLOWED,
        cpus=", ".join(str(panel.cpu) for panel in panels),
        seconds=f"{measured.seconds:.4g}",
        source=measured.source,
        panels=[asdict(panel) for panel in panels],
    )
    script = text.partition("<script>")[2].rpartition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return text.replace(_ALLOWED, f"'sha256-{digest}'", 1)


def _panel(clock: Clock, cpu: int, on: OnCpu) -> Panel:
    ns = clock.ns
    drawn = sorted(on.account.explained, key=lambda each: -each.gap.length)[:MOST]
    names: dict[str, int] = {}
    colours: list[str] = []
    marks = []
    for each in sorted(drawn, key=lambda each: each.gap.begin):
        cause = each.parts[0][0]
        name = label(cause)
        if name not in names:
            names[name] = len(names)
            colours.append(COLOURS.get(cause.kind, "#000000"))
        begin = ns(each.gap.begin - on.watched.begin) / 1e6
        marks.append((round(begin, 6), round(ns(each.gap.length)), names[name]))
    return Panel(
        cpu=cpu,
        ms=round(ns(on.watched.end - on.watched.begin) / 1e6, 3),
        names=tuple(names),
        colours=tuple(colours),
        marks=tuple(marks),
        left=max(len(on.account.explained) - MOST, 0) + on.watched.count - len(on.watched.gaps),
    )

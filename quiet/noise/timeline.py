"""The gaps over time as a picture: one HTML file that needs nothing else, each gap a mark coloured by its cause."""

from __future__ import annotations

import html
import json

from quiet.noise.attribute import HOST, STALL, UNKNOWN
from quiet.noise.call_nesting import CALL, COUNTED, FAULT, HRTIMER, IRQ, NMI, SOFTIRQ, THREAD, TIMER, VECTOR, WORK
from quiet.noise.measure import NoiseMeasurement
from quiet.noise.names import label

MOST = 20_000  # gaps that are drawn for each CPU: the longest
COLOURS = {
    HRTIMER: "#4477aa",
    TIMER: "#66ccee",
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


def page(measured: NoiseMeasurement) -> str:
    """The whole file."""
    ns = measured.clock.ns
    panels = []
    for cpu, on in sorted(measured.cpus.items()):
        drawn = sorted(on.account.explained, key=lambda each: -each.gap.length)[:MOST]
        names: dict[str, int] = {}
        kinds: list[str] = []
        marks = []
        for each in sorted(drawn, key=lambda each: each.gap.begin):
            cause = each.parts[0][0]
            text = label(cause)
            if text not in names:
                names[text] = len(names)
                kinds.append(COLOURS.get(cause.kind, "#000000"))
            begin = ns(each.gap.begin - on.watched.begin) / 1e6
            marks.append([round(begin, 6), round(ns(each.gap.length)), names[text]])
        panels.append(
            {
                "cpu": cpu,
                "ms": round(ns(on.watched.end - on.watched.begin) / 1e6, 3),
                "names": list(names),
                "colours": kinds,
                "marks": marks,
                "left": max(len(on.account.explained) - MOST, 0) + on.watched.count - len(on.watched.gaps),
            }
        )
    data = json.dumps(panels, separators=(",", ":")).replace("<", "\\u003c")
    what = html.escape(f"CPUs {', '.join(str(panel['cpu']) for panel in panels)}, {measured.seconds:.4g} s")
    return _PAGE.replace("@WHAT@", what).replace("@SOURCE@", html.escape(measured.source)).replace("@DATA@", data)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gaps on @WHAT@</title>
<style>
body { font: 14px sans-serif; margin: 1.5em; color: #222; background: #fff }
canvas { width: 100%; height: 260px; border: 1px solid #ccc }
ul { list-style: none; padding: 0; margin: .4em 0 1.5em }
li { display: inline-block; margin-right: 1.2em; cursor: pointer }
li.off { opacity: .3 }
i { display: inline-block; width: .8em; height: .8em; margin-right: .3em; border-radius: 2px }
#tip { position: fixed; background: #222; color: #fff; padding: .2em .5em; border-radius: 3px;
  display: none; pointer-events: none }
</style></head><body>
<h1>Gaps on @WHAT@</h1>
<p>Each mark is a time that the CPU was away from its task: when, for how long (logarithmic), and why.
Causes from @SOURCE@. Click on a cause to hide it; drag to look closer, double-click for all.</p>
<div id="all"></div><div id="tip"></div>
<script>
"use strict";
const panels = @DATA@;
const tip = document.getElementById("tip");
const show = ns => ns >= 1e9 ? (ns / 1e9).toPrecision(3) + " s" : ns >= 1e6 ? (ns / 1e6).toPrecision(3) + " ms"
  : ns >= 1e3 ? (ns / 1e3).toPrecision(3) + " us" : ns + " ns";
for (const panel of panels) {
  const box = document.createElement("div"), title = document.createElement("h2");
  const canvas = document.createElement("canvas"), list = document.createElement("ul");
  title.textContent = "CPU " + panel.cpu + ": " + panel.marks.length + " gaps" +
    (panel.left ? " (and " + panel.left + " shorter ones that are not drawn)" : "");
  box.append(title, canvas, list);
  document.getElementById("all").append(box);
  const hidden = new Set();
  let from = 0, to = panel.ms, start = null;
  const lengths = panel.marks.map(m => m[1]);
  const low = Math.log10(Math.max(lengths.reduce((a, b) => Math.min(a, b), 1e12), 1)) - .1;
  const high = Math.log10(Math.max(lengths.reduce((a, b) => Math.max(a, b), 10), 10)) + .1;
  const left = 60, bottom = 24;
  const x = (ms, w) => left + (ms - from) / (to - from) * (w - left - 8);
  const y = (ns, h) => (h - bottom) - (Math.log10(ns) - low) / (high - low) * (h - bottom - 8);
  const draw = () => {
    const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    canvas.width = w * ratio; canvas.height = h * ratio;
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    c.font = "11px sans-serif";
    for (let power = Math.ceil(low); power <= high; power++) {
      const at = y(10 ** power, h);
      c.fillStyle = "#eee"; c.fillRect(left, at, w - left, 1);
      c.fillStyle = "#555"; c.fillText(show(10 ** power), 4, at + 4);
    }
    for (let i = 0; i <= 8; i++) {
      const ms = from + (to - from) * i / 8;
      c.fillStyle = "#555"; c.fillText(ms.toPrecision(4) + " ms", Math.min(x(ms, w), w - 60), h - 6);
    }
    for (const [ms, ns, name] of panel.marks) {
      if (hidden.has(name) || ms + ns / 1e6 < from || ms > to) continue;
      c.fillStyle = panel.colours[name];
      const begin = Math.max(x(ms, w), left), top = y(ns, h);
      c.fillRect(begin, top, Math.max(x(ms + ns / 1e6, w) - begin, 2), Math.max(h - bottom - top, 2));
    }
    if (start !== null && start.now !== undefined) {
      c.fillStyle = "rgba(0,0,255,.1)";
      c.fillRect(start.at, 0, start.now - start.at, h);
    }
  };
  panel.names.forEach((name, number) => {
    const item = document.createElement("li"), mark = document.createElement("i");
    mark.style.background = panel.colours[number];
    item.append(mark, name + " (" + panel.marks.filter(m => m[2] === number).length + ")");
    item.onclick = () => {
      hidden.has(number) ? hidden.delete(number) : hidden.add(number);
      item.classList.toggle("off");
      draw();
    };
    list.append(item);
  });
  const time = px => from + (px - left) / (canvas.clientWidth - left - 8) * (to - from);
  canvas.onmousedown = e => { start = { at: e.offsetX }; };
  canvas.onmouseup = e => {
    if (start !== null && Math.abs(e.offsetX - start.at) > 5) {
      const [a, b] = [time(start.at), time(e.offsetX)].sort((p, q) => p - q);
      from = Math.max(a, 0); to = Math.min(b, panel.ms);
    }
    start = null; draw();
  };
  canvas.ondblclick = () => { from = 0; to = panel.ms; draw(); };
  canvas.onmouseleave = () => { tip.style.display = "none"; start = null; };
  canvas.onmousemove = e => {
    if (start !== null) { start.now = e.offsetX; draw(); }
    const at = time(e.offsetX), near = (to - from) / canvas.clientWidth * 4;
    let best = null;
    for (const mark of panel.marks) {
      const under = at > mark[0] - near && at < mark[0] + mark[1] / 1e6 + near;
      if (under && !hidden.has(mark[2]) && (!best || mark[1] > best[1])) best = mark;
    }
    tip.style.display = best ? "block" : "none";
    if (best) {
      tip.textContent = show(best[1]) + " at " + best[0].toFixed(3) + " ms: " + panel.names[best[2]];
      tip.style.left = Math.min(e.clientX + 12, window.innerWidth - 320) + "px"; tip.style.top = e.clientY + 12 + "px";
    }
  };
  window.addEventListener("resize", draw);
  draw();
}
</script></body></html>
"""

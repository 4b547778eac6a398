"""The picture of the README: `python -m tests.reference.gaps PAGE FILE` draws a page of `quiet noise --timeline`."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 800, 240, 60, 30, 40
SHORTEST_NS = 10


def picture(page: str) -> str:
    """An SVG of the first CPU: time from left to right, the length of each gap (logarithmic) from below."""
    start = page.index("const panels = ") + len("const panels = ")
    panel = json.JSONDecoder().raw_decode(page, start)[0][0]
    longest = max(mark[1] for mark in panel["marks"])
    decades = math.log10(longest / SHORTEST_NS)

    def x(ms: float) -> float:
        return LEFT + ms / panel["ms"] * (WIDTH - LEFT - 10)

    def y(ns: float) -> float:
        return HEIGHT - BOTTOM - math.log10(max(ns, SHORTEST_NS) / SHORTEST_NS) / decades * (HEIGHT - BOTTOM - TOP)

    base = y(SHORTEST_NS)
    marks = "".join(
        f'<rect x="{x(at):.1f}" y="{y(ns):.1f}" width="{max(x(at + ns / 1e6) - x(at), 1):.1f}" '
        f'height="{base - y(ns):.1f}" fill="{panel["colours"][cause]}"/>\n'
        for at, ns, cause in panel["marks"]
    )
    scale = "".join(
        f'<text x="{LEFT - 6}" y="{y(ns) + 4:.0f}" text-anchor="end">{label}</text>\n'
        for ns, label in ((10, "10 ns"), (1e3, "1 us"), (1e5, "100 us"), (1e7, "10 ms"))
        if ns <= longest
    )
    names = "".join(
        f'<rect x="{LEFT + 150 * i}" y="8" width="10" height="10" fill="{colour}"/>'
        f'<text x="{LEFT + 150 * i + 15}" y="17">{name}</text>\n'
        for i, (name, colour) in enumerate(zip(panel["names"], panel["colours"], strict=True))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n{names}{scale}{marks}'
        f'<path d="M{LEFT} {base:.0f}H{WIDTH - 10}" stroke="#222"/>\n'
        f'<text x="{LEFT}" y="{HEIGHT - 20}">0</text>'
        f'<text x="{WIDTH - 10}" y="{HEIGHT - 20}" text-anchor="end">{panel["ms"]:.0f} ms</text>\n</svg>\n'
    )


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(picture(Path(sys.argv[1]).read_text()))

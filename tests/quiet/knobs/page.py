"""The rows of docs/knobs.md, from the knobs and the profiles: `python -m tests.quiet.knobs.page` writes them again.

Only the last column (which other tools have a knob) and the order of the rows are the page's own.
"""

from __future__ import annotations

import re

from quiet.boot.parameters.cmdline import name
from quiet.boot.parameters.parameter import BootParameter
from quiet.boot.parameters.registry import PARAMETERS
from quiet.knobs.effects import effect_seen
from quiet.knobs.knob import Knob
from quiet.knobs.registry import BY_NAME
from quiet.settings.profile import Profile, load
from tests import CHECKOUT

FILE = CHECKOUT / "docs" / "knobs.md"
PROFILES = ("as-is", "bench", "strict")
RUN_TIME, BOOT = "At run time", "On the kernel command line"
_ROW = re.compile(r"^\| `([^`]+)` \|.*\| ([^|]*) \|$")


def knob_row(knob: Knob, also: str) -> str:
    """One row of the tables of knobs. `also`: the other tools that have it."""
    choices = [load(profile).knobs[knob.name] for profile in PROFILES]
    paths = ", ".join(f"`{path}`" for path in knob.paths.split(", "))
    cells = [f"`{knob.name}`", knob.title, paths, knob.kernels, *choices, effect_seen(knob) or "not measured yet", also]
    return line(cells)


def boot_row(item: BootParameter) -> str:
    """One row of the table of kernel parameters."""
    return line([f"`{item.name}`", item.why, *(_at_boot(load(profile), item.name) for profile in PROFILES)])


def _at_boot(profile: Profile, parameter: str) -> str:
    words = [word for word in profile.boot if name(word) == name(parameter)]
    return f"`{words[0]}`" if words else ""


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def part(page: str, heading: str) -> str:
    """The text below a heading, without later parts."""
    return page.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def written(page: str) -> str:
    """The page with every row as the code has it now."""
    knobs, boot = part(page, RUN_TIME), part(page, BOOT)
    page = page.replace(knobs, "\n".join(_known(each) for each in knobs.split("\n")))
    rows = [each for each in boot.split("\n") if _ROW.match(each)]
    return page.replace("\n".join(rows), "\n".join(map(boot_row, PARAMETERS)))


def _known(text: str) -> str:
    found = _ROW.match(text)
    return knob_row(BY_NAME[found[1]], found[2]) if found and found[1] in BY_NAME else text


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text()))

"""Read the bundled fragments of kernel configurations; kernel-configs/README.md describes their format."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quiet.errors import UsageError

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "kernel-configs")
NAMES = ("isolation", "cgroup", "tracing", "cpufreq", "resctrl", "memory", "network", "tools", "debug")
LAB = "lab"  # only for a kernel that boots in an emulator
_SET = re.compile(r"(CONFIG_\w+)=(.+)")
_OFF = re.compile(r"# (CONFIG_\w+) is not set")
_WORD = re.compile(r"# (shows|may show|only|also): (.+)")
_COST = re.compile(r": (without|with it),? ")


class OptionEvidence(NamedTuple):
    """A file that exists if the kernel has the option, and a word in the file ("" if the file alone is evidence).

    `sure`: a missing file or word proves that the option is off.
    """

    path: str
    word: str
    sure: bool


class Option(NamedTuple):
    """One line of a fragment. `wanted` is "y" or "n"; `names`: the option's names in other kernel versions."""

    fragment: str
    name: str
    wanted: str
    why: str
    cost: str
    names: tuple[str, ...]
    only: str  # the only architecture that has the option, "" for all
    evidence: tuple[OptionEvidence, ...]


def load(wanted: Sequence[str] = ()) -> list[Option]:
    """The options of these fragments, by default of all but `lab`. Raises UsageError for an unknown name."""
    for name in wanted:
        if name not in (*NAMES, LAB):
            raise UsageError(f"{name}: no such fragment; known fragments: {', '.join(NAMES)}")
    return [option for name in wanted or NAMES for option in parse(name, text(f"{name}.config"))]


def text(file: str) -> str:
    """The text of a file in the directory kernel-configs."""
    with open(os.path.join(_FOLDER, file), encoding="utf-8") as opened:
        return opened.read()


def command_line(name: str) -> str:
    """The parameters in a command-line file of the directory kernel-configs, without the reasons for them."""
    lines = text(f"{name}.cmdline").splitlines()
    return " ".join(line for line in lines if line and not line.startswith("#"))


def parse(fragment: str, content: str) -> Iterator[Option]:
    """Yield the options of a fragment. A comment applies to the options up to the next comment or blank line."""
    reason, words, fresh = "", list[tuple[str, str]](), True
    for line in content.splitlines():
        if match := _SET.fullmatch(line) or _OFF.fullmatch(line):
            yield _option(fragment, match[1], match[2] if match.lastindex == 2 else "n", reason, words)
            fresh = True
        elif not line:
            reason, words, fresh = "", [], True
        elif word := _WORD.fullmatch(line):
            words, fresh = ([] if fresh and not reason else words) + [(word[1], word[2])], False
        elif line.startswith("# "):
            reason, words = (line[2:], []) if fresh else (f"{reason} {line[2:]}", words)
            fresh = False


def _option(fragment: str, name: str, wanted: str, reason: str, words: list[tuple[str, str]]) -> Option:
    cut = _COST.search(reason)
    why, cost = (reason[: cut.start()], reason[cut.end() :]) if cut else (reason, "")
    values = {key: value.split() for key, value in words if key in ("only", "also")}
    shown = [(key, *value.split()) for key, value in words if key not in values]
    evidence = tuple(OptionEvidence(path, "".join(word), key == "shows") for key, path, *word in shown)
    return Option(
        fragment, name, wanted, why, cost, tuple(values.get("also", ())), "".join(values.get("only", ())), evidence
    )

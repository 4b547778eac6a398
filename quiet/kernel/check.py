"""Which options of the fragments a kernel has: by its configuration, else by what they bring."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quiet.host.reader import Reader
from quiet.kernel.config import Config
from quiet.kernel.fragments import Option, OptionEvidence

ASKED = "kernel-options"
"""In a recording: what the options bring was looked for. Without it, what is not in the recording may yet be there."""
THERE, MISSING, UNKNOWN, ELSEWHERE = "there", "missing", "unknown", "other architecture"


@dataclass(frozen=True, slots=True)
class OptionState:
    """One option: its state, the value found (None: not in the configuration), and where it was seen."""

    option: Option
    state: str
    found: str | None
    by: str


def check(options: Iterable[Option], config: Config, reader: Reader | None) -> list[OptionState]:
    """The state of each option; `reader` is the host that runs the kernel, None when it runs nowhere."""
    architecture = config.architecture or (_architecture(reader) if reader else "")
    return [_answer(option, config, architecture, reader) for option in options]


def _answer(option: Option, config: Config, architecture: str, reader: Reader | None) -> OptionState:
    if option.only and architecture and option.only != architecture:
        return OptionState(option, ELSEWHERE, None, f"only on {option.only}")
    if config.values:
        for name in (option.name, *option.names):
            if config.values.get(name, "n") != "n":
                found = config.values[name]
                return OptionState(option, MISSING if option.wanted == "n" else THERE, found, f"{name}={found}")
        state = THERE if option.wanted == "n" else MISSING
        return OptionState(option, state, config.values.get(option.name), f"not in {config.source}")
    sure = reader is not None and reader.asked(ASKED, lambda: "yes") is not None
    for evidence in option.evidence if reader else ():
        assert reader
        seen = _seen(evidence, reader)
        if seen:
            where = f"{evidence.path} has {evidence.word}" if evidence.word else evidence.path
            return OptionState(option, THERE, None, where)
        sure = sure and seen is False
    if option.evidence and sure and option.wanted == "y":
        return OptionState(option, MISSING, None, f"no {option.evidence[0].path}")
    return OptionState(option, UNKNOWN, None, "")


def _seen(evidence: OptionEvidence, reader: Reader) -> bool | None:
    """Whether what the option brings is there; None when its absence would say nothing, or cannot be seen."""
    path, word = evidence.path, evidence.word
    if word:
        text = reader.text(path)
        there = None if text is None else word in text.split()
    else:
        # the folder is looked at too: a file system that is not mounted, or not ours to read, tells nothing
        there = reader.exists(path) or (False if reader.names(path.rpartition("/")[0]) else None)
    return True if there else there if evidence.sure else None


def _architecture(reader: Reader) -> str:
    text = reader.text("/proc/cpuinfo") or ""
    return "x86" if "vendor_id" in text else "arm64" if "CPU implementer" in text else ""

"""Check a kernel for the fragments' options, from its configuration or from the files that the options create."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quiet.host.reader import Reader
from quiet.kernel.config import Config
from quiet.kernel.fragments import Option, OptionEvidence

ASKED = "kernel-options"
"""A recording with this answer includes the files that prove options; in any other, a missing file proves nothing."""
THERE, MISSING, UNKNOWN, ELSEWHERE = "there", "missing", "unknown", "other architecture"


class OptionState(NamedTuple):
    """One option: its state, its value (None: not in the configuration), and the evidence (None: no evidence)."""

    fragment: str
    option: str
    state: str
    wanted: str
    found: str | None
    seen: str | None
    why: str
    cost: str


class KernelReport(NamedTuple):
    """The state of the checked options of a kernel. `missing`, `unknown`: the number of such options.

    `kernel`: its release, None if only a configuration file was checked; `source`: the file with its configuration,
    None if there is none; `complete`: no option is missing or unknown.
    """

    kernel: str | None
    source: str | None
    complete: bool
    missing: int
    unknown: int
    options: tuple[OptionState, ...]

    def of(self, state: str) -> list[OptionState]:
        """The options whose state is `state`."""
        return in_state(self.options, state)


class KernelSummary(NamedTuple):
    """The summary in `quiet status`: the number of options that the kernel has, and the missing and unknown ones."""

    source: str | None
    there: int
    missing: tuple[str, ...]
    unknown: tuple[str, ...]


def in_state(options: Iterable[OptionState], state: str) -> list[OptionState]:
    """The options whose state is `state`."""
    return [option for option in options if option.state == state]


def report(options: Iterable[Option], config: Config, reader: Reader | None) -> KernelReport:
    """Check options. `reader` is the host that runs the kernel; None: the configuration is another kernel's."""
    states = check(options, config, reader)
    missing, unknown = (len(in_state(states, state)) for state in (MISSING, UNKNOWN))
    version = reader.text("/proc/sys/kernel/osrelease") if reader else None
    return KernelReport(version, config.source or None, not missing and not unknown, missing, unknown, tuple(states))


def summary(checked: KernelReport) -> KernelSummary:
    """Summarize a report for `quiet status`."""
    missing, unknown = (tuple(option.option for option in checked.of(state)) for state in (MISSING, UNKNOWN))
    return KernelSummary(checked.source, len(checked.of(THERE)), missing, unknown)


def check(options: Iterable[Option], config: Config, reader: Reader | None) -> list[OptionState]:
    """The state of each option; `reader` is the host that runs the kernel, None for another kernel's configuration."""
    architecture = config.architecture or (_architecture(reader) if reader else "")
    states = []
    for option in options:
        state, value, seen = _state(option, config, architecture, reader)
        states.append(
            OptionState(option.fragment, option.name, state, option.wanted, value, seen, option.why, option.cost)
        )
    return states


def _state(
    option: Option, config: Config, architecture: str, reader: Reader | None
) -> tuple[str, str | None, str | None]:
    """An option's state, its value, and the evidence."""
    if option.only and architecture and option.only != architecture:
        return ELSEWHERE, None, f"only on {option.only}"
    if config.values:
        for name in (option.name, *option.names):
            if config.values.get(name, "n") != "n":
                value = config.values[name]
                return MISSING if option.wanted == "n" else THERE, value, f"{name}={value}"
        state = THERE if option.wanted == "n" else MISSING
        return state, config.values.get(option.name), f"not in {config.source}"
    sure = reader is not None and reader.asked(ASKED, lambda: "yes") is not None
    for evidence in option.evidence if reader else ():
        assert reader
        seen = _seen(evidence, reader)
        if seen:
            return THERE, None, f"{evidence.path} has {evidence.word}" if evidence.word else evidence.path
        sure = sure and seen is False
    if option.evidence and sure and option.wanted == "y":
        return MISSING, None, f"no {option.evidence[0].path}"
    return UNKNOWN, None, None


def _seen(evidence: OptionEvidence, reader: Reader) -> bool | None:
    """Whether the evidence exists; None if the evidence cannot be read, or its absence proves nothing."""
    path, word = evidence.path, evidence.word
    if word:
        text = reader.text(path)
        there = None if text is None else word in text.split()
    else:
        # read the directory too: if the file system is not mounted or not readable, a missing file proves nothing
        there = reader.exists(path) or (False if reader.names(path.rpartition("/")[0]) else None)
    return True if there else there if evidence.sure else None


def _architecture(reader: Reader) -> str:
    text = reader.text("/proc/cpuinfo") or ""
    return "x86" if "vendor_id\t" in text else "arm64" if "CPU implementer" in text else ""

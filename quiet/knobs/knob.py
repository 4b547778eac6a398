"""Define the type of a knob, which describes one setting of the host.

A rule turns a context (facts, selected CPUs, the profile's choice for this knob) into wanted values or skips. plan.py,
apply.py and restore.py in quiet/settings handle all knobs in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple, TypedDict

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.targets import value_types


class DesiredValue(NamedTuple):
    """A target and the value that it should have; `why`: the reason, if it differs from the knob's."""

    target: str
    wanted: str
    why: str = ""
    creates: bool = False  # the target may not exist yet
    current: str | None = None  # its value, if the rule has just read it
    label: str = ""  # the object behind the target's number
    kind: str = ""  # the kind of value (value_types), if different from the knob's
    absent: str = "does not exist"  # the reason for the skip if the target does not exist


class Skip(NamedTuple):
    """A target that is left unchanged, with the reason."""

    target: str
    reason: str
    label: str = ""  # the object behind the target's number


class RuleContext(NamedTuple):
    """The input of a rule: the facts, the CPUs, and the profile's choice."""

    facts: Facts
    cpus: CpuPartition
    choice: str
    names: Mapping[str, tuple[str, ...]] = {}  # the profile's lists: units to stop, units to keep

    def text(self, path: str) -> str | None:
        """The content of a file of the host; None if it does not exist or cannot be read."""
        return self.facts.reader.text(path)

    def files(self, paths: Iterable[str]) -> list[str]:
        """The files among these that exist, as targets (`file:PATH`)."""
        return [f"file:{path}" for path in paths if self.facts.reader.exists(path)]


def moved_away(context: RuleContext, allowed: CpuSet) -> CpuSet:
    """A mask without the isolated and offline CPUs; the housekeeping CPUs if removing these leaves no online CPU."""
    stay = allowed - context.cpus.away
    if stay == allowed or stay & context.facts.online:
        return stay
    return context.cpus.housekeeping


def housekeeping_mask(context: RuleContext, current: str) -> str:
    """The CPU mask `current` in the kernel's notation, without the isolated and offline CPUs; see moved_away()."""
    return cpulist.format_mask(moved_away(context, cpulist.parse_mask(current)))


Trigger = Literal["", "service", "task", "device"]
RuleResult = Iterable[DesiredValue | Skip]
Reason = str | Callable[[Facts], str]  # as text, or determined on the host
Rule = Callable[[RuleContext], RuleResult]
NOT_HERE = "this kernel does not have this setting"


def offered(context: RuleContext, path: str, wanted: str, choices: str) -> DesiredValue | Skip:
    """The wanted value of a file; a skip if the file `choices` lists values, but not the wanted one."""
    listed = (context.text(choices) or "").split()
    if listed and wanted not in listed:
        return Skip(f"file:{path}", f"'{wanted}' is not offered, only {' '.join(listed)}")
    return DesiredValue(f"file:{path}", wanted, absent="this driver does not have this setting")


Gain = Literal[
    "no other tasks",
    "no interrupts of devices",
    "a steady clock frequency",
    "no wake-up from deep idle states",
    "less background work of the kernel",
    "repeatable memory behavior",
]


class Knob(NamedTuple):
    """One setting. `after`: the knobs that must be written before this knob, both to apply and to restore."""

    name: str
    title: str
    why: str
    doc: str
    rule: Rule
    kind: str = value_types.TEXT
    choices: tuple[str, ...] = ("quiet", "leave")
    numeric: bool = False  # the profile may also set a number
    units: Callable[[str], int | None] = lambda text: None  # converts text such as "2.4 GHz" to a number
    lists: bool = False  # the profile may also set a list, such as "0-1"
    targets: str = ""  # for `explain`: the targets of this knob
    recheck_on: Trigger = (
        ""  # the event after which `quiet watch` checks this knob again: a new service, task or device
    )
    after: tuple[str, ...] = ()
    clamps: bool = False  # the kernel may store a value that differs from the written one; this is accepted
    atomic: bool = False  # all targets or none: if one is rejected, the others are undone
    needs: str = ""  # an atomic knob without which this one has no effect or does harm
    restore_last: bool = False  # restoring it earlier would disturb other targets
    drifts: bool = False  # the kernel changes the value itself, so a difference is not another program's change
    refusals: Mapping[int, str] = {}  # errno -> the reason why a rejection is legitimate
    # the kernel's reason -> its explanation, for writes that the kernel accepts and then reports as not in effect
    verdicts: Mapping[str, Reason] = {}
    # targets that the kernel changes as a side effect
    entangled: Callable[[RuleContext], Iterable[str]] = lambda context: ()
    moves: str = ""  # a description of these targets, for `explain`
    risk: str = ""
    gain: Gain = "less background work of the kernel"  # the benefit for the isolated CPUs, for the summary of a plan
    noticed: str = ""  # side effects for others on the machine while it is applied, in a few words
    kernels: str = ""  # kernel releases in which it exists or works; "" for all from 6.1
    path: str = ""  # the kernel's file or call, if no target names it
    effect: str = ""  # the measured effect, with kernel and machine; "" if it is in effects.toml or was not measured

    @property
    def paths(self) -> str:
        """The setting's name in kernel documents: its file or call."""
        files = (name.rstrip(",;:") for name in re.findall(r"file:(/\S+)", self.targets))
        return self.path or ", ".join(files) or re.split(r"[,; ]", self.targets)[0]


class FileFields(TypedDict):
    """The fields of a knob that sets one file: `Knob(name=..., **one_file(...))`."""

    rule: Rule
    kind: str
    numeric: bool
    targets: str


def derived(
    path: str,
    value: Callable[[RuleContext, str], str | None],
    absent: str = NOT_HERE,
    kind: str = value_types.NUMBER,
    numeric: bool = False,
) -> FileFields:
    """The fields of a knob with one file whose wanted value is computed from the current value.

    `value` returns None if the current value is already quiet; `absent`: the reason for the skip if the file does not
    exist.
    """

    def rule(context: RuleContext) -> RuleResult:
        current = context.text(path)
        if current is None:
            yield Skip(f"file:{path}", absent)
        elif (wanted := value(context, current)) is not None:
            yield DesiredValue(f"file:{path}", wanted, current=current)

    return {"rule": rule, "kind": kind, "numeric": numeric, "targets": f"file:{path}"}


def one_file(path: str, quiet: str, absent: str = NOT_HERE, kind: str = value_types.NUMBER) -> FileFields:
    """The fields of a knob with one file: the choice "quiet" writes `quiet`; any other choice is written as is."""
    return derived(path, lambda context, now: quiet if context.choice == "quiet" else context.choice, absent, kind)


def at_least(path: str, quiet: int, absent: str = NOT_HERE, never: int | None = None) -> FileFields:
    """The fields of a knob with one file whose number should be at least `quiet`.

    `never`: the number that disables the activity, which is accepted as quiet too.
    """
    return bounded(path, quiet, absent, lambda now: now >= quiet or now == never)


def bounded(path: str, quiet: int, absent: str, enough: Callable[[int], bool]) -> FileFields:
    """The fields of a knob with one file whose number should be `quiet`, unless `enough` accepts the current number.

    If the profile's choice is not "quiet", the choice itself is written.
    """

    def value(context: RuleContext, current: str) -> str | None:
        if context.choice != "quiet":
            return context.choice
        return None if current.removeprefix("-").isdecimal() and enough(int(current)) else str(quiet)

    return derived(path, value, absent, numeric=True)

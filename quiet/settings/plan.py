"""Build the plan: every change from the current to the wanted value, and every skip with its reason. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

from quiet.console import table_html
from quiet.host.reader import Reader
from quiet.knobs.knob import Knob, RuleContext, Skip
from quiet.knobs.registry import KNOBS
from quiet.machine import virtualization, write_access
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.settings.profile import Profile
from quiet.targets import registry, value_types


class Change(NamedTuple):
    """A planned write. `current`: the value as the kernel prints it, None if the target will be created."""

    knob: str
    target: str
    current: str | None
    wanted: str
    why: str
    kind: str
    label: str = ""  # the object behind the target's number: an interrupt's device, a task's name


class Skipped(NamedTuple):
    """A target that the plan does not change, with the reason."""

    knob: str
    target: str
    reason: str
    label: str = ""


Targets = tuple[tuple[str, str], ...]  # (knob, target)


class Plan:
    """Everything that `apply` would do, in order.

    `profile`: the profile's name; `missing_boot`: kernel parameters of the profile that the running kernel was booted
    without; `in_container`: whether only the container's host can set them.
    """

    def __init__(
        self,
        profile: str,
        cpus: CpuPartition,
        changes: tuple[Change, ...],
        skips: tuple[Skipped, ...],
        missing_boot: tuple[str, ...],
        disturbed: Callable[[], Targets],
        in_container: bool = False,
    ) -> None:
        self.profile, self.cpus, self.changes, self.skips = profile, cpus, changes, skips
        self.missing_boot, self.in_container = missing_boot, in_container
        self._disturbed = disturbed

    def _repr_html_(self) -> str:
        return table_html(f"profile {self.profile}: changes", Change._fields[:5], (c[:5] for c in self.changes))

    @cached_property
    def entangled(self) -> Targets:
        """The targets that the kernel may change as a side effect of these changes.

        Computed on demand, because only commands that write need them.
        """
        return self._disturbed()


def make(
    reader: Reader,
    profile: Profile,
    cpus: CpuPartition,
    settled: Mapping[str, str] | None = None,
    refused: Mapping[str, str] | None = None,
    facts: Facts | None = None,
) -> Plan:
    """Compare the host with the profile and return the plan.

    `settled`: the values that the kernel substituted in an earlier apply, by target; `refused`: the reasons for the
    kernel's rejections, by target. The plan skips these targets (those in `settled` only while they still have the
    substituted value).
    """
    facts = facts or Facts(reader)
    changes: list[Change] = []
    skips: list[Skipped] = []
    changed: list[tuple[Knob, RuleContext]] = []
    taken_back: set[str] = set()
    outside = write_access.whole(facts)
    closed = None if outside else write_access.read_only_mounts(facts)
    for knob in KNOBS:
        choice = profile.knobs.get(knob.name, "leave")
        if choice == "leave":
            continue
        scene = RuleContext(facts, cpus, choice, profile.services)
        before, skipped = len(changes), len(skips)
        _compare(reader, knob, scene, settled or {}, refused or {}, closed, changes, skips)
        if outside and len(changes) > before:
            more = len(changes) - before - 1
            skips.append(Skipped(knob.name, changes[before].target, outside, f"and {more} more" if more else ""))
            del changes[before:]
        if knob.atomic and any(skip.target in (refused or {}) for skip in skips[skipped:]):
            taken_back.add(knob.name)
        if knob.needs in taken_back:
            reason = f"requires the knob {knob.needs}, which the kernel refused"
            skips += [Skipped(c.knob, c.target, reason, c.label) for c in changes[before:]]
            del changes[before:]
        if len(changes) > before:
            changed.append((knob, scene))
    missing = profile.missing_boot(facts, cpus)

    def disturbed() -> Targets:
        return tuple((knob.name, target) for knob, scene in changed for target in knob.entangled(scene))

    inside = bool(virtualization.container(facts))
    return Plan(profile.name, cpus, tuple(changes), tuple(skips), missing, disturbed, inside)


def _compare(
    reader: Reader,
    knob: Knob,
    scene: RuleContext,
    settled: Mapping[str, str],
    refused: Mapping[str, str],
    closed: write_access.ReadOnlyMounts | None,
    changes: list[Change],
    skips: list[Skipped],
) -> None:
    for item in knob.rule(scene):
        if isinstance(item, Skip):
            skips.append(Skipped(knob.name, item.target, item.reason, item.label))
            continue
        kind = item.kind or knob.kind
        current = item.current if item.current is not None else registry.get(reader, item.target)
        if current is None and not item.creates:
            skips.append(Skipped(knob.name, item.target, item.absent))
        elif value_types.same(kind, current, item.wanted):
            continue
        elif item.target in refused:
            skips.append(Skipped(knob.name, item.target, refused[item.target], item.label))
        elif item.target in settled and value_types.same(kind, current, settled[item.target]):
            skips.append(Skipped(knob.name, item.target, f"the kernel stores {current} instead of {item.wanted}"))
        elif closed and (reason := write_access.why_not(closed, reader, item.target)):
            skips.append(Skipped(knob.name, item.target, reason, item.label))
        else:
            why = item.why or knob.why
            changes.append(Change(knob.name, item.target, current, item.wanted, why, kind, item.label))

"""List the files whose change may mean drift: files of all targets of the applied profile, and cgroups of services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quiet.host.lock import FOLDER
from quiet.host.reader import Reader
from quiet.knobs.knob import DesiredValue, RuleContext, Trigger
from quiet.knobs.registry import KNOBS
from quiet.machine.facts import CPU, Facts
from quiet.settings.applied_state import AppliedState
from quiet.settings.profile import Profile
from quiet.targets import registry

_SERVICES = tuple(f"/sys/fs/cgroup/{name}system.slice" for name in ("", "systemd/", "unified/"))
JOURNAL = FOLDER
CPUS = "cpus"  # not a knob: CPUs of the profile that have gone offline


def files(reader: Reader, targets: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The files that are written when knobs drift, with the names of these knobs. `targets`: (knob, target) pairs."""
    knobs: dict[str, set[str]] = {}
    for knob, target in targets:
        for path in registry.watched_files(reader, target):
            knobs.setdefault(path, set()).add(knob)
    return knobs


def folders() -> dict[str, set[str]]:
    """The directories in which the cgroup of a service appears, with the names of the affected knobs."""
    return {path: rechecked_on("service") for path in _SERVICES}


def rechecked_on(trigger: Trigger) -> set[str]:
    """The knobs that must be checked again after a trigger: "service" or "task" (one starts), or "device" (a device
    appears or disappears, or a network interface changes).
    """
    return {knob.name for knob in KNOBS if knob.recheck_on == trigger}


def targets(profile: Profile, state: AppliedState, facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield (knob, target) for each recorded target, each target that the rules name, and the isolated CPUs.

    The rules of knobs that move tasks are omitted.
    """
    yield from ((entry.knob, entry.target) for entry in state.entries.values())
    chosen = {name: choice for name, choice in profile.knobs.items() if choice != "leave"}
    for knob in KNOBS:
        if knob.name in chosen and knob.name not in rechecked_on("task"):
            items = knob.rule(RuleContext(facts, state.cpus, chosen[knob.name], profile.services))
            yield from ((knob.name, item.target) for item in items if isinstance(item, DesiredValue))
    yield from ((CPUS, f"file:{CPU}/cpu{cpu}/online") for cpu in sorted(state.cpus.isolated))


def interrupts(profile: Profile, facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield (knob, target) for every interrupt, because the knob's rule names only interrupts with wrong CPUs."""
    if profile.knobs.get("irq", "leave") != "leave":
        yield from (("irq", f"irq:{number}") for number in facts.irqs)

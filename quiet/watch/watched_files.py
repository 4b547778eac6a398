"""The files whose change means drift: those of every target of the applied profile, and the cgroups of services."""

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
CPUS = "cpus"  # not a knob: CPUs of the profile that are no longer online


def files(reader: Reader, targets: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The knobs by the files that are written when they drift; `targets`: knobs with their targets."""
    knobs: dict[str, set[str]] = {}
    for knob, target in targets:
        for path in paths(reader, target):
            knobs.setdefault(path, set()).add(knob)
    return knobs


def folders() -> dict[str, set[str]]:
    """The knobs by the folders in which a service's cgroup appears."""
    return {path: services() for path in _SERVICES}


def services() -> set[str]:
    """The knobs that stop or hold services."""
    return _rechecked_on("service")


def tasks() -> set[str]:
    """The knobs that move tasks."""
    return _rechecked_on("task")


def devices() -> set[str]:
    """The knobs that a device's appearance concerns first: those of interrupts and of the network."""
    return _rechecked_on("device")


def _rechecked_on(trigger: Trigger) -> set[str]:
    return {knob.name for knob in KNOBS if knob.recheck_on == trigger}


def targets(profile: Profile, state: AppliedState, facts: Facts) -> Iterator[tuple[str, str]]:
    """Every knob of the applied profile with each of its targets, but for tasks and interrupts."""
    yield from ((entry.knob, entry.target) for entry in state.entries.values())
    chosen = {name: choice for name, choice in profile.knobs.items() if choice != "leave"}
    for knob in KNOBS:
        if knob.name in chosen and knob.name not in tasks():
            items = knob.rule(RuleContext(facts, state.cpus, chosen[knob.name], profile.services))
            yield from ((knob.name, item.target) for item in items if isinstance(item, DesiredValue))
    yield from ((CPUS, f"file:{CPU}/cpu{cpu}/online") for cpu in sorted(state.cpus.isolated))


def interrupts(profile: Profile, facts: Facts) -> Iterator[tuple[str, str]]:
    """Every interrupt: the knob's rule names only those that are not where they should be."""
    if profile.knobs.get("irq", "leave") != "leave":
        yield from (("irq", f"irq:{number}") for number in facts.irqs)


def paths(reader: Reader, target: str) -> list[str]:
    """The files of a target that other programs may write."""
    kind, name = registry.split(target)
    match kind:
        case "file":
            return [name]
        case "irq":
            return [f"/proc/irq/{name}/smp_affinity_list", f"/proc/irq/{name}/smp_affinity"]
        case "workqueue":
            return [registry.workqueue_path(name)]
        case "cgroup":
            mount = registry.cgroup_mount(reader)[1]
            parent, _, leaf = name.rpartition("/")
            return [f"{mount}{parent}/cgroup.subtree_control"] if leaf.startswith("+") else [mount + name]
        case "net":
            return [f"/sys/class/net/{name}"]  # where it is a file: changes by netlink have no notification
        case _:
            return []

"""Which files tell of drift: those of every target of the applied profile, and where services show themselves."""

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


def files(reader: Reader, wanted: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The knobs by the files that are written when they drift; `wanted`: knobs and their targets."""
    found: dict[str, set[str]] = {}
    for knob, target in wanted:
        for path in paths(reader, target):
            found.setdefault(path, set()).add(knob)
    return found


def folders() -> dict[str, set[str]]:
    """The knobs by the folders in which something comes: a service's cgroup."""
    return {path: services() for path in _SERVICES}


def services() -> set[str]:
    """The knobs that hold off programs."""
    return _rechecked_on("service")


def tasks() -> set[str]:
    """The knobs that move tasks."""
    return _rechecked_on("task")


def devices() -> set[str]:
    """The knobs that a device's coming and going touches first of all: those of interrupts and of the network."""
    return _rechecked_on("device")


def _rechecked_on(trigger: Trigger) -> set[str]:
    return {knob.name for knob in KNOBS if knob.recheck_on == trigger}


def wanted(profile: Profile, record: AppliedState, facts: Facts) -> Iterator[tuple[str, str]]:
    """Every knob of the applied profile with each of its targets, but for tasks and interrupts."""
    yield from ((entry.knob, entry.target) for entry in record.entries.values())
    chosen = {name: choice for name, choice in profile.knobs.items() if choice != "leave"}
    for knob in KNOBS:
        if knob.name in chosen and knob.name not in tasks():
            items = knob.rule(RuleContext(facts, record.cpus, chosen[knob.name], profile.services))
            yield from ((knob.name, item.target) for item in items if isinstance(item, DesiredValue))
    yield from ((CPUS, f"file:{CPU}/cpu{cpu}/online") for cpu in sorted(record.cpus.isolated))


def interrupts(profile: Profile, facts: Facts) -> Iterator[tuple[str, str]]:
    """Every interrupt: the knob's rule names only those that are not where they should be."""
    if profile.knobs.get("irq", "leave") != "leave":
        yield from (("irq", f"irq:{number}") for number in facts.irqs)


def paths(reader: Reader, target: str) -> list[str]:
    """The files of a target that somebody may write; none for what has none."""
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
            return [f"/sys/class/net/{name}"]  # where it is a file: what is set by netlink tells nobody
        case _:
            return []

"""Which files tell of drift: those of every target of the applied profile, and where services show themselves."""

from __future__ import annotations

from collections.abc import Iterator

from quiet import targets
from quiet.facts import CPU, Facts
from quiet.host import Reader
from quiet.journal import FOLDER, Record
from quiet.knob import Scene, Want
from quiet.knobs import KNOBS
from quiet.profile import Profile

_SERVICES = tuple(f"/sys/fs/cgroup/{name}system.slice" for name in ("", "systemd/", "unified/"))
JOURNAL = FOLDER
CPUS = "cpus"  # not a knob: CPUs of the profile that are no longer online


def files(reader: Reader, profile: Profile, record: Record, facts: Facts) -> dict[str, set[str]]:
    """The knobs by the files that are written when they drift."""
    found: dict[str, set[str]] = {}
    for knob, target in _targets(profile, record, facts):
        for path in paths(reader, target):
            found.setdefault(path, set()).add(knob)
    return found


def folders() -> dict[str, set[str]]:
    """The knobs by the folders in which something comes: a service's cgroup."""
    return {path: services() for path in _SERVICES}


def services() -> set[str]:
    """The knobs that hold off programs."""
    return {knob.name for knob in KNOBS if "unit:" in knob.targets or "process:" in knob.targets}


def tasks() -> set[str]:
    """The knobs that move tasks."""
    return {knob.name for knob in KNOBS if "task:" in knob.targets or "cpuset:" in knob.targets}


def interrupts() -> set[str]:
    """The knobs that a device's coming and going touches: all but those of tasks."""
    return {knob.name for knob in KNOBS} - tasks()


def _targets(profile: Profile, record: Record, facts: Facts) -> Iterator[tuple[str, str]]:
    yield from ((entry.knob, entry.target) for entry in record.entries.values())
    wanted = {name: choice for name, choice in profile.knobs.items() if choice != "leave"}
    for knob in KNOBS:
        if knob.name in wanted and knob.name not in tasks():
            items = knob.rule(Scene(facts, record.cpus, wanted[knob.name]))
            yield from ((knob.name, item.target) for item in items if isinstance(item, Want))
    if "irq" in wanted:  # its rule names only those that are not where they should be
        yield from (("irq", f"irq:{number}") for number in facts.irqs)
    yield from ((CPUS, f"file:{CPU}/cpu{cpu}/online") for cpu in sorted(record.cpus.isolated))


def paths(reader: Reader, target: str) -> list[str]:
    """The files of a target that somebody may write; none for what has none."""
    kind, name = targets.split(target)
    match kind:
        case "file":
            return [name]
        case "irq":
            return [f"/proc/irq/{name}/smp_affinity_list", f"/proc/irq/{name}/smp_affinity"]
        case "workqueue":
            return [targets.workqueue_path(name)]
        case "cgroup":
            mount = targets.cgroup_mount(reader)[1]
            parent, _, leaf = name.rpartition("/")
            return [f"{mount}{parent}/cgroup.subtree_control"] if leaf.startswith("+") else [mount + name]
        case _:
            return []

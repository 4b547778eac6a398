"""Read the state of systemd units from files: their location, masks, enablement, and whether they run.

A running service has a cgroup. Timers, paths, sockets, and services that have exited but count as active have none:
with only files, enabled timers, paths and sockets are presumed active, and such services inactive. A Host, which apply
uses, queries systemd itself. Source: systemd.unit(5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from quiet.host.host import Host
from quiet.host.reader import Reader

RUNTIME = "/run/systemd/system"
CONTROL = "/run/systemd/system.control"
PATHS = (  # the first existing file takes effect
    *("/etc/systemd/system.control", CONTROL, "/run/systemd/transient", "/run/systemd/generator.early"),
    *("/etc/systemd/system", "/etc/systemd/system.attached", RUNTIME, "/run/systemd/system.attached"),
    *("/run/systemd/generator", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"),
    "/run/systemd/generator.late",
)
_CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
_WITHOUT_CGROUP = (".timer", ".path", ".socket")
_INSTALL = {
    "WantedBy": "{other}.wants/{name}",
    "RequiredBy": "{other}.requires/{name}",
    "UpheldBy": "{other}.upholds/{name}",
    "Alias": "{other}",
}
# the properties that name the units that stop when this unit stops
_NEEDED_BY = ("RequiredBy", "BoundBy", "ConsistsOf")


def booted(reader: Reader) -> bool:
    """Whether systemd is the init process: sd_booted(3) or, in a recorded tree, the cgroups of systemd."""
    return reader.exists(RUNTIME) or any(reader.exists(f"{root}/system.slice") for root in _CGROUPS)


def places(reader: Reader) -> list[str]:
    """The existing directories of unit files, by precedence. Their content is not listed, because it is large."""
    return [folder for folder in PATHS if reader.exists(folder)]


def files(reader: Reader, name: str, folders: Sequence[str] | None = None) -> list[str]:
    """The files of a unit, the effective one first; an instance may use its template's files.

    `folders`: see places().
    """
    names = dict.fromkeys((name, template(name)))
    where = places(reader) if folders is None else folders
    return [path for folder in where for each in names if reader.exists(path := f"{folder}/{each}")]


def template(name: str) -> str:
    """The template of an instance: "foo@.service" for "foo@bar.service"; other names are returned unchanged."""
    stem, at, rest = name.partition("@")
    return f"{stem}@.{rest.rpartition('.')[2]}" if at else name


def runs(reader: Reader, name: str) -> bool:
    """Whether a service has processes, judged by its cgroup; this needs no systemctl, and works for a recorded tree."""
    stem, at, _ = name.partition("@")
    inner = f"system-{stem.replace('-', chr(92) + 'x2d')}.slice/" if at else ""
    return any(reader.exists(f"{root}/system.slice/{inner}{name}") for root in _CGROUPS)


def state(reader: Reader, name: str, folders: Sequence[str] | None = None) -> str | None:
    """The state of a unit, such as "active enabled" or "inactive static masked"; None if there is no such unit.

    `folders`: see places(). The word "stale" means that systemd has not reloaded the unit's files since they changed.
    """
    paths = files(reader, name, folders)
    running = runs(reader, name)
    loaded = reader.unit_states() if isinstance(reader, Host) and reader.live else {}
    if not paths and not running and name not in loaded:
        return None
    texts = [reader.text(path) for path in paths]
    masked = bool(texts) and texts[0] == ""
    install = _enablement(reader, name, next(filter(None, texts), None))
    stale = False
    if loaded:
        load, active = loaded.get(name, ("", "inactive"))
        stale = bool(load) and (load == "masked") is not masked
        activity = active if active in ("active", "inactive", "failed") else "active"
    else:
        presumed = name.endswith(_WITHOUT_CGROUP) and install == "enabled" and not masked
        activity = "active" if running or presumed else "inactive"
    return " ".join(filter(None, (activity, install, "masked" if masked else "", "stale" if stale else "")))


def _enablement(reader: Reader, name: str, text: str | None) -> str:
    """A unit's enablement, roughly as `systemctl is-enabled` reports it: "enabled" if a link that its [Install] section
    requests exists, else "disabled", or "static" if it requests none; "" without the unit's text.
    """
    if text is None:
        return ""
    links = []
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if folder := _INSTALL.get(key.strip()):
            links += [folder.format(other=other, name=name) for other in value.split()]
    if any(reader.exists(f"{base}/{link}") for base in ("/etc/systemd/system", RUNTIME) for link in links):
        return "enabled"
    return "disabled" if links else "static"


def needed_by(host: Host, names: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """The active units that would stop with each of these units, directly or through another unit."""
    users: dict[str, frozenset[str]] = {}
    todo = set(names)
    while todo:
        shown = host.unit_properties(sorted(todo), _NEEDED_BY)
        users |= {name: frozenset(" ".join(shown.get(name, {}).values()).split()) for name in todo}
        todo = {each for names_of in users.values() for each in names_of} - users.keys()
    states = host.unit_states()
    whole = {}
    for name in names:
        closure, more = set[str](), {name}
        while more:
            closure |= more
            more = {each for member in more for each in users[member]} - closure
        whole[name] = frozenset(n for n in closure - {name} if states.get(n, ("", ""))[1] == "active")
    return whole

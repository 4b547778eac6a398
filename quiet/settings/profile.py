"""Read and check profiles, which select knobs and CPUs, from bundled or user TOML files. Errors name the key."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from typing import NamedTuple

from quiet import cpulist
from quiet.boot.parameters import merge
from quiet.errors import UsageError, did_you_mean
from quiet.knobs import services
from quiet.knobs.registry import BY_NAME
from quiet.machine.cpu_selection import CpuPartition, choose
from quiet.machine.facts import Facts
from quiet.noise import budgets
from quiet.noise.budgets import Budgets

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "profiles")
_MOST = 1 << 18  # maximum size of a profile, in bytes
_SECTIONS = {
    "": ("name", "summary", "cpus", "knobs", "services", "noise", "boot"),
    "cpus": ("isolated", "housekeeping", "max_cores"),
    "noise": budgets.KEYS,
    "boot": ("wanted",),
    "services": ("stop", "keep"),
}

_FOREIGN = {
    "project": "a Python project file",
    "build-system": "a Python project file",
    "tool": "a Python project file",
    "package": "a Rust package file",
    "test": "a study or gate file of cbench",
    "factor": "a screen file of cbench",
    "factors": "a screen file of cbench",
    "response": "a screen file of cbench",
}


class Profile(NamedTuple):
    """A checked profile. `knobs` maps the name of a knob to one of its choices, or to a number or list as text."""

    name: str
    summary: str
    source: str
    isolated: str
    housekeeping: str
    max_cores: int
    knobs: Mapping[str, str]
    boot: tuple[str, ...]
    budgets: Budgets = budgets.NONE
    services: Mapping[str, tuple[str, ...]] = {}  # units to stop, units to keep

    def choose(self, facts: Facts, requested: str | None = None) -> CpuPartition:
        """Select the CPUs for this host; `requested`: the value of --cpus, None if not given.

        Raises UsageError for a wrong CPU list, and Refused if no CPU can be isolated.
        """
        source = "--cpus" if requested is not None else f"profile {self.name}: cpus.isolated"
        smt = self.knobs.get("smt", "leave")
        isolated = self.isolated if requested is None else requested
        return choose(facts, isolated, smt, self.max_cores, source, self.housekeeping)

    def missing_boot(self, facts: Facts, cpus: CpuPartition) -> tuple[str, ...]:
        """The kernel parameters of the profile that work on this host, but that the running kernel was
        booted without.
        """
        return merge.missing(self.boot, cpus, facts, f"profile {self.name}: key 'boot.wanted'")


def bundled() -> list[str]:
    """The names of the profiles that come with the package."""
    return sorted(name[:-5] for name in os.listdir(_FOLDER) if name.endswith(".toml"))


def load(name: str) -> Profile:
    """Load a bundled profile by name, or a file by path. Raises UsageError, which names the file and key."""
    own = "/" in name or name.endswith(".toml")
    path = name if own else os.path.join(_FOLDER, name + ".toml")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UsageError(f"profile {name!r}: not a regular file")
            text = (file.read(_MOST + 1) or b"").decode()
    except FileNotFoundError:
        known = ", ".join(bundled())
        close = "" if own else did_you_mean(name, bundled())
        hint = (
            "no such file"
            if own
            else f"no such profile; bundled profiles: {known}; or give the path of a .toml file{close}"
        )
        raise UsageError(f"profile {name}: {hint}") from None
    except UnicodeDecodeError:
        raise UsageError(f"profile {name}: not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"profile {name}: {error.strerror}") from None
    _check_is_profile(text, name)
    return parse(text, os.path.abspath(path) if own else name, name)


def _check_is_profile(text: str, name: str) -> None:
    """Raise UsageError, which names the format, if the text belongs to another known file format."""
    heads = set(re.findall(r"^\s*\[+\s*([\w-]+)", text, re.MULTILINE))
    foreign = next((what for head, what in _FOREIGN.items() if head in heads), "")
    if text.lstrip()[:1] == "{":
        foreign = "a JSON file"
    if foreign:
        raise UsageError(f"profile {name}: this is {foreign}, not a profile; `quiet profiles` lists the bundled ones")


def parse(text: str, source: str, label: str = "") -> Profile:
    """Parse a profile from text.

    `source`: the origin of the text. Raises UsageError, which names the origin and the key.
    """
    import tomllib

    label = f"profile {label or source}"
    if len(text) > _MOST:
        raise UsageError(f"{label}: longer than {_MOST >> 10} KiB, the limit for profiles")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{label}: nested too deeply") from None
    except ValueError as error:  # such as a number with too many digits
        raise UsageError(f"{label}: {error}") from None
    return check(data, label, source)


def check(data: Mapping[str, object], label: str, name: str) -> Profile:
    """Check a profile's content and return the profile. Raises UsageError, which names the first wrong key."""
    for section, keys in _SECTIONS.items():
        table = data if not section else _table(data, section, label)
        for key in table:
            if key not in keys:
                where = f"{section}.{key}" if section else key
                raise UsageError(f"{label}: unknown key '{where}'; known keys here: {', '.join(keys)}")
    cpus = _table(data, "cpus", label)
    max_cores = cpus.get("max_cores", 4)
    if not isinstance(max_cores, int) or isinstance(max_cores, bool) or max_cores < 1:
        raise UsageError(f"{label}: key 'cpus.max_cores' must be a whole number of at least 1, not {max_cores!r}")
    sets = {key: _text(cpus, "cpus", key, "auto", label) for key in ("isolated", "housekeeping")}
    _check_cpus(sets, label)
    boot = _table(data, "boot", label).get("wanted", [])
    if not isinstance(boot, list) or not all(isinstance(item, str) for item in boot):
        raise UsageError(f"{label}: key 'boot.wanted' must be a list of kernel parameters, such as ['nosmt']")
    return Profile(
        name=_text(data, "", "name", os.path.basename(name), label),
        summary=_text(data, "", "summary", "", label),
        source=name,
        isolated=sets["isolated"],
        housekeeping=sets["housekeeping"],
        max_cores=max_cores,
        knobs=_knobs(_table(data, "knobs", label), label),
        boot=tuple(boot),
        budgets=budgets.parse(_table(data, "noise", label), f"{label}: key 'noise.{{}}'"),
        services=_services(_table(data, "services", label), label),
    )


def _services(table: Mapping[str, object], label: str) -> dict[str, tuple[str, ...]]:
    lists: dict[str, tuple[str, ...]] = {}
    for key in ("stop", "keep"):
        names = table.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise UsageError(f"{label}: key 'services.{key}' must be a list of unit names, such as ['cron.service']")
        lists[key] = tuple(names)
    try:
        services.check_names(lists["stop"], lists["keep"])
    except UsageError as error:
        raise UsageError(f"{label}: {error}") from None
    return lists


def _check_cpus(sets: Mapping[str, str], label: str) -> None:
    found = {}
    for key, text in sets.items():
        try:
            found[key] = frozenset() if text == "auto" else cpulist.parse(text)
        except UsageError as error:
            raise UsageError(f"{label}: key 'cpus.{key}': {error}") from None
        if text != "auto" and not found[key]:
            raise UsageError(f'{label}: key \'cpus.{key}\' lists no CPU; use "auto" or a list such as "2-3"')
    if both := found["isolated"] & found["housekeeping"]:
        names = cpulist.format(both)
        raise UsageError(
            f"{label}: keys 'cpus.isolated' and 'cpus.housekeeping' both list CPU {names}; each CPU can be in only one"
        )


def _table(data: Mapping[str, object], key: str, label: str) -> Mapping[str, object]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise UsageError(f"{label}: '{key}' must be a table: write [{key}] on a line of its own")
    return table


def _text(table: Mapping[str, object], section: str, key: str, default: str, label: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        where = f"{section}.{key}" if section else key
        raise UsageError(f"{label}: key '{where}' must be a string in quotes, not {value!r}")
    if not value.isprintable():
        raise UsageError(
            f"{label}: key '{section}{'.' if section else ''}{key}' contains control characters: {value!r}"
        )
    return value


def _knobs(table: Mapping[str, object], label: str) -> dict[str, str]:
    knobs: dict[str, str] = {}
    for name, written in table.items():
        knob = BY_NAME.get(name)
        parsed = knob.units(written) if knob and isinstance(written, str) else None
        value = written if parsed is None else parsed
        if isinstance(value, dict) and value:
            whole = f"{name}.{next(iter(value))}"
            raise UsageError(f'{label}: a knob with a dot in its name must be quoted: write "{whole}" = ...')
        if knob is None:
            raise UsageError(f"{label}: unknown knob 'knobs.{name}'; `quiet explain` lists the knobs")
        number = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if not (value in knob.choices or (knob.numeric and number) or (knob.lists and _is_list(value))):
            allowed = [f'"{choice}"' for choice in knob.choices]
            if knob.numeric or knob.lists:
                allowed.append("a number of at least 1" if knob.numeric else 'a list such as "0-1"')
            one_of = " or ".join([*filter(None, [", ".join(allowed[:-1])]), allowed[-1]])
            raise UsageError(f"{label}: key 'knobs.{name}' must be {one_of}, not {value!r}")
        knobs[name] = str(value)
    return knobs


def _is_list(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(cpulist.parse(value))
    except UsageError:
        return False

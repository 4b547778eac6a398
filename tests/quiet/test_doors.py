"""The rooms of quiet: who may import whom, and who may open files. Read from the source, nothing is executed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import quiet
from quiet.choose import Choice
from quiet.facts import Facts
from quiet.host import Reader
from quiet.knob import Scene, Skip
from quiet.knobs import BY_NAME, KNOBS
from tests.trees import hybrid, plant

FOLDER = Path(quiet.__file__).parent
ROOMS = [  # each imports only from those above it
    *("quiet", "errors", "entry", "cpulist"),
    *("host.reader", "host.files", "host.programs", "host.holder", "host.host", "host"),
    *("kinds.kind", "kinds.held", "kinds.lockup", "kinds.resctrl", "kinds.sched", "kinds.swap"),
    *("kinds.ethtool", "kinds.netlink", "kinds.net"),
    *("kinds.systemd", "kinds.slices", "kinds.unit"),
    "kinds",
    *("values", "targets", "facts", "surroundings", "confined", "unreachable", "choose", "knob"),
    *(
        "boot",
        "boot.words",
        "boot.parameter",
        "boot.table_cpus",
        "boot.table_time",
        "boot.table_power",
        "boot.table_memory",
    ),
    *("boot.parameters", "boot.merge", "boot.wish"),
    *("knobs.services", "knobs.rivals", "knobs.slices"),
    *("knobs.cpufreq", "knobs.smt", "knobs.cpuset", "knobs.irq", "knobs.workqueue", "knobs.kernel", "knobs.memory"),
    *("knobs.pstate", "knobs.power", "knobs.idle", "knobs.mce"),
    *("knobs.network", "knobs.steering"),
    *("knobs.checks", "knobs.scheduling", "knobs.kthreads", "knobs.reclaim", "knobs.writeback", "knobs.swap"),
    *("knobs.resctrl", "knobs.hugepages", "knobs.console", "knobs.rcu", "knobs.modules", "knobs.static_keys"),
    *("knobs", "noise", "noise.units", "noise.budgets", "profiles", "profile"),
    *("plan", "engine", "applied", "journal", "placement", "verify", "apply", "restore", "run", "unit", "program"),
    "service",
    *("noise._build", "noise.clock", "noise.frames", "noise.pauses", "noise.attribute", "noise.names"),
    *("noise.formats", "noise.events", "noise.ring", "noise.tracefs", "noise.decode", "noise.counters"),
    *("noise.fold", "noise.calibration"),
    *("noise.detector", "noise.agreement", "noise.measure"),
    *("noise.follow", "noise.remedies", "noise.report", "noise.table", "noise.timeline", "noise.session"),
    *(
        "boot.disk",
        "boot.loader",
        "boot.shell",
        "mask_line",
        "boot.told",
        "boot.loaders.lines",
        "boot.loaders.grub",
        "boot.loaders.entries",
        "boot.loaders.small",
        "boot.loaders.ostree",
        "boot.loaders",
        "boot.record",
        "boot.plan",
        "boot.apply",
    ),
    *("boot.image", "boot.kexec", "boot.once"),
    *("kernel", "kernel.fragments", "kernel.config", "kernel.check", "kernel.told"),
    *(
        "watch",
        "watch.aims",
        "watch.inotify",
        "watch.netlink",
        "watch.news",
        "watch.pace",
        "watch.drift",
        "watch.repair",
    ),
    *("watch.told", "watch.ending", "watch.sources", "watch.watcher"),
    *("shapes", "shapes_boot", "mask_names", "mask_files", "mask", "recorder", "render", "render_boot"),
    *("commands_boot", "commands", "commands_kernel", "commands_noise", "commands_watch", "cli", "start", "__main__"),
]
OPENERS = {
    *("host.reader", "host.files", "host.holder"),
    *("journal", "run", "profile", "recorder", "entry", "boot.disk", "boot.kexec", "service"),
    "kernel.fragments",
}
OUTSIDE = {
    "typer": {"cli"},
    "rich": {"render"},
    "pyroute2": {"kinds.netlink"},
    "cffi": {"noise._build"},
    "noise": {"noise.clock", "noise.calibration", "noise.detector"},  # the extension that noise._build describes
}
HEAVY = (
    "dataclasses",
    "inspect",
    "typer",
    "rich",
    "psutil",
    "pyroute2",
    "pyperf",
    "ctypes",
    "tarfile",
    "sqlite3",
    "numpy",
    "scipy",
    "cffi",
)


def room(path: Path) -> str:
    parts = path.relative_to(FOLDER).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "quiet"


SOURCES = {room(path): ast.parse(path.read_text()) for path in sorted(FOLDER.rglob("*.py"))}


def imported(name: str) -> set[str]:
    """Every module that a room imports anywhere in it, the checker's own blocks left out; "quiet." is taken off."""
    tree, found = SOURCES[name], set[str]()
    unseen = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in unseen:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            module = node.module or ""
            inner = {f"{module}.{alias.name}".removeprefix("quiet.") for alias in node.names}
            found |= {item for item in inner if item in ROOMS} or {module}
    return {item.removeprefix("quiet.") for item in found}


def test_every_module_has_its_place() -> None:
    assert sorted(ROOMS) == sorted(SOURCES)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_only_from_the_rooms_above_it(name: str) -> None:
    ours = imported(name) & set(ROOMS)
    assert ours <= set(ROOMS[: ROOMS.index(name)])


@pytest.mark.parametrize("name", ROOMS)
def test_quiet_never_imports_cbench(name: str) -> None:
    assert not {item for item in imported(name) if item.partition(".")[0] == "cbench"}


@pytest.mark.parametrize("name", ROOMS)
def test_what_is_not_in_the_standard_library_has_one_door(name: str) -> None:
    roots = {item.partition(".")[0] for item in imported(name) - set(ROOMS)}
    foreign = {item for item in roots if item not in sys.stdlib_module_names and item != "quiet"}
    assert all(name in OUTSIDE.get(item, set()) for item in foreign), foreign


@pytest.mark.parametrize("name", sorted(set(ROOMS) - OPENERS))
def test_a_room_without_a_key_opens_no_file(name: str) -> None:
    keys = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "listdir", "scandir", "mkdir", "makedirs"}
    calls = [node.func for node in ast.walk(SOURCES[name]) if isinstance(node, ast.Call)]
    names = {f.id for f in calls if isinstance(f, ast.Name)}
    on_os = {f.attr for f in calls if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)}
    owned = {f.attr for f in calls if isinstance(f, ast.Attribute) and ast.unparse(f.value) == "host"}
    assert not names & keys
    assert not (on_os - owned) & keys


def test_nobody_but_the_host_starts_programs() -> None:
    assert {name for name in ROOMS if "subprocess" in imported(name)} == {"host.programs", "host.holder"}


def test_only_the_boot_room_changes_what_a_boot_loader_reads() -> None:
    writers = {name for name in ROOMS if {"boot.disk", "boot.loader", "boot.apply"} & imported(name)}
    assert {name for name in writers if not name.startswith("boot.")} <= {"shapes_boot", "render_boot", "commands_boot"}
    named = {
        name
        for name in ROOMS
        for node in ast.walk(SOURCES[name])
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if any(
            node.value.startswith(path) for path in ("/etc/default/grub", "/etc/kernel/", "/boot/grub", "/boot/loader")
        )
    }
    assert {name for name in named if not name.startswith("boot.")} <= {"recorder"}  # which only reads


def test_planning_loads_nothing_heavy(tmp_path: Path) -> None:
    plant(tmp_path, hybrid())
    code = (
        "import sys, quiet.start\n"
        f"sys.argv = ['quiet', 'plan', '--root', {str(tmp_path)!r}]\n"
        "try:\n    quiet.start.main()\n"
        "except SystemExit:\n    print('\\n' + ' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "quiet.plan" in loaded
    assert not [name for name in HEAVY if name in loaded]
    ours = {"quiet.apply", "quiet.restore", "quiet.run", "quiet.recorder", "cbench"}
    assert not ours & set(loaded)


def test_the_names_of_the_knobs_are_unique() -> None:
    assert len({knob.name for knob in KNOBS}) == len(KNOBS)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_knob_comes_after_those_that_change_what_is_possible_for_it(name: str) -> None:
    earlier = list(BY_NAME)[: list(BY_NAME).index(name)]
    assert set(BY_NAME[name].after) <= set(earlier)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_knob_says_why_and_where_it_is_documented(name: str) -> None:
    knob = BY_NAME[name]
    assert all((knob.title, knob.why, knob.doc, knob.targets))
    assert not knob.why.endswith(".")
    assert "leave" in knob.choices
    assert len(knob.choices) + knob.numeric > 1
    assert all(number > 0 and reason for number, reason in knob.refusals.items())


@pytest.mark.parametrize("name", BY_NAME)
def test_on_a_host_where_nothing_can_be_read_a_knob_changes_nothing(name: str, tmp_path: Path) -> None:
    facts = Facts(Reader(str(plant(tmp_path, {"proc/": ""}))))
    cpus = Choice(frozenset({1}), frozenset({0}), frozenset(), "")
    for choice in BY_NAME[name].choices:
        for item in BY_NAME[name].rule(Scene(facts, cpus, choice)):
            assert isinstance(item, Skip) or item.current is None

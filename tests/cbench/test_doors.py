"""The rooms of cbench: who may import what. Read from the source, nothing is executed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cbench

FOLDER = Path(cbench.__file__).parent
# What is not in the standard library, and the rooms that may import it at all.
OUTSIDE = {
    "typer": ("cli",),
    "rich": ("render",),
    "numpy": ("stats.order", "stats.screen", "order", "plots", "screen.data", "screen.read", "screen.analysis"),
    "pyarrow": ("order.read_table", "export"),
    "matplotlib": ("plots",),
    "psutil": ("study", "host", "batch", "sweep_sizes"),
    "cffi": ("_build", "usercode"),
}
HEAVY = ("numpy", "pyarrow", "matplotlib", "scipy", "pandas", "pyperf", "pyroute2")


def room(path: Path) -> str:
    parts = path.relative_to(FOLDER).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "cbench"


SOURCES = {room(path): ast.parse(path.read_text()) for path in sorted(FOLDER.rglob("*.py"))}


def imported(name: str) -> set[str]:
    """Modules that a room imports anywhere in it, the checker's own blocks left out."""
    found = set[str]()
    unseen = {
        inner
        for node in ast.walk(SOURCES[name])
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(SOURCES[name]):
        if node in unseen:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return found


def within(name: str, rooms: tuple[str, ...]) -> bool:
    """Whether a room is one of these, lies in one, or has a name that begins like one (cli, cli_order)."""
    return any(name == each or name.startswith((f"{each}.", f"{each}_")) for each in rooms)


@pytest.mark.parametrize("name", [name for name in SOURCES if within(name, ("stats", "design"))])
def test_statistics_and_designs_import_neither_a_store_nor_quiet(name: str) -> None:
    ours = {item for item in imported(name) if item.partition(".")[0] in ("cbench", "quiet")}
    allowed = ("cbench.stats", "cbench.design", "cbench.model", "cbench.irqs")  # the last knows words only
    assert not [item for item in ours if item != "cbench" and not item.startswith(allowed)], name


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_what_is_not_in_the_standard_library_has_its_doors(name: str) -> None:
    roots = {item.partition(".")[0] for item in imported(name) if item}
    foreign = roots - set(sys.stdlib_module_names) - {"cbench", "quiet"}
    assert not [each for each in foreign if not within(name, OUTSIDE.get(each, ()))], (name, foreign)


@pytest.mark.parametrize("name", [name for name in SOURCES if within(name, ("study",))])
def test_a_study_runs_without_knowing_how_it_is_analysed_or_shown(name: str) -> None:
    forbidden = ("cbench.order", "cbench.stats.order", "cbench.render", "cbench.plots", "cbench.cli")
    assert not [item for item in imported(name) if item.startswith(forbidden)], name


@pytest.mark.parametrize(
    "command",
    [["list"], ["order", "status", "/dev/null"], ["order", "init", "/dev/null"], ["screen", "init", "/dev/null"]],
)
def test_a_command_loads_nothing_heavy_that_it_does_not_need(command: list[str]) -> None:
    code = (
        "import sys, cbench.start\n"
        f"sys.argv = ['cbench', *{command!r}]\n"
        "try:\n    cbench.start.main()\n"
        "except SystemExit:\n    print('\\n' + ' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "cbench.start" in loaded
    assert not [name for name in HEAVY if name in loaded]

"""The rooms: who opens files and starts programs, and what a command loads. The import rules are in pyproject.toml.

Read from the source; nothing is executed but the two commands whose loaded modules are counted.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests import CHECKOUT

QUIET_OPENERS = {
    *(
        "quiet.host.root",
        "quiet.host.reader",
        "quiet.host.files",
        "quiet.host.hold",
        "quiet.host.lock",
        "quiet.host.queue",
        "quiet.host.terminal_input",  # in the child of a run, which does not load the reader
    ),
    *("quiet.console", "quiet.settings.profile", "quiet.service.service", "quiet.record.recorder"),
    *("quiet.settings.journal_file", "quiet.settings.journal_writer", "quiet.run.process", "quiet.run.starter"),
    *("quiet.boot.loaders.atomic_files", "quiet.boot.once", "quiet.kernel.fragments", "quiet.knobs.effects"),
}
OPENING = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "listdir", "scandir", "mkdir", "makedirs"}
BOOT_FILES = ("/etc/default/grub", "/etc/kernel/", "/boot/grub", "/boot/loader")
HEAVY = {
    "quiet": (
        *("dataclasses", "inspect", "typer", "rich", "psutil", "pyroute2", "pyperf", "ctypes", "tarfile", "sqlite3"),
        *("numpy", "scipy", "cffi", "quiet.settings.apply", "quiet.settings.restore", "quiet.settings.use"),
        *("quiet.record.recorder", "cbench"),
    ),
    "cbench": ("numpy", "pyarrow", "matplotlib", "scipy", "pandas", "pyperf", "pyroute2"),
}


def module_name(path: Path) -> str:
    parts = path.relative_to(CHECKOUT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


SOURCES = {
    module_name(path): path for package in ("quiet", "cbench") for path in sorted((CHECKOUT / package).rglob("*.py"))
}


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(SOURCES[name].read_text())


def imported(name: str) -> set[str]:
    found = set[str]()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return found


@pytest.mark.parametrize(
    "name", sorted(name for name in SOURCES if name.startswith("quiet") and name not in QUIET_OPENERS)
)
def test_a_module_of_quiet_reaches_files_through_the_host_only(name: str) -> None:
    calls = [node.func for node in ast.walk(tree(name)) if isinstance(node, ast.Call)]
    names = {f.id for f in calls if isinstance(f, ast.Name)}
    on_os = {f.attr for f in calls if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)}
    owned = {f.attr for f in calls if isinstance(f, ast.Attribute) and ast.unparse(f.value) in ("host", "reader")}
    assert not names & OPENING
    assert not (on_os - owned) & OPENING


def test_in_quiet_only_the_host_starts_programs() -> None:
    starters = {name for name in SOURCES if name.startswith("quiet") and "subprocess" in imported(name)}
    assert starters == {"quiet.host.host", "quiet.host.hold"}


@pytest.mark.slow
def test_only_the_boot_room_names_the_files_of_boot_loaders() -> None:
    named = {
        name
        for name in SOURCES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(BOOT_FILES)
    }
    assert {name for name in named if not name.startswith("quiet.boot.")} <= {
        *("quiet.record.recorder", "quiet.record.redact_files")  # which read only
    }


@pytest.mark.slow
def test_no_class_name_is_used_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name in SOURCES:
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("quiet", ["plan"]),
        ("cbench", ["list"]),
        ("cbench", ["order", "status", "/dev/null"]),
        ("cbench", ["order", "init", "/dev/null"]),
        ("cbench", ["screen", "init", "/dev/null"]),
    ],
)
def test_a_command_loads_nothing_heavy_that_it_does_not_need(program: str, arguments: list[str]) -> None:
    words = [program, *arguments]
    start = "quiet.cli.start" if program == "quiet" else "cbench.__main__"
    code = (
        f"import sys, {start}\n"
        f"sys.argv = {words!r}\n"
        f"try:\n    {start}.main()\n"
        "except SystemExit:\n    print('\\n' + ' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert start in loaded
    assert not [name for name in HEAVY[program] if name in loaded]


# Where JSON, TOML, Parquet or a message of another process is read: what comes out of these modules has types.
PARSERS = {
    *("quiet.boot.record", "quiet.noise.budgets", "quiet.settings.applied_state"),
    *("quiet.settings.journal_lines", "quiet.run.report"),
    *("quiet.settings.profile", "cbench.study.toml_table"),
    *("cbench.ab.stored", "cbench.workloads.programs"),
    *("cbench.export.pyperf", "cbench.store.records", "cbench.store.schema", "cbench.store.store"),
}


@pytest.mark.slow
def test_untyped_dictionaries_stay_where_text_is_parsed() -> None:
    untyped = {
        name
        for name in SOURCES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Subscript)
        and ast.unparse(node).removeprefix("collections.abc.")
        in {f"{kind}[str, {value}]" for kind in ("dict", "Mapping") for value in ("Any", "object")}
    }
    assert untyped <= PARSERS

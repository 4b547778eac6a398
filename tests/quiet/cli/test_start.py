"""Plain options are understood without Typer, and exactly as Typer understands them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quiet.cli.start import plain
from tests import CHECKOUT
from tests.trees import machine, plant


@pytest.mark.parametrize(
    "arguments",
    [
        ("apply",),
        ("plan", "--help"),
        ("plan", "-p", "bench"),
        ("plan", "--cpus=3"),
        ("plan", "--cpus"),
        ("plan", "--cpus", "--json"),
        ("plan", "--cpus", ""),
        ("plan", "extra"),
        ("plan", "json"),
        ("status", "--cpus", "3"),
        ("verify", "--fifo", "1"),
        ("verify", "--duration", "0", "--max-gap", "50us"),
    ],
)
def test_anything_but_plain_options_is_left_to_typer(arguments: tuple[str, ...]) -> None:
    assert plain(arguments) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("status", "--json"),
        ("plan", "--cpus", "3", "--root", "/tmp"),
        ("verify", "--duration", "0", "--json"),
    ],
)
def test_plain_options_are_called_directly(arguments: tuple[str, ...]) -> None:
    assert plain(arguments) is not None


def test_a_front_loads_little_before_it_starts_its_helper() -> None:
    code = "import sys; from quiet.cli.start import plain; plain(['run', '--', 'true']); import quiet.run.front"
    command = [sys.executable, "-S", "-c", f"{code}; print(*sys.modules)"]
    done = subprocess.run(command, env={"PYTHONPATH": str(CHECKOUT)}, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "quiet.run.protocol" in loaded
    slow = {
        "typing",
        "socket",
        "typer",
        "dataclasses",
        "subprocess",
        "pathlib",
        "ctypes",
        "struct",
        "re",
        "json",
        "enum",
    }
    assert not loaded & {*slow, "collections"}
    ours = {name for name in loaded if name.startswith("quiet.") and name.count(".") == 2}
    assert ours == {
        *("quiet.cli.start", "quiet.cli.run", "quiet.run.commands", "quiet.run.options"),
        *("quiet.run.front", "quiet.run.child", "quiet.run.protocol"),
    }


def test_a_wrong_time_is_reported_in_one_line() -> None:
    command = [sys.executable, "-m", "quiet", "run", "--linger", "x", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "quiet: error: --linger: must be a number of seconds such as 30, not 'x'\n",
    )


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_only_the_output(tmp_path: Path, closed: str) -> None:
    plant(tmp_path, machine(4))
    command = f"{sys.executable} -m quiet plan --root {tmp_path}"
    whole = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, text=True, check=False)
    assert done.returncode == whole.returncode
    assert done.stdout == ("" if ">&-" in closed.split() else whole.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "2</dev/null"])
@pytest.mark.parametrize("program", ["quiet plan --root nope", "quiet explain nope", "cbench compare nope nope"])
def test_an_error_on_a_closed_stderr_keeps_its_exit_code(program: str, redirected: str) -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m {program} {redirected}"], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")


@pytest.mark.parametrize("module", ["quiet.cli.settings", "quiet.cli.app"])
def test_ctrl_c_during_start_up_ends_it_without_a_traceback(module: str) -> None:
    code = (
        "import importlib.abc, sys\n"
        "from quiet.cli import start\n"
        "class Pressed(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "start.main()\n"
    )
    word = "plan" if module.endswith("settings") else "apply"
    done = subprocess.run([sys.executable, "-c", code, word], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")

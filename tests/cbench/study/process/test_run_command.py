"""Commands that end with their parent, and reports about those that fail."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cbench.study.process.run_command import CommandError, execute, run_checked
from tests.cbench.running import alive, comes, killed_in_place_of_naming_a_group


def test_a_bound_command_is_killed_with_the_process_that_waits_for_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    pid = os.fork()
    if pid == 0:
        execute(f"echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 600", "/", os.environ, 600, bound=True)
        os._exit(0)
    assert comes(mark.exists)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert comes(lambda: not alive(int(mark.read_text())))


def test_children_of_a_bound_command_are_killed_too(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    pid = os.fork()
    if pid == 0:
        execute(f"sleep 600 & echo $! > {mark}.new; mv {mark}.new {mark}; wait", "/", os.environ, 600, bound=True)
        os._exit(0)
    assert comes(mark.exists)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert comes(lambda: not alive(int(mark.read_text())))


def test_a_bound_command_that_kills_its_starter_leaves_no_child(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    pid = os.fork()
    if pid == 0:
        try:
            killed_in_place_of_naming_a_group()
            execute(f"sleep 600 & echo $! > {mark}; kill -9 $PPID; wait", "/", os.environ, 600, bound=True)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert comes(lambda: not alive(int(mark.read_text())))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("ld: fatal error: cannot find mold\\ncompilation terminated.\\n", "ld: fatal error: cannot find mold"),
        ("a\\nb\\n\\nc\\nd\\n", "b | c | d"),
        ("one\\n", "one"),
    ],
)
def test_a_failed_command_is_reported_with_its_first_error_or_its_last_lines(said: str, shown: str) -> None:
    with pytest.raises(CommandError) as error:
        run_checked(f"printf '{said}' >&2; exit 3", "/", os.environ, 60)
    assert str(error.value).endswith(f"exited with 3: {shown}")

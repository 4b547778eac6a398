"""A program is executed as requested, and its times and counts are those of the kernel."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cbench.external.process import PADDING, Launcher
from quiet import Refused, UsageError
from tests.cbench.running import alive, comes, killed_in_place_of_naming_a_group

SHELL = "/bin/sh"


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with Launcher(dict(os.environ), None, 30) as made:
        yield made


def script(text: str) -> tuple[str, tuple[str, ...]]:
    return SHELL, (SHELL, "-c", text)


def written(path: Path, text: str, surroundings: Mapping[str, str] | None = None, cpu: int | None = None) -> str:
    """The text that a shell script writes to $OUT."""
    environment = {"PATH": os.environ["PATH"], "OUT": str(path), **(surroundings or {})}
    with Launcher(environment, None if cpu is None else {cpu}, 30) as launcher:
        assert launcher.run(*script(text)).code == 0
    return path.read_text().strip()


@pytest.mark.parametrize(("text", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 128 + 9)])
def test_the_exit_code_is_that_of_a_shell(launcher: Launcher, text: str, code: int) -> None:
    assert launcher.run(*script(text)).code == code


def test_the_time_includes_the_programs_sleep(launcher: Launcher) -> None:
    ended = launcher.run(*script("sleep 0.05"))
    assert ended.wall_ns >= 50_000_000
    assert ended.voluntary >= 1
    assert ended.begin < ended.end


def test_cpu_time_includes_that_of_children_and_is_at_most_the_wall_time(launcher: Launcher) -> None:
    burn = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    ended = launcher.run(*script(f"({burn}); exit 0"))
    used = 1000 * (ended.user_us + ended.system_us)
    assert 0 < used <= ended.wall_ns * (os.cpu_count() or 1)


def test_the_first_thread_ran_and_waited_no_longer_than_the_program_took(launcher: Launcher) -> None:
    ended = launcher.run("/bin/true", ("true",))
    if ended.ran_ns is None or ended.waited_ns is None:
        pytest.skip("this kernel has no /proc/PID/schedstat")
    assert 0 < ended.ran_ns + ended.waited_ns <= ended.wall_ns * 1.01


def test_the_program_runs_on_the_requested_cpus_and_this_process_stays_in_place(tmp_path: Path) -> None:
    cpu, before = min(os.sched_getaffinity(0)), os.sched_getaffinity(0)
    text = "grep Cpus_allowed_list /proc/self/status > $OUT"
    assert written(tmp_path / "out", text, cpu=cpu).split()[-1] == str(cpu)
    assert os.sched_getaffinity(0) == before


def test_cpus_that_do_not_exist_are_refused() -> None:
    with Launcher(os.environ, {1000}, 30) as launcher, pytest.raises(Refused, match="not permitted on these CPUs"):
        launcher.run("/bin/true", ("true",))


def test_the_environment_is_passed_on_with_the_requested_padding(tmp_path: Path) -> None:
    assert written(tmp_path / "out", f'echo "$WORD ${{#{PADDING}}}" > $OUT', {"WORD": "a b"}) == "a b 0"
    with Launcher({"OUT": str(tmp_path / "out")}, None, 30) as launcher:
        launcher.run(*script(f"echo ${{#{PADDING}}} > $OUT"), 100)
    assert (tmp_path / "out").read_text() == "100\n"


def test_signals_that_python_ignores_have_their_usual_effect(tmp_path: Path) -> None:
    ignored = int(written(tmp_path / "out", "grep SigIgn /proc/self/status > $OUT").split()[-1], 16)
    assert not ignored >> (signal.SIGPIPE - 1) & 1
    blocked = int(written(tmp_path / "out", "grep SigBlk /proc/self/status > $OUT").split()[-1], 16)
    assert blocked == 0


def test_the_program_has_no_input_and_no_other_file_is_open(tmp_path: Path) -> None:
    inherited = os.dup(0)
    os.set_inheritable(inherited, True)
    try:
        assert written(tmp_path / "out", "cat > $OUT; ls /proc/self/fd >> $OUT").split() == ["0", "1", "2", "3"]
    finally:
        os.close(inherited)


def test_the_last_line_on_stderr_is_kept_for_each_run_alone(launcher: Launcher) -> None:
    assert launcher.run(*script("echo first >&2; echo second >&2")).errors == "second"
    assert launcher.run(*script("exit 0")).errors == ""
    assert launcher.run(*script("echo x >&2")).errors == "x"


@pytest.mark.slow
def test_a_program_that_takes_too_long_is_ended_with_its_children() -> None:
    with Launcher(os.environ, None, 1.5) as launcher:  # in which the second program ends, however busy the host is
        with pytest.raises(UsageError, match=r"timed out after 1\.5 s"):
            launcher.run(*script("sleep 1000 & sleep 1000"))
        assert launcher.run("/bin/true", ("true",)).code == 0


def test_a_killed_launcher_leaves_neither_the_program_nor_what_it_has_started(tmp_path: Path) -> None:
    mark = tmp_path / "pids"
    text = f"sleep 600 & echo $$ $! > {mark}.new; mv {mark}.new {mark}; wait"
    pid = os.fork()
    if pid == 0:
        with Launcher(dict(os.environ), None, 600) as launcher:
            launcher.run(*script(text))
        os._exit(0)
    assert comes(mark.exists)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert comes(lambda: not any(alive(int(each)) for each in mark.read_text().split()))


def test_a_launcher_killed_by_its_own_program_leaves_no_child_of_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    pid = os.fork()
    if pid == 0:
        try:
            killed_in_place_of_naming_a_group()
            with Launcher(dict(os.environ), None, 600) as launcher:
                launcher.run(*script(f"sleep 600 & echo $! > {mark}; kill -9 $PPID; wait"))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert comes(lambda: not alive(int(mark.read_text())))


@pytest.mark.parametrize(
    ("content", "why"), [(b"", "neither a program"), (b"\x7fELF", "neither a program"), (None, "No such file")]
)
def test_a_command_that_cannot_be_executed_is_reported_in_one_line(
    launcher: Launcher, tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "program"
    if content is not None:
        path.write_bytes(content)
        path.chmod(0o755)
    with pytest.raises(UsageError, match=why):
        launcher.run(str(path), ("program",))


def test_no_descriptor_and_no_zombie_is_left_after_many_runs(launcher: Launcher) -> None:
    launcher.run("/bin/true", ("true",))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        launcher.run("/bin/true", ("true",))
    assert len(os.listdir("/proc/self/fd")) == before
    assert os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def test_python_itself_can_be_measured(launcher: Launcher) -> None:
    assert launcher.run(sys.executable, (sys.executable, "-c", "raise SystemExit(7)")).code == 7

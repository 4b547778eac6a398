"""`quiet why -- CMD` is as if it were not there, and reports on stderr, in a file or as JSON."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from quiet.cli import start
from quiet.why.run_command import Command
from tests.quiet.noise.test_measure_and_judge import UNPRIVILEGED

KEYS = {"command", "exit_code", "wall_s", "cpu_s", "cpus_used", "migrations", "interrupted", "causes", "frequency"}
KEYS |= {"steal_ns", "remaining", "method", "limits", "page_faults", "switches", "throttled"}


class Done(NamedTuple):
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


def fork(arguments: Sequence[str], *files: int) -> int:
    """Start `quiet` in a fork of this process, which has everything loaded, with these files as 0, 1 and 2."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        sys.argv = ["quiet", *arguments]
        start.main()
    except SystemExit as done:
        code = int(done.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def why(*arguments: str, stdin: str = "") -> Done:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        pid = fork(("why", "--no-trace", *arguments), given.fileno(), out.fileno(), err.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        texts = [file.read().decode() for file in (out, err) if not file.seek(0)]
    return Done(code, *texts)


def test_the_way_of_the_child_to_its_start_is_not_the_commands() -> None:
    code = (
        "import os; from quiet.why.run_command import Command\n"
        "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"  # the fork waits for the CPU of this process
        "for _ in range(20):\n"
        "    with Command(['true']) as running:\n"
        "        print(open(f'/proc/{running.pid}/stat').read().rpartition(')')[2].split()[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["S"] * 20


def test_the_work_of_the_fork_is_not_the_commands() -> None:
    child = os.posix_spawn("/bin/true", ["true"], os.environ)
    alone = os.wait4(child, 0)[2]
    with Command(["/bin/true"]) as running:
        running.go()
        running.wait(3600, lambda: None)
        usage = running.usage()
    assert usage.minor_faults < alone.ru_minflt + 100
    assert usage.voluntary_switches <= alone.ru_nvcsw + 3
    assert 0 < usage.cpu_s < 0.1
    assert usage.wall_s > 0


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 7])
def test_the_exit_code_is_the_commands(code: int) -> None:
    done = why("--", "sh", "-c", f"exit {code}")
    assert done.returncode == code


def test_a_command_that_ends_by_a_signal_gives_128_and_its_number() -> None:
    assert why("--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM


def test_input_and_output_pass_through_and_the_report_is_on_stderr() -> None:
    done = why("--", "tr", "a-z", "A-Z", stdin="words\n")
    assert done.stdout == "WORDS\n"
    assert "interrupted" in done.stderr
    assert "CPU time" in done.stderr


def test_options_after_the_command_are_the_commands() -> None:
    assert why("--", "echo", "--json", "-x").stdout == "--json -x\n"


@pytest.mark.slow
def test_quiet_why_waits_for_the_command_even_if_its_caller_ignores_children() -> None:
    child = "import signal, sys; sys.exit(5 + (signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN))"
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"os.execv(sys.executable, [sys.executable, '-m', 'quiet', 'why', '--', sys.executable, '-c', {child!r}])"
    )
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 6


def test_an_unknown_command_is_reported_in_one_line_and_nothing_is_run() -> None:
    done = why("--", "no-such-command-here")
    assert done.returncode == 2
    assert done.stderr == "quiet: error: no-such-command-here: no such command, or not executable\n"


def test_shell_syntax_in_a_command_of_one_word_is_explained() -> None:
    done = why("--", "./old | wc -l")
    assert done.returncode == 2
    assert done.stderr.endswith("not executable; for shell syntax: quiet why -- sh -c 'COMMAND'\n")


@pytest.mark.slow
def test_a_file_that_cannot_be_executed_is_code_126(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"\x7fELF no program\n")
    wrong.chmod(0o755)
    done = why("--", str(wrong))
    assert done.returncode == 126
    assert done.stderr == f"quiet: error: {wrong}: Exec format error\n"  # and no report of what was not executed


def test_a_report_that_cannot_be_written_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    done = why("--report", f"{tmp_path}/no/such/folder", "--", "touch", str(ran))
    assert done.returncode == 2
    assert not ran.exists()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    path = tmp_path_factory.mktemp("why") / "report.json"
    code = "import time\nwhile time.process_time() < 0.2: pass"
    done = why("--report", str(path), "--", sys.executable, "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    loaded: dict[str, object] = json.loads(path.read_text())
    return loaded


@pytest.mark.slow
def test_the_report_has_all_keys(report: dict[str, object]) -> None:
    assert set(report) >= KEYS
    assert report["method"] == "counts"
    assert set(report["interrupted"]) == {"count", "total_ns", "pct", "max_ns"}  # type: ignore[call-overload]
    for cause in report["causes"]:  # type: ignore[attr-defined]
        assert set(cause) >= {"cause", "kind", "count", "total_ns", "max_ns", "remedy", "knob"}


def test_the_sums_are_those_of_the_causes(report: dict[str, object]) -> None:
    causes = report["causes"]
    assert isinstance(causes, list)
    assert report["interrupted"]["count"] == sum(cause["count"] for cause in causes)  # type: ignore[index]
    remaining = report["remaining"]
    if remaining is not None:  # a host with one CPU has none to isolate
        own = sum(cause["count"] for cause in causes if cause["cause"].startswith("quiet itself"))
        assert remaining["count"] + remaining["gone"] + own == report["interrupted"]["count"]  # type: ignore[index]


@pytest.mark.slow
def test_a_busy_command_used_a_cpu(report: dict[str, object]) -> None:
    assert report["cpus_used"]
    assert report["cpu_s"] >= 0.2  # type: ignore[operator]


def test_json_follows_what_the_command_printed() -> None:
    done = why("--json", "--", "echo", "first")
    first, _, rest = done.stdout.partition("\n")
    assert first == "first"
    assert json.loads(rest)["command"] == ["echo", "first"]
    assert done.stderr == ""


@pytest.mark.slow
def test_an_unprivileged_user_gets_a_report() -> None:
    loaded_first = "import ctypes, json, platform, tomllib\n" + UNPRIVILEGED  # Python's own directory may be unreadable
    arguments = [sys.executable, "-c", loaded_first, "why", "--json", "--", "/bin/sh", "-c", "id -u"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    user, _, rest = done.stdout.partition("\n")
    assert user != "0"
    report = json.loads(rest)
    assert report["method"] == "counts"
    assert report["limits"][0].startswith("no kernel tracing")
    assert report["migrations"] is None or report["migrations"] >= 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_sent_to_it_reaches_the_command(number: signal.Signals) -> None:
    code = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(42))\n"
        "print('ready', flush=True)\nwhile True: time.sleep(1)"
    )
    ready, say = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    pid = fork(("why", "--no-trace", "--", sys.executable, "-c", code), null, say, null)
    assert os.read(ready, 5) == b"ready"
    os.kill(pid, number)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
    for file in (ready, say, null):
        os.close(file)


@pytest.mark.slow
def test_the_terminals_interrupt_reaches_the_command_once() -> None:
    code = (
        "import signal, sys, time\n"
        "times = []\n"
        "signal.signal(signal.SIGINT, lambda *_: times.append(1))\n"
        "print('ready', flush=True)\n"
        "while not times: time.sleep(0.01)\n"
        "time.sleep(0.2)\nsys.exit(10 + len(times))"
    )
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-m", "quiet", "why", "--no-trace", "--", sys.executable, "-c", code])
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    time.sleep(0.05)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 11


@pytest.mark.slow
def test_a_signal_that_was_ignored_stays_ignored() -> None:
    done = subprocess.run(
        ["nohup", sys.executable, "-m", "quiet", "why", "--", "sh", "-c", "kill -HUP $$; echo alive"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "alive" in done.stdout
    assert done.returncode == 0


@pytest.mark.slow
def test_the_commands_own_children_are_followed() -> None:
    code = (
        "import os, time\n"
        "child = os.fork()\n"
        "t = time.process_time()\n"
        "while time.process_time() < t + 0.2: pass\n"
        "child and os.waitpid(child, 0)\n"
    )
    done = why("--json", "--", sys.executable, "-c", code)
    report = json.loads(done.stdout)
    assert report["cpu_s"] >= 0.4
    assert report["cpus_used"]

"""Wrong input: one clear line that names the error, and exit code 2."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cbench.run import run
from quiet.errors import UsageError
from tests.cbench.running import CBENCH, cbench, error_line, request

WRONG = [
    (partial(request, "hush"), "unknown workload 'hush': use hash, sieve, memory"),
    (partial(request, "hash", params=["q=1"]), "--param q: unknown; hash takes n"),
    (partial(request, "hash", params=["n"]), "'n': write a parameter as NAME=NUMBER"),
    (partial(request, "hash", params=["n=many"]), "'many' is not a whole number"),
    (partial(request, "hash", params=["n=-1"]), "n=-1: hash takes n"),
    (partial(request, "sieve", params=["n=2"]), "n=2: sieve takes n"),
    (partial(request, "memory", params=["size=0"]), "size=0: memory takes size"),
    (partial(request, "memory", params=[f"size={2**40}"]), "memory takes size"),
    (partial(request, trials=0), "--trials 0"),
    (partial(request, trials=-5), "--trials -5"),
    (partial(request, trials=10**9), "--trials 1000000000"),
    (partial(request, warmup="soon"), "--warmup 'soon'"),
    (partial(request, warmup="-1"), "--warmup '-1'"),
    (partial(request, timeout=0.0), "--timeout 0"),
    (partial(request, timeout=float("nan")), "--timeout nan"),
    (partial(request, cpus=["60000"]), "--cpu 60000: not online"),
    (partial(request, cpus=["x"]), "'x' is not a CPU list"),
    (partial(request, cpus=["-1"]), "is not a CPU list"),
    (partial(request, cpus=[""]), "--cpu ''"),
    (partial(request, "no/such/file.c:run"), "no such file"),
    (partial(request, "file.c"), "write it as FILE.c:FUNCTION"),
    (partial(request, "file.c:"), "write it as FILE.c:FUNCTION"),
    (partial(request, "file.c:a b"), "write it as FILE.c:FUNCTION"),
    (partial(request, "file.py:run"), "neither a C file"),
    (partial(request, counter="speed"), "unknown counter 'speed'"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_input_is_refused_in_one_line(wrong: Callable[[], run.RunOptions], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        run.measure(wrong())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_memory_that_the_host_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cbench.workloads.selection.MEMORY_SHARE", 1e-9)
    with pytest.raises(UsageError, match="would need more than"):
        run.measure(request("memory"))


def test_the_command_prints_the_line_on_stderr_and_ends_with_2() -> None:
    done = cbench("run", "hush")
    assert done.returncode == 2
    assert error_line(done).startswith("unknown workload 'hush'")


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", "hash", "--trials", "x"], ["run", "hash", "--nonsense"], ["nonsense"]]
)
def test_usage_errors_end_with_2_and_without_a_traceback(arguments: list[str]) -> None:
    done = cbench(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["run", "hash", "--quick", "--trials", "2"]])
def test_output_that_cannot_be_written_is_reported_in_one_line_with_exit_2(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*CBENCH, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "cbench: error: stdout: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_terminal_without_the_letters_gets_the_table_without_them(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    rows = [f"t,{order},{value}" for order in ("fixed", "random") for value in range(8)]
    data.write_text("\n".join(["test,order,value", *rows]))
    done = cbench("order", "analyze", str(data), env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "8 + 8" in done.stdout


def test_a_reader_that_closes_early_is_not_reported_as_an_error() -> None:
    with subprocess.Popen([*CBENCH, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout
        assert started.stderr
        started.stdout.close()
        assert started.stderr.read() == ""
    assert started.returncode == -signal.SIGPIPE


def test_a_directory_is_not_a_source_file(tmp_path: Path) -> None:
    (tmp_path / "dir.c").mkdir()
    with pytest.raises(UsageError, match="no such file"):
        run.measure(request(f"{tmp_path}/dir.c:run"))

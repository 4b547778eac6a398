"""Functions of the user's own: good ones, and everything that can be wrong with them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from cbench.workloads import user_code
from quiet.errors import QuietError, UsageError
from tests.cbench.running import cbench, comes, error_line, measured

CODE = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORKLOAD(name) uint64_t name(void *state, uint64_t n)
#define UNUSED (void)state, (void)n

WORKLOAD(sum) { volatile uint64_t x = 0; (void)state; for (uint64_t i = 0; i < n; i++) x += i; return x; }
WORKLOAD(null) { (void)state; *(volatile int *)(n * 0) = 1; return 0; }
WORKLOAD(later) { static int left = 30; UNUSED; return --left ? 0 : *(volatile int *)8; }
WORKLOAD(endless) { UNUSED; for (;;) __asm__ volatile(""); }
WORKLOAD(quits) { UNUSED; exit(7); }
WORKLOAD(dies) { UNUSED; raise(SIGKILL); return 0; }
WORKLOAD(divides) { UNUSED; raise(SIGFPE); return 0; }
WORKLOAD(naps) { UNUSED; usleep(500); return 0; }
WORKLOAD(talks) { UNUSED; puts("said by user code"); fflush(stdout); return 0; }
WORKLOAD(flips) { static uint64_t calls; UNUSED; return calls++; }
WORKLOAD(faults)
{
    char *page = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    UNUSED;
    page[0] = 1;
    munmap(page, 1 << 16);
    return 0;
}
WORKLOAD(forks) { UNUSED; if (!fork()) for (;;) pause(); for (;;) pause(); }
static WORKLOAD(hidden) { UNUSED; return 0; }
WORKLOAD(uses_hidden) { return hidden(state, n); }
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("user") / "mine.c"
    file.write_text(CODE)
    return file


@pytest.fixture(scope="module")
def library(source: Path) -> Path:
    made = source.with_name("mine.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", made, source], check=True)
    return made


@pytest.mark.slow
def test_a_c_file_is_compiled_with_a_printed_command_and_measured(source: Path) -> None:
    done = cbench("run", f"{source}:sum", "--param", "n=1000", "--trials", "5")
    assert done.returncode == 0
    assert "cbench: cc -O2 -g -Wall -shared -fPIC -o " in done.stderr
    assert f"{source}:sum" in done.stdout


def test_two_files_of_the_same_name_are_two_libraries(tmp_path: Path) -> None:
    sources = [tmp_path / name / "a-long-name-of-a-folder" / "mine.c" for name in ("one", "two")]
    for number, source in enumerate(sources):
        source.parent.mkdir(parents=True)
        source.write_text(f"unsigned long run(void *state, unsigned long n) {{ return {number}; }}")
    first, second = (user_code.compiled(source, tmp_path, print) for source in sources)
    assert first.read_bytes() != second.read_bytes()


def test_a_library_is_measured_unchanged(library: Path) -> None:
    (result,) = measured(f"{library}:sum", params=["n=1000"])["results"]
    assert result["output"] == 999 * 1000 // 2
    assert result["params"] == {"n": 1000}


def test_the_compilers_own_messages_are_shown(tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("int x = ;\n")
    done = cbench("run", f"{broken}:run")
    assert done.returncode == 2
    assert "broken.c:1:9: error: " in done.stderr
    assert error_line(done) == "broken.c: does not compile (exit code 1); see the compiler's messages above"


@pytest.mark.slow
def test_a_missing_compiler_is_reported_in_one_line_with_exit_2(source: Path) -> None:
    done = cbench("run", f"{source}:sum", env={"CC": "no-such-compiler -m64"})
    assert done.returncode == 2
    assert error_line(done) == "compiler no-such-compiler: No such file or directory; install one or set CC"


@pytest.mark.parametrize("name", ["absent", "hidden"])
def test_a_missing_function_is_named(library: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"it has no function '{name}'"):
        measured(f"{library}:{name}")


def test_a_file_that_is_not_a_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("not an ELF file")
    with pytest.raises(UsageError, match="cannot load it"):
        measured(f"{tmp_path}/text.so:run")


@pytest.mark.slow
def test_a_crash_in_user_code_is_reported_in_one_line_with_exit_2(library: Path) -> None:
    done = cbench("run", f"{library}:null", "--trials", "5")
    assert done.returncode == 2
    assert "crashed with SIGSEGV" in error_line(done)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("later", "crashed with SIGSEGV"),
        ("divides", "crashed with SIGFPE"),
        ("quits", "with exit code 7"),
        ("dies", "was killed \\(SIGKILL\\)"),
    ],
)
def test_user_code_that_does_not_return_is_reported_with_its_end(library: Path, name: str, what: str) -> None:
    with pytest.raises(QuietError, match=what) as caught:
        measured(f"{library}:{name}", trials=50)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_an_endless_loop_is_ended_by_the_time_out(library: Path) -> None:
    begun = time.monotonic()
    done = cbench("run", f"{library}:endless", "--timeout", "1")
    assert done.returncode == 2
    assert "no trial ended within 1 s" in error_line(done)
    assert time.monotonic() - begun < 55  # without the option a trial may take a minute


@pytest.mark.slow
def test_processes_that_user_code_left_behind_are_ended_with_it(library: Path) -> None:
    before = {process.pid for process in psutil.process_iter()}
    with pytest.raises(UsageError, match="no trial ended"):
        measured(f"{library}:forks", timeout=1.0)

    def workers() -> list[psutil.Process]:
        left = [p for p in psutil.process_iter(["cmdline", "status"]) if p.pid not in before]
        ours = [p for p in left if str(os.getpid()) in (p.info["cmdline"] or [])]
        return [p for p in ours if p.info["status"] != psutil.STATUS_ZOMBIE]

    assert comes(lambda: not workers()), workers()


@pytest.mark.slow
def test_output_of_user_code_stays_out_of_the_results(library: Path) -> None:
    done = cbench("run", f"{library}:talks", "--trials", "2", "--warmup", "0", "--json")
    assert json.loads(done.stdout)["results"][0]["output"] == 0
    assert "said by user code" in done.stderr


def test_user_code_may_return_any_value(library: Path) -> None:
    (result,) = measured(f"{library}:flips")["results"]
    assert (result["output"], result["outputs"]) == (None, 5)


def test_a_trial_that_sleeps_is_polluted_by_a_context_switch(library: Path) -> None:
    (result,) = measured(f"{library}:naps", trials=10)["results"]
    assert result["with_context_switch"] == 10
    assert len(result["polluted"]) == 10
    assert all("context switch" in polluted["cause"] for polluted in result["polluted"])


def test_a_trial_that_touches_new_memory_is_polluted_by_a_page_fault(library: Path) -> None:
    (result,) = measured(f"{library}:faults", trials=10)["results"]
    assert result["with_page_fault"] == 10
    assert all("page fault" in polluted["cause"] for polluted in result["polluted"])


@pytest.mark.slow
def test_a_trial_longer_than_a_tick_sees_interrupts_by_name_unless_isolated(library: Path) -> None:
    (result,) = measured(f"{library}:sum", params=["n=30000000"], trials=3)["results"]
    named = [polluted["cause"] for polluted in result["polluted"] if "interrupt" in polluted["cause"]]
    assert len(named) == result["with_interrupt"]
    assert result["isolated"] or named
    assert all("(" in cause for cause in named)


def test_a_function_is_called_once_untimed_before_each_timed_call(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    counting = tmp_path / "counting.c"
    counting.write_text(
        "#include <stdint.h>\n#include <stdio.h>\n"
        "uint64_t run(void *state, uint64_t n)\n"
        f'{{ FILE *f = fopen("{calls}", "a"); (void)state; fputc(10, f); fclose(f); return n; }}\n'
    )
    measured(f"{counting}:run", trials=3)
    assert len(calls.read_text()) == 6

"""`cbench layout` on a C program whose time depends on where its function lies."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cbench.running import CBENCH, alive, cbench, comes, error_line

# It sleeps: how long it takes does not depend on what else the host does.
PLANTED = """
#include <stdint.h>
#include <unistd.h>
void pad(void) { __asm__ volatile(".skip 5, 0x90"); }
__attribute__((noinline)) int work(unsigned int us) { return usleep(us); }
int main(void) {
    unsigned int us = 40000;
    if ((uintptr_t)&work & 0x20) us += us * PERCENT / 100;
    return work(us) != 0;
}
"""
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.mark.slow
@needs_cc
def test_a_planted_effect_of_alignment_is_named_with_its_size(tmp_path: Path) -> None:
    source = tmp_path / "planted.c"
    source.write_text(PLANTED)
    build = f"cc -O2 -DPERCENT=100 {{layout}} -o {{program}} {source}"
    options = ("--preset", "alignment", "--builds", "10", "--blocks", "12", "--seed", "3")
    done = cbench("layout", *options, "--build", build, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["builds"] == 10
    assert len(found["times"]) == 10
    assert found["p"] < 0.01
    slow = {each["layout"].split()[0] for each in found["times"] if each["slower_pct"] > 50}
    assert slow <= {f"-falign-functions={size}" for size in (1, 2, 4, 8, 16, 32)}
    assert found["one_build_pct"] > 20


@pytest.mark.slow
@needs_cc
def test_identical_builds_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    source.write_text("int main(void) { return 0; }")
    done = cbench("layout", "--build", f"cc -o {{program}} {source} # {{seed}}", "--builds", "3", "--blocks", "5")
    assert done.returncode == 2
    assert "all 3 builds are the same program byte for byte" in error_line(done)


@pytest.mark.slow
def test_the_size_of_the_environment_needs_no_build() -> None:
    done = cbench("layout", "--preset", "environment", "--run", "true", "--builds", "4", "--blocks", "5")
    assert done.returncode == 0, done.stderr
    assert "4 builds, preset environment, 5 blocks" in done.stdout
    assert "bytes of environment" in done.stdout


@pytest.mark.slow
def test_a_program_that_fails_is_reported_in_one_line_without_an_option_that_layout_lacks() -> None:
    done = cbench("layout", "--preset", "environment", "--run", "false")
    assert done.returncode == 2
    assert error_line(done) == "build 0: exited with 1"


def test_a_missing_program_is_reported_without_an_option_that_layout_lacks() -> None:
    done = cbench("layout", "--preset", "environment", "--run", "no-such-program")
    assert done.returncode == 2
    assert error_line(done) == "no-such-program: no such program; for shell built-ins and operators use sh -c '...'"


@pytest.mark.slow
def test_a_kill_during_a_build_ends_the_build_and_the_next_run_removes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    mark = tmp_path / "pid"
    build = f"echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 600 # {{seed}} {{program}}"
    with subprocess.Popen([*CBENCH, "layout", "--build", build], stderr=subprocess.DEVNULL) as process:
        assert comes(mark.exists)
        process.kill()
    assert comes(lambda: not alive(int(mark.read_text())))
    assert cbench("layout", "--build", "false {program} {seed}").returncode == 2
    assert [path.name for path in (tmp_path / "cache" / "cbench" / "ab").iterdir()] == ["lock"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--build", "false {program} {seed}"), "--build (seed "),
        (("--build", "true {program} {seed}"), "wrote no executable file to {program}"),
        ((), "--build is missing"),
    ],
)
def test_a_build_that_fails_is_reported_in_one_line(options: tuple[str, ...], says: str) -> None:
    done = cbench("layout", *options)
    assert done.returncode == 2
    assert says in error_line(done)

"""`cbench ab --layouts`: each block measures another build of every arm."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cbench.running import CBENCH, cbench, comes, error_line

ARMS = ("--arm", "0.01={program}", "--arm", "0.06={program}")
"""Each sleeps as long as its name says."""
BUILD = "printf '#!/bin/sh\\n# %s\\nsleep %s\\n' {seed} {arm} >{program} && chmod +x {program}"
LAYOUTS, BLOCKS = 6, 12


def counted(log: Path) -> str:
    """The build, which also leaves a line in the log."""
    return f"echo {{seed}} {{arm}} >>{log}; {BUILD}"


def trials(path: Path) -> list[tuple[int, int]]:
    """Block and layout of every stored trial."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT counts FROM trial").fetchall()
    return [(each["block"], each["layout"]) for each in (json.loads(row[0]) for row in rows)]


@pytest.mark.slow
def test_each_arm_is_built_in_each_layout_and_the_result_says_how_many(tmp_path: Path, cache: Path) -> None:
    log, path = tmp_path / "log", tmp_path / "s.db"
    options = ("--layouts", str(LAYOUTS), "--blocks", str(BLOCKS), "--build", counted(log))
    done = cbench("ab", *options, *ARMS, "-o", str(path), "--json")
    assert done.returncode == 1, done.stderr
    content = json.loads(done.stdout)
    assert (content["layouts"], content["distinct_builds"], content["blocks"]) == (LAYOUTS, LAYOUTS, BLOCKS)
    (comparison,) = content["comparisons"]
    assert (comparison["arm"], comparison["outcome"]) == ("0.06", "slower")
    assert comparison["level"] == pytest.approx(1 - 2 / 2**LAYOUTS)  # of six differences, not of twelve
    assert content["floor"]["copied"] is True
    built = [line.split() for line in log.read_text().splitlines()]
    assert len({seed for seed, _ in built}) == LAYOUTS
    assert sorted(built) == sorted([seed, arm] for seed in {seed for seed, _ in built} for arm in ("0.01", "0.06"))
    assert sorted(trials(path)) == sorted((block, block % LAYOUTS) for block in range(BLOCKS) for _ in range(3))
    assert [each.name for each in cache.iterdir()] == ["lock"]
    again = cbench("ab", "--resume", str(path))
    assert again.returncode == 1, again.stderr
    assert f"{BLOCKS} blocks of {LAYOUTS} layouts in " in again.stdout
    assert f"layouts: {LAYOUTS} builds of each arm; the interval is over layouts" in again.stdout
    compared = json.loads(cbench("compare", f"{path}:0.01", f"{path}:0.06", "--json").stdout)
    (pair,) = compared["comparisons"]
    assert (pair["a"]["processes"], pair["b"]["processes"]) == (LAYOUTS, LAYOUTS)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_after_a_kill_it_resumes_at_the_next_block_with_the_same_builds(tmp_path: Path, number: int) -> None:
    log, path = tmp_path / "log", tmp_path / "k.db"
    options = ("--layouts", str(LAYOUTS), "--blocks", "30", "--build", counted(log))
    command = [*CBENCH, "ab", *options, *ARMS, "-o", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert comes(lambda: process.poll() is not None or (path.exists() and stored(path)))
        process.send_signal(number)
    builds = log.read_text()
    assert 0 < len(trials(path)) < 90
    done = cbench("ab", "--resume", str(path), "--json")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["blocks"] == 30
    assert sorted(trials(path)) == sorted((block, block % LAYOUTS) for block in range(30) for _ in range(3))
    assert log.read_text() == builds
    assert builds.count("\n") == 2 * LAYOUTS


def stored(path: Path) -> bool:
    try:
        return bool(trials(path))
    except sqlite3.Error:
        return False


@pytest.mark.slow
def test_a_build_that_differs_after_a_kill_is_refused(tmp_path: Path, cache: Path) -> None:
    path, factor = tmp_path / "k.db", tmp_path / "factor"
    factor.write_text("# one")
    build = f"{BUILD}; cat {factor} >>{{program}}"
    command = [*CBENCH, "ab", "--layouts", "6", "--blocks", "100", "--build", build]
    with subprocess.Popen([*command, *ARMS, "-o", str(path)], stderr=subprocess.PIPE) as process:
        assert comes(lambda: process.poll() is not None or (path.exists() and stored(path)))
        process.kill()
    factor.write_text("# two")
    for each in cache.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
    done = cbench("ab", "--resume", str(path))
    assert done.returncode == 2
    assert "0.01: not the program that the comparison started with" in error_line(done)


@pytest.mark.slow
def test_revisions_are_built_in_each_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    for seconds in ("0.2", "0"):
        (tmp_path / "prog.in").write_text(f"#!/bin/sh\n# SEED\nsleep {seconds}\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", seconds], check=True)
    monkeypatch.chdir(tmp_path)
    revisions = ("--revision", "old=HEAD~1", "--revision", "new=HEAD", "--run", "./prog")
    build = ("--build", "sed s/SEED/{seed}/ prog.in >prog && chmod +x prog")
    done = cbench("ab", "--layouts", "6", "--blocks", "12", *revisions, *build)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("new is ")
    assert " faster than old" in done.stdout
    assert "12 blocks of 6 layouts in " in done.stdout
    assert "layouts: 6 builds of each arm; " in done.stdout
    assert sorted(each.name for each in tmp_path.iterdir()) == [".git", "prog.in"]
    assert [each.name for each in cache.iterdir()] == ["lock"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ("--build", "cp /bin/true {program} # {seed}"),
            "a: all 6 builds are the same program byte for byte: pass {seed}",
        ),
        (("--build", "true {seed} {program}"), "--build (a, seed "),
        (("--build", "false {seed} {program}"), "--build (a, seed "),
        (("--build", "cc {layout} -o {program}"), "--build has no {seed}: without it, all builds of preset free"),
        (
            ("--build", "x {seed} {program}", "--preset", "luck"),
            "--preset 'luck': must be one of alignment, lld, mold, go, free",
        ),
        ((), "--build has no {program}"),
    ],
)
def test_builds_that_cannot_form_blocks_are_reported_in_one_line(
    options: tuple[str, ...], says: str, cache: Path
) -> None:
    done = cbench("ab", "--layouts", "6", *options, "--arm", "a={program}", "--arm", "b={program}")
    assert done.returncode == 2
    assert says in error_line(done)
    assert not cache.exists() or [each.name for each in cache.iterdir()] == ["lock"]


@pytest.mark.slow
def test_the_compared_program_may_be_started_by_another_one(tmp_path: Path) -> None:
    build = "printf '# %s %s' {seed} {arm} >{program}; chmod +x {program}"
    arms = ("--arm", f"a={sys.executable} -S {{program}}", "--arm", f"b={sys.executable} -S {{program}}")
    done = cbench("ab", "--layouts", "6", "--blocks", "6", "--build", build, *arms, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["distinct_builds"] == 6


# It sleeps: how long it takes does not depend on what else the host does.
PLANTED = """
#include <stdint.h>
#include <unistd.h>
#define TEXT(x) #x
#define NUMBER(x) TEXT(x)
__asm__(".text; .skip " NUMBER(SEED) PAD " & 4095, 0x90");
__attribute__((noinline)) int work(unsigned int us) { return usleep(us); }
int main(void) {
    unsigned int us = 10000 * TIMES;
    if ((uintptr_t)&work & 0x40) us *= 2;
    return work(us) != 0;
}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_pure_layout_effect_differs_between_two_builds_but_not_over_layouts(tmp_path: Path) -> None:
    for name, times, pad in (("old", 1, ""), ("new", 1, "/4096"), ("worse", 5, "/3")):
        (tmp_path / f"{name}.c").write_text(f'#define TIMES {times}\n#define PAD "{pad}"\n{PLANTED}')
    build = f"cc -O2 -falign-functions=1 -DSEED={{seed}} -o {{program}} {tmp_path}/{{arm}}.c"
    arms = [argument for name in ("old", "new", "worse") for argument in ("--arm", f"{name}={{program}}")]

    def compared(*options: str) -> dict[str, str]:
        done = cbench("ab", "--build", build, *arms, "--json", *options)
        assert done.returncode in (0, 1), done.stderr
        return {each["arm"]: each["outcome"] for each in json.loads(done.stdout)["comparisons"]}

    alone = [compared("--blocks", "16", "--seed", str(seed))["new"] for seed in range(1, 5)]
    assert {"faster", "slower"} & set(alone)
    over = compared("--layouts", "12", "--blocks", "36", "--seed", "1")
    assert over["new"] not in ("faster", "slower")
    assert over["worse"] == "slower"

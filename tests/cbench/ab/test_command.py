"""`cbench ab` as its user sees it, with real commands."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cbench.running import CBENCH, cbench, comes, error_line

KEYS = {
    *("layouts", "distinct_builds", "layouts_needed"),
    *("counter", "host", "spawn", "baseline", "blocks", "seconds", "ended", "effect", "seed", "comparisons", "floor"),
    *("position", "predecessor", "detectable", "blocks_needed", "budget_needed_s", "causes", "polluted", "arms"),
}


@pytest.mark.slow
def test_two_executables_are_the_whole_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    for name in ("old", "new"):
        shutil.copy("/bin/true", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    done = cbench("ab", "--blocks", "12", "--", "./old", "./new")
    assert done.returncode in (0, 1), done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("./new")
    assert "12 blocks in " in lines[0]
    assert [line.split(":")[0] for line in lines[1:3]] == ["  ./old", "  ./new"]
    assert any(line.startswith("noise floor: ") for line in lines)
    assert any(line.startswith("order: ") for line in lines)
    assert any(line.startswith("disturbed: ") for line in lines)
    assert len(lines) <= 14
    assert [path.name for path in cache.iterdir()] == ["lock"]


@pytest.mark.slow
def test_a_slower_program_is_reported_with_exit_code_1_and_all_keys() -> None:
    done = cbench("ab", "--json", "--blocks", "12", "--", "true", "sleep 0.05")
    assert done.returncode == 1, done.stderr
    content = json.loads(done.stdout)
    assert set(content) == KEYS
    (comparison,) = content["comparisons"]
    assert (comparison["arm"], comparison["baseline"], comparison["outcome"]) == ("sleep 0.05", "true", "slower")
    assert comparison["interval"][0] > 2
    assert content["floor"]["copied"] is True
    assert [arm["workload"] for arm in content["arms"]] == ["true", "true (copy)", "sleep 0.05"]
    assert [len(arm["trials"]) for arm in content["arms"]] == [12, 12, 12]
    assert content["ended"] == "blocks"


@pytest.mark.slow
def test_a_faster_program_is_reported_as_faster() -> None:
    done = cbench("ab", "--blocks", "12", "--", "sleep 0.05", "true")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("true is ")
    assert " % faster than sleep 0.05 (" in done.stdout


@pytest.mark.slow
def test_a_budget_ends_the_measurement_and_an_open_question_is_reported() -> None:
    done = cbench("ab", "--json", "--budget", "100ms", "--", "sleep 0.1", "sleep 0.1")
    assert done.returncode == 2, done.stderr
    content = json.loads(done.stdout)
    assert content["ended"] == "budget"
    assert content["blocks"] == 1
    assert content["comparisons"][0]["outcome"] == "too few blocks"
    assert content["floor"]["interval"] is content["detectable"] is content["position"] is None


@pytest.mark.slow
def test_an_environment_file_makes_an_arm(tmp_path: Path) -> None:
    for name, seconds in (("short", "0"), ("long", "0.3")):
        (tmp_path / f"{name}.env").write_text(f"SECONDS_TO_SLEEP={seconds}\n")
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\nsleep "$SECONDS_TO_SLEEP"\n')
    script.chmod(0o755)
    files = [f"--env-file={name}={tmp_path / name}.env" for name in ("short", "long")]
    done = cbench("ab", "--blocks", "12", *files, "--run", str(script))
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("long is ")
    assert " slower than short" in done.stdout


@pytest.mark.slow
def test_a_program_that_does_not_work_elsewhere_is_not_copied(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\ntest -e "$(dirname "$0")/data"\n')
    script.chmod(0o755)
    (tmp_path / "data").touch()
    done = cbench("ab", "--json", "--blocks", "6", "--", str(script), "true")
    assert done.returncode in (0, 1), done.stderr
    floor = json.loads(done.stdout)["floor"]
    assert floor["copied"] is False
    assert floor["why"] == "a copy in another directory does not work"


@pytest.mark.slow
def test_two_git_revisions_are_built_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    for seconds in ("0.3", "0"):
        (tmp_path / "prog.in").write_text(f"#!/bin/sh\nsleep {seconds}\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", seconds], check=True)
    monkeypatch.chdir(tmp_path)
    revisions = ("--revision", "old=HEAD~1", "--revision", "new=HEAD")
    build = ("--build", "cp prog.in prog && chmod +x prog")
    done = cbench("ab", "--blocks", "12", *revisions, *build, "--run", "./prog")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("new is ")
    assert " faster than old" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "prog.in"]
    assert [path.name for path in cache.iterdir()] == ["lock"]


@pytest.mark.slow
def test_a_slow_position_is_named_and_not_called_a_difference(tmp_path: Path) -> None:
    count, script = tmp_path / "count", tmp_path / "script"
    count.write_text("")
    # Each third run is slow: it is always at the same position of its block, whatever came before the first block.
    script.write_text(f"#!/bin/sh\nprintf x >> {count}\n[ $(($(wc -c < {count}) % 3)) = 0 ] && sleep 0.4\nexit 0\n")
    script.chmod(0o755)
    for seed in (1, 2):  # by chance equal arms are found to differ once in some hundred times
        done = cbench("ab", "--json", "--blocks", "12", "--seed", str(seed), "--", str(script), str(script))
        content = json.loads(done.stdout)
        assert content["position"]["matters"] is True
        assert content["position"]["ratio"] > 2
        if done.returncode == 0:
            return
    raise AssertionError(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "two arms are needed: cbench ab -- ./old ./new (quote an arm that has arguments)"),
        (("--", "true", "no-such-program"), "no-such-program: no such program"),
        (("--", "true", "false"), "false: exited with 1 (--ignore-failure measures it anyway)"),
        (("--budget", "5 parsecs", "--", "true", "true"), "--budget '5 parsecs': not a duration; write seconds"),
        (("--resume", "/none.db"), "/none.db: no such file"),
        (("--resume", "x.db", "--seed", "2"), "--resume takes the options of the stored comparison: omit --seed"),
        (("-o", "/", "--", "true", "true"), "/: is a directory"),
        (("--cpu", "999", "--", "true", "true"), "--cpu 999: "),
    ],
)
def test_wrong_usage_is_reported_in_one_line_with_exit_code_2(arguments: tuple[str, ...], why: str) -> None:
    done = cbench("ab", *arguments)
    assert done.returncode == 2, done.stderr
    assert why in error_line(done)


@pytest.mark.slow
def test_a_file_without_a_comparison_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    assert cbench("run", "--trials", "2", "-o", str(path), "--", "true").returncode == 0
    done = cbench("ab", "--resume", str(path))
    assert done.returncode == 2
    assert f"{path}: contains no comparison; start one with: cbench ab -o FILE" in error_line(done)


@pytest.mark.slow
@pytest.mark.parametrize("content", ["int main(void) { return 0; }", None])
def test_an_existing_output_is_refused_and_left_unchanged(tmp_path: Path, cache: Path, content: str | None) -> None:
    path = tmp_path / "old.c"
    if content:
        path.write_text(content)
    else:
        assert cbench("ab", "--blocks", "6", "-o", str(path), "--", "true", "true").returncode in (0, 1)
    before = path.read_bytes()
    done = cbench("ab", "-o", str(path), "--", "true", "true")
    assert done.returncode == 2
    assert f"{path}: already exists; choose another file, or resume with: cbench ab --resume {path}" in error_line(done)
    assert path.read_bytes() == before
    assert not [each for each in cache.glob("*") if each.is_dir()]


def test_the_advice_to_resume_is_a_command_that_a_shell_executes(tmp_path: Path) -> None:
    path = tmp_path / "my $(old).db"
    path.write_text("not empty")
    done = cbench("ab", "-o", str(path), "--", "true", "true")
    advice = error_line(done).rpartition("resume with: ")[2]
    assert shlex.split(advice) == ["cbench", "ab", "--resume", str(path)]


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["no-such-program", "false"])
def test_a_comparison_that_cannot_begin_leaves_nothing(tmp_path: Path, cache: Path, arm: str) -> None:
    path = tmp_path / "s.db"
    assert cbench("ab", "-o", str(path), "--", "true", arm).returncode == 2
    assert list(tmp_path.iterdir()) == []
    assert [each.name for each in cache.iterdir()] == ["lock"]


BLOCKS = 12


def begun(path: Path, *arms: str, blocks: int = BLOCKS) -> subprocess.Popen[str]:
    """A comparison of arms that take some time, after its first stored block."""
    command = [*CBENCH, "ab", "--blocks", str(blocks), "-o", str(path), "--", *arms]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert comes(lambda: (path.exists() and stored(path) > 0) or process.poll() is not None)
    return process


def stored(path: Path) -> int:
    """How many trials are stored."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM trial").fetchone()[0])
    except sqlite3.Error:
        return 0


def blocks(path: Path) -> list[tuple[int, int]]:
    """Block and position of every stored trial."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT counts FROM trial").fetchall()
    return [(each["block"], each["position"]) for each in (json.loads(row[0]) for row in rows)]


def resumed(path: Path) -> Any:
    done = cbench("ab", "--resume", str(path), "--json")
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_however_it_ends_it_resumes_at_the_next_block(tmp_path: Path, cache: Path, number: int) -> None:
    path = tmp_path / "k.db"
    with begun(path, "sleep 0.08", "sleep 0.080") as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (-number, 128 + number)
    if number != signal.SIGKILL:
        assert f"resume with: cbench ab --resume {path}" in errors
    before = stored(path)
    assert before % 3 == 0
    assert 0 < before < 3 * BLOCKS
    content = resumed(path)
    assert content["blocks"] == BLOCKS
    assert Counter(blocks(path)) == Counter((block, place) for block in range(BLOCKS) for place in range(3))
    assert [path.name for path in cache.iterdir()] == ["lock"]
    again = resumed(path)
    assert again["comparisons"] == content["comparisons"]
    assert again["floor"] == content["floor"]
    assert again["seconds"] == content["seconds"]
    assert stored(path) == 3 * BLOCKS


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["building", "warming up"])
def test_a_comparison_killed_before_the_first_block_can_be_resumed(tmp_path: Path, cache: Path, moment: str) -> None:
    path, begun_mark = tmp_path / "k.db", tmp_path / "begun"
    wait = f"[ -e {begun_mark} ] || {{ touch {begun_mark}; sleep 60; }}"
    build = f"{wait if moment == 'building' else 'true'}; cp /bin/true {{program}}"
    prepare = wait if moment == "warming up" else "true"
    arms = ("--arm", "a={program}", "--arm", "b={program} b")
    command = [*CBENCH, "ab", "--blocks", "8", "-o", str(path), "--build", build, "--prepare", prepare, *arms]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert comes(begun_mark.exists)
        process.kill()
    done = cbench("compare", f"{path}:a", f"{path}:b")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert resumed(path)["blocks"] == 8
    assert [each.name for each in cache.iterdir()] == ["lock"]


@pytest.mark.slow
def test_a_running_comparison_is_not_resumed_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    with begun(path, "sleep 0.08", "sleep 0.080", blocks=1000) as process:
        done = cbench("ab", "--resume", str(path))
        process.kill()
    assert done.returncode == 3
    assert "another process is running this comparison" in error_line(done)


@pytest.mark.slow
def test_another_program_under_the_same_name_is_not_resumed(tmp_path: Path) -> None:
    path, program = tmp_path / "k.db", tmp_path / "prog"
    program.write_text("#!/bin/sh\nsleep 0.1\n")
    program.chmod(0o755)
    with begun(path, "sleep 0.1", str(program)) as process:
        process.kill()
    program.write_text("#!/bin/sh\nsleep 0.2\n")
    done = cbench("ab", "--resume", str(path))
    assert done.returncode == 2
    assert f"{path}: {program}: not the program that the comparison started with" in error_line(done)


@pytest.mark.slow
def test_a_stored_comparison_is_compared_and_exported_like_other_commands(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    assert cbench("ab", "--blocks", "8", "-o", str(path), "--", "true", "sleep 0.2").returncode in (0, 1)
    done = cbench("compare", f"{path}:true", f"{path}:sleep 0.2", "--json")
    assert done.returncode == 1, done.stderr
    (row,) = json.loads(done.stdout)["comparisons"]
    assert row["outcome"] == "higher"
    assert row["notes"][-1].endswith(f"noise floor of cbench ab: `cbench ab --resume {path}` shows its verdict")
    assert " slower than true " in cbench("ab", "--resume", str(path)).stdout
    done = cbench("export", str(path), "--format", "csv")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_damaged_comparison_is_reported_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    assert cbench("ab", "--blocks", "6", "-o", str(path), "--", "true", "true").returncode in (0, 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE trial SET counts = replace(counts, '\"block\":3', '\"block\":9')")
        connection.commit()
    assert f"{path}: damaged: block 3 is incomplete" in error_line(cbench("ab", "--resume", str(path)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE series SET facts = replace(facts, '\"arms\":', '\"legs\":')")
        connection.commit()
    assert f"{path}: damaged" in error_line(cbench("ab", "--resume", str(path)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM trial",
        "UPDATE series SET ended = replace(ended, '\"seconds\":', '\"seconds\":-')",
        "UPDATE series SET facts = replace(facts, '\"seed\":1', '\"sead\":1')",
        'UPDATE run SET host = replace(host, \'"isolated_cpus":""\', \'"isolated_cpus":"x"\')',
        "UPDATE trial SET value = 0",
    ],
)
def test_no_damage_causes_a_traceback(tmp_path: Path, change: str) -> None:
    path = tmp_path / "s.db"
    assert cbench("ab", "--blocks", "2", "-o", str(path), "--", "true", "true").returncode == 2
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    done = cbench("ab", "--resume", str(path))
    assert done.returncode in (1, 2)
    assert error_line(done).startswith(f"{path}: damaged") or "isolated_cpus" in change


def test_it_loads_no_numpy() -> None:
    code = (
        "import sys\nfrom cbench.ab import run, stored, table\n"
        "print([name for name in ('numpy', 'matplotlib', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"

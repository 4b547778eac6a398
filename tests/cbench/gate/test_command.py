"""`cbench gate` as CI runs it, on a suite whose times are drawn, so that no busy machine changes them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cbench.formats.registry import read
from tests.cbench.gate.drawn import COMMAND, SLOWER, SUITE, gate, repository, written
from tests.cbench.running import CBENCH, cbench, comes, error_line

PROGRAMS = "old = '{program}'\nnew = '{program} -v'\nlayouts = 6\n"


@pytest.mark.slow
def test_identical_code_is_green_and_a_slowdown_red_with_every_report(tmp_path: Path) -> None:
    done = gate(tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert [test["outcome"] for test in content["tests"]] == ["passed"] * 3
    (session,) = content["sessions"]
    assert session["runs"] == 3 * session["blocks"]
    assert bool(session["causes"]) == (session["polluted"] > 0)
    reports = ("--markdown", str(tmp_path / "m.md"), "--junit", str(tmp_path / "j.xml"))
    done = gate(tmp_path, "--new", SLOWER, *reports, "--artifacts", str(tmp_path / "runs"))
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("red: 3 tests: 1 regression, 2 passed\n  regression: BenchmarkT1: +")
    assert done.stdout.count("\n    disturbed: ") == 2
    assert "| `BenchmarkT1` | regression |" in (tmp_path / "m.md").read_text()
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["BenchmarkT1"]
    runs = tmp_path / "runs"
    assert sorted(each.name for each in runs.iterdir()) == ["session1", "session2"]
    compared = cbench("compare", str(runs / "session1" / "old"), str(runs / "session1" / "new"), "--json")
    assert "BenchmarkT1" in json.loads(compared.stdout)["regressions"]  # another one in 5 % of repetitions


@pytest.mark.slow
def test_revisions_are_built_and_compared_and_the_repository_stays_as_it_is(tmp_path: Path) -> None:
    git = repository(tmp_path)
    (tmp_path / "suite.py").write_text(SUITE)
    (tmp_path / "factor").write_text("1.0")
    git("add", ".")
    git("commit", "-qm", "one")
    (tmp_path / "factor").write_text("1.05")
    git("commit", "-qam", "two")
    before = git("status", "--porcelain", "--branch"), git("worktree", "list")
    run = f"{sys.executable} -S built.py {{results}}"
    build = "{ echo import sys; echo \"sys.argv.append('$(cat factor)')\"; cat suite.py; } >built.py"
    file = tmp_path / "gate.toml"
    file.write_text(f"old = 'HEAD~1'\nnew = 'HEAD'\nrun = '{run}'\nbuild = '''{build}'''\nblocks = 12\n")
    done = cbench("gate", str(file))
    assert done.returncode == 1, done.stderr
    assert "regression: BenchmarkT1" in done.stdout
    file.write_text(file.read_text().replace("echo import sys;", "echo import sys; echo \\# {seed};") + "layouts = 6\n")
    done = cbench("gate", str(file))
    assert done.returncode == 1, done.stderr
    assert "regression: BenchmarkT1" in done.stdout
    assert "session 2: 12 blocks of 6 layouts in " in done.stdout
    file.unlink()
    assert (git("status", "--porcelain", "--branch"), git("worktree", "list")) == before


@pytest.mark.slow
def test_programs_are_built_in_each_layout_and_compared(tmp_path: Path) -> None:
    build = "printf '#!/bin/sh\\n# %s\\nsleep $1\\n' {seed} >{program} && chmod +x {program}"
    text = f'old = \'{{program}} 0.01\'\nnew = \'{{program}} 0.15\'\nlayouts = 6\nblocks = 12\nbuild = """{build}"""\n'
    done = gate(tmp_path, text=text.replace("\\", "\\\\"))
    assert done.returncode == 1, done.stderr
    assert "regression: wall time: +" in done.stdout
    assert "session 1: 12 blocks of 6 layouts in " in done.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("new = 'x'\n", "gate.toml: old: is missing"),
        ("old = 'true'\nnew = 'true'\nthreshold = '3'\n", "gate.toml:3: threshold: "),
        ("old = 'true'\nnew = 'true'\nbuild = 'make'\n", "gate.toml:3: build: applies only to git revisions"),
        ("old = 'true {results}'\nnew = 'true'\n", "gate.toml:2: new: has no {results}, but the other arm does"),
        (
            "old = 'true'\nnew = 'true'\nlayouts = 3\n",
            "gate.toml:3: layouts: 3: must be from 6, below which no difference",
        ),
        ("old = 'true'\nnew = 'true'\nlayouts = 6\n", "gate.toml:3: layouts: arm old is not built; use a revision"),
        (PROGRAMS + "build = 'cc -o {program}'\n", "gate.toml:4: build: has no {seed}: without it, all builds"),
        (
            PROGRAMS + "build = 'cc {seed}'\n",
            "gate.toml:4: build: has no {program}: use it as the path of the executable",
        ),
        (
            PROGRAMS + "preset = 'luck'\nbuild = 'cc -o {program}'",
            "gate.toml:4: preset: 'luck': must be one of alignment, lld",
        ),
        ("old = 'true'\nnew = 'true'\npreset = 'lld'\n", "gate.toml:3: preset: has no effect unless layouts"),
        ("old = 'true'\nnew = 'true'\nspeed = 1\n", "gate.toml:3: speed: unknown"),
        ("old = 'true'\nnew = 'true'\nbudget_s = 0\n", "gate.toml:3: budget_s: 0: must be from 0.1"),
        ("old = 'true'\nnew = 'true'\nbudget_s = 'x'\n", "gate.toml:3: budget_s: 'x': must be a number"),
        (
            "old = 'true {result}'\nnew = 'true'\n",
            "gate.toml:1: old: {result}: unknown; valid here: {results}, {program}",
        ),
        (
            "old = 'true'\nnew = 'true'\nprepare = 'rm {results}'\n",
            "gate.toml:3: prepare: {results}: unknown; valid here:",
        ),
        (
            PROGRAMS + "build = 'cc -o {program} {seeds}'\n",
            "gate.toml:4: build: {seeds}: unknown; valid here: {program}, ",
        ),
        ("old = 'true'\nnew = 'true'\nthreshold = 1\n", "gate.toml:3: threshold: 1: must be a string"),
        (
            "old = 'true'\nnew = 'true'\nthreshold = '1000%'\n",
            "threshold: '1000%': must be at least 0.01% and below 100%, such as 1%",
        ),
        (
            "old = 'true'\nnew = 'true'\nthreshold = '0.001%'\n",
            "gate.toml:3: threshold: '0.001%': must be at least 0.01%",
        ),
        (
            "old = 'true'\nnew = 'true'\nbetter = 'more'\n",
            "gate.toml:3: better: 'more': must be one of higher, lower",
        ),
        ("[gate]\nold = 'true'\n", "gate.toml:1: gate: unknown; valid here: old, "),
        ("old = 'true'\nnew = 'true'\nlayouts = 6\nblocks = 2\n", "gate.toml:3: layouts: 6: more than blocks = 2"),
        ("old = 'true \"'\nnew = 'true'\n", "gate.toml:1: old: 'true \"': No closing quotation"),
        (
            "old = 'no-such-program'\nnew = 'true'\n",
            "no-such-program: no such program; for shell built-ins and operators set shell = true",
        ),
        ("old = 'false'\nnew = 'true'\n", "old: exited with 1 (ignore_failure = true measures it anyway)"),
        (
            "old = 'sleep 9'\nnew = 'true'\ntimeout_s = 1\n",
            "old: timed out after 1 s and was killed (raise timeout_s)",
        ),
        ("old = 'true'\nnew = 'true'\ncpus = '9999'\n", "gate.toml: cpus: 9999: not online"),
        (PROGRAMS + "build = 'false {program} {seed}'\n", "build (old, seed "),
        ("old = 'true {results}'\nnew = 'true {results}'\nbudget_s = 1\n", "old, warm-up: wrote no results"),
    ],
)
def test_tests_that_cannot_be_judged_this_way_are_reported_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    report, summary = tmp_path / "gate.xml", tmp_path / "gate.md"
    summary.write_text("**cbench gate: green**")
    done = gate(tmp_path, "--junit", str(report), "--markdown", str(summary), text=text)
    assert done.returncode == 2
    assert summary.read_text() == f"**cbench gate: cannot judge**\n\n    cbench: error: {error_line(done)}\n"
    assert says in error_line(done)
    suite = ElementTree.parse(report).getroot()
    assert [suite.get(count) for count in ("tests", "errors", "failures", "skipped")] == ["1", "1", "0", "0"]
    (error,) = suite.findall("testcase/error")
    assert error.get("message") == error_line(done)


@pytest.mark.slow
def test_a_killed_gate_leaves_an_error_in_its_reports(tmp_path: Path) -> None:
    begun, report, summary = tmp_path / "begun", tmp_path / "gate.xml", tmp_path / "gate.md"
    summary.write_text("**cbench gate: green**")
    written(tmp_path, f"old = 'touch {begun}; exec sleep 600'\nnew = 'true'\nshell = true\n")
    command = [*CBENCH, "gate", str(tmp_path / "gate.toml"), "--junit", str(report), "--markdown", str(summary)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        assert comes(begun.exists)
        process.kill()
    (error,) = ElementTree.parse(report).getroot().findall("testcase/error")
    assert "it was killed" in (error.get("message") or "")
    assert summary.read_text().startswith("**cbench gate: cannot judge**\n\n    cbench: error: the gate did not finish")


@pytest.mark.slow
def test_a_value_that_was_zero_is_a_regression_and_two_zeros_pass(tmp_path: Path) -> None:
    text = 'shell = true\nblocks = 20\nold = """{}"""\nnew = """{}"""\n'
    program = 'echo "BenchmarkA 1 {} B/op {} allocs/op 0 other" >{{results}}'
    done = gate(tmp_path, text=text.format(program.format(0, 0), program.format("$((64 + $$ % 7))", 0)))
    assert done.returncode == 1, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "regression: " in line and "BenchmarkA" in line]
    assert "old 0 and new 6" in line
    assert "B/op (medians)" in line
    assert "1 regression, 2 passed" in done.stdout


@pytest.mark.slow
def test_the_direction_of_a_unit_that_does_not_imply_it_is_reported_with_a_difference(tmp_path: Path) -> None:
    program = 'echo "BenchmarkA 1 {} points 7 ns/op" >{{results}}'
    text = f'shell = true\nblocks = 20\nold = """{program.format(99)}"""\nnew = """{program.format(90)}"""\n'
    said = "cbench: lower values are taken as better for "
    done = gate(tmp_path, text=text)
    assert (done.returncode, "1 improvement" in done.stdout) == (0, True)
    assert sum(line.startswith(said) for line in done.stderr.splitlines()) == 1
    done = gate(tmp_path, text=f"{text}better = 'higher'\n")
    assert (done.returncode, said in done.stderr) == (1, False)


@pytest.mark.slow
def test_braces_of_the_shell_are_not_placeholders(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    command = "x=1; cat {a,b} >/dev/null; test ${x} = 1 || test ${x:-1}; { true; }"
    done = gate(
        tmp_path, text=f"old = '{command}'\nnew = '{command}'\nshell = true\nignore_failure = true\nblocks = 2\n"
    )
    assert done.returncode == 2
    assert "2 of at least 6 blocks; raise blocks" in done.stdout


@pytest.mark.slow
def test_an_option_is_named_where_it_is_wrong(tmp_path: Path) -> None:
    done = gate(tmp_path, "--new", "true {result}", text="old = 'true'\nnew = 'true'\n")
    assert error_line(done) == "--new: {result}: unknown; valid here: {results}, {program}"
    done = gate(tmp_path, "--old", "", text="old = 'true'\nnew = 'true'\n")
    assert error_line(done) == "--old: is empty: give a command, or a git revision if run is set"


@pytest.mark.slow
def test_a_regression_is_reported_although_a_file_cannot_be_written(tmp_path: Path) -> None:
    reports = ("--markdown", "/dev/full", "--junit", str(tmp_path / "j.xml"))
    done = gate(tmp_path, "--new", SLOWER, *reports)
    assert done.returncode == 2
    assert done.stdout.startswith("red: 3 tests: 1 regression, 2 passed\n")
    assert done.stderr.splitlines()[-1] == "cbench: error: --markdown /dev/full: No space left on device"
    assert ElementTree.parse(tmp_path / "j.xml").getroot().get("failures") == "1"


@pytest.mark.slow
def test_a_run_with_damaged_results_is_named_by_its_arm_and_number(tmp_path: Path) -> None:
    count = "n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) >count; "
    times = '{"results": [{"command": "x", "times": [%s]}]}'
    new = f"{count} if [ $n -lt 3 ]; then echo '{times % 1}'; else echo '{times % 'null'}'; fi >{{results}}"
    text = f"""old = "echo '{times.replace('"', chr(92) + '"') % 1}' >{{results}}"\nshell = true\nblocks = 12\n"""
    new = new.replace("\\'", "'").replace('"', '\\"')
    done = gate(tmp_path, text=f'{text}new = "{new}"\n')
    assert done.returncode == 2
    assert error_line(done).startswith("new, run 3: hyperfine JSON: results[0].times")


@pytest.mark.slow
@pytest.mark.parametrize("command", [COMMAND, "true"])
def test_each_arm_keeps_one_result_per_block(tmp_path: Path, command: str) -> None:
    kept = tmp_path / "runs"
    done = gate(tmp_path, "--artifacts", str(kept), text=f"old = '{command}'\nnew = '{command}'\nblocks = 4\n")
    assert done.returncode == 2, done.stderr
    folders = [kept / "session1" / arm for arm in ("old", "old-copy", "new")]
    assert sorted(folders) == sorted((kept / "session1").iterdir())
    for folder in folders:
        assert {len(sample.processes) for sample in read(folder)} == {4}
    compared = cbench("compare", str(folders[0]), str(folders[2]), "--json")
    assert json.loads(compared.stdout)["tests"]


@pytest.mark.slow
def test_files_that_are_the_gate_itself_or_written_twice_are_refused(tmp_path: Path) -> None:
    file, other = str(tmp_path / "gate.toml"), str(tmp_path / "x")
    for options, says in (
        (("--markdown", file), f"--markdown {file}: the same file as {file}; choose another path"),
        (("--artifacts", file), f"--artifacts {file}: the same file as {file}; choose another path"),
        (
            ("--markdown", other, "--junit", f"{tmp_path}/./x"),
            f"--junit {tmp_path}/x: the same file as --markdown; choose another path",
        ),
        (
            ("--junit", other, "--artifacts", other),
            f"--artifacts {other}: the same file as --junit; choose another path",
        ),
    ):
        done = gate(tmp_path, *options, text="old = 'true'\nnew = 'true'\n")
        assert done.returncode == 2
        assert error_line(done) == says
        assert (tmp_path / "gate.toml").read_text() == "old = 'true'\nnew = 'true'\n"
        assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_missing_file_and_a_full_folder_are_refused(tmp_path: Path) -> None:
    done = cbench("gate", str(tmp_path / "none.toml"))
    assert done.returncode == 2
    assert "no such file; create it as in the example of docs/gate.md" in error_line(done)
    done = gate(tmp_path, "--artifacts", str(tmp_path))
    assert done.returncode == 2
    assert "choose a new or empty directory" in error_line(done)

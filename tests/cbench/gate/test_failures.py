"""A gate whose benchmarks fail, or whose revisions cannot be used, reports this in one line and is not green."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cbench.gate.config import load
from cbench.gate.result import run
from quiet import UsageError
from tests.cbench.gate.drawn import gate, repository
from tests.cbench.running import cbench, error_line

TABLE = "printf 'test,value,unit\\nscore,{},points\\nsmall,1,points\\n' >{{results}}"
GOOGLE = '{{"context": {{}}, "benchmarks": [{{"name": "BM_b", "real_time": 1}}, {{"name": "BM_a/8", {}}}]}}'
FAILED, TIMED = '"error_occurred": true, "error_message": "broken"', '"real_time": 5'


def files(folder: Path, old: str, new: str) -> str:
    """A gate.toml whose programs write these results."""
    (folder / "old.json").write_text(old)
    (folder / "new.json").write_text(new)
    return f"old = 'cp {folder}/old.json {{results}}'\nnew = 'cp {folder}/new.json {{results}}'\nblocks = 6\n"


def shell(old: str, new: str, more: str = "") -> str:
    return f'old = """{old}"""\nnew = """{new}"""\nshell = true\nblocks = 6\n{more}'.replace("\\", "\\\\")


@pytest.mark.parametrize("runs", [3, 6])
def test_a_test_without_a_value_in_new_is_not_green(tmp_path: Path, runs: int) -> None:
    reports = ("--markdown", str(tmp_path / "m.md"), "--junit", str(tmp_path / "j.xml"))
    often = "; n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n; test $((n % 2)) = 0 || "
    new = TABLE.format("5") + often + TABLE.format("nan") if runs == 3 else TABLE.format("nan")
    done = gate(tmp_path, *reports, text=shell(TABLE.format("5"), new))
    assert done.returncode == 2, done.stdout
    why = f"failed in {runs} of 6 runs of new: line 2: column value: "
    assert f"\n  cannot judge: score: {why}" in done.stdout
    assert done.stdout.startswith("cannot judge: 1 test: 1 passed; 1 failed in new\n")
    unfolded = (tmp_path / "m.md").read_text().split("<details>")[0]
    assert f"- cannot judge: `score`: {why}" in unfolded
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("2", "1")
    (error,) = suite.findall("testcase[@name='score']/error")
    assert (error.get("message") or "").startswith(why)


def test_a_benchmark_that_fails_in_new_only_is_not_green_and_its_message_is_shown(tmp_path: Path) -> None:
    text = files(tmp_path, GOOGLE.format(TIMED), GOOGLE.format(FAILED))
    done = gate(tmp_path, "--json", text=text)
    assert done.returncode == 2, done.stdout
    content = json.loads(done.stdout)
    assert content["failed_in_new"] == {"BM_a/8": "failed in 6 of 6 runs of new: broken"}
    assert (content["only_in_old"], content["left_out"]) == ([], {})


@pytest.mark.slow
@pytest.mark.parametrize(("old", "said"), [(FAILED, "6 of 6 runs of old and "), (TIMED, "6 of 6 runs of old ")])
def test_a_benchmark_that_fails_in_old_is_listed_and_does_not_block_a_merge(
    tmp_path: Path, old: str, said: str
) -> None:
    new = FAILED if old == FAILED else TIMED
    done = gate(tmp_path, text=files(tmp_path, GOOGLE.format(FAILED), GOOGLE.format(new)))
    assert done.returncode == 0, done.stdout
    assert "\n  not judged: BM_a/8: failed in 6 of 6 runs of old and 6 of 6 runs of old (copy)" in done.stdout
    assert said in done.stdout or old == TIMED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            shell(
                "echo x >{results}; echo 'E assert 1 == 2'; echo '1 failed in 0.1s'; echo 'Wrote data' >&2; exit 1",
                ": {results}",
            ),
            "old: exited with 1: E assert 1 == 2 | 1 failed in 0.1s | Wrote data (ignore_failure = true uses",
        ),
        (
            shell("echo broken >&2; exit 7", "exit 7", "ignore_failure = true").replace("exit 7", "exit 7 # {results}"),
            "old, warm-up: exited with 7 (broken) and wrote no results: ",
        ),
        (
            "old = 'true'\nnew = 'sleep 9'\ntimeout_s = 0.1\n",
            "new: timed out after 0.1 s and was killed (raise timeout_s)",
        ),
        ("old = 'true'\nnew = 'true'\nprepare = 'test -f no'\n", "old: prepare: test -f no: exited with 1"),
        ("\ufeffold = 'true'\nnew = 'true'\nblocks = 0\n", "gate.toml:3: blocks: 0: must be"),
    ],
)
def test_an_error_names_its_side_its_key_and_what_the_program_printed(tmp_path: Path, text: str, says: str) -> None:
    done = gate(tmp_path, text=text)
    assert done.returncode == 2
    assert says in error_line(done)


def commits(folder: Path) -> Path:
    """A repository in which the tag v0 has no directory perf, where gate.toml is."""
    (folder / "perf").mkdir(parents=True)
    git = repository(folder)
    (folder / "README").touch()
    git("add", ".")
    git("commit", "-qm", "one")
    git("tag", "v0")
    file = folder / "perf" / "gate.toml"
    file.write_text("old = 'v0'\nnew = 'HEAD'\nrun = 'true'\nblocks = 1\n")
    git("add", ".")
    git("commit", "-qm", "two")
    return file


def test_a_gate_file_in_a_new_directory_is_refused_with_the_place_it_needs(tmp_path: Path) -> None:
    file = commits(tmp_path / "repository")
    why = r"old: revision [0-9a-f]{12} has no directory perf/; move gate\.toml to a directory that both revisions have"
    with pytest.raises(UsageError, match=why):
        load(file)
    assert load(file, old="HEAD").arms.prefix == "perf/"


def test_a_revision_that_a_shallow_clone_lacks_is_reported_with_the_remedy(tmp_path: Path) -> None:
    commits(tmp_path / "repository")
    git = repository(tmp_path)
    git("clone", "-q", "--depth", "1", f"file://{tmp_path}/repository", str(tmp_path / "cut"))
    with pytest.raises(UsageError, match=r"old: 'v0': no such revision in cut, a shallow .*git fetch --unshallow"):
        load(tmp_path / "cut" / "perf" / "gate.toml")


@pytest.mark.slow
def test_a_gate_of_one_commit_warns(tmp_path: Path) -> None:
    file = commits(tmp_path / "repository")
    done = cbench("gate", str(file), "--old", "HEAD")
    assert "cbench: old and new are the same commit " in done.stderr


def test_a_directory_that_cannot_hold_artifacts_is_refused_before_the_builds(tmp_path: Path) -> None:
    folder = Path("/sys/fs/pstore")
    if not folder.is_dir() or any(folder.iterdir()):
        pytest.skip("no empty directory in which root cannot create files")
    (tmp_path / "gate.toml").write_text("old = 'no-such-program'\nnew = 'true'\n")
    with pytest.raises(UsageError, match=f"--artifacts {folder}: "):
        run(load(tmp_path / "gate.toml"), folder, lambda *_: None, lambda _: None)

"""contrib/gate.sh, the action of GitHub and the job of GitLab, executed as their services would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from xml.etree import ElementTree

import pytest
import yaml

from tests import CHECKOUT
from tests.cbench.gate.drawn import COMMAND, repository, written

CONTRIB = CHECKOUT / "contrib"


EXPRESSION = re.compile(r"\$\{\{ (.+?) \}\}")
BASE, HEAD = "github.event.pull_request.base.sha", "github.event.pull_request.head.sha"


def runner(folder: Path, installed: bool = True) -> dict[str, str]:
    """The environment of a runner, where cbench is installed or not."""
    program = folder / "bin" / "cbench"
    if installed:
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m cbench "$@"\n')
        program.chmod(0o755)
    path = {"PATH": f"{program.parent}:/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT)}
    return {**os.environ, **path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}


def run(command: Sequence[str | Path], folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def script(folder: Path, *, installed: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    """contrib/gate.sh, as a CI job calls it."""
    return run([CONTRIB / "gate.sh", "gate.toml"], folder, runner(folder, installed) | variables)


def filled(text: str, known: Mapping[str, str]) -> str:
    """With the values of its expressions. KeyError for one that has none."""
    return EXPRESSION.sub(lambda found: known[found[1]], text)


def action(folder: Path, event: Mapping[str, str], **given: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The first step of the action, as GitHub's runner executes it, and the directory that its second step uploads."""
    document = yaml.safe_load((CONTRIB / "github-action/action.yml").read_text())
    inputs = {f"inputs.{name}": filled(each["default"], event) for name, each in document["inputs"].items()}
    inputs |= {f"inputs.{name}": value for name, value in given.items()}
    step, upload = document["runs"]["steps"]
    assert (step["shell"], upload["if"], upload["with"]["name"]) == ("sh", "always()", "${{ inputs.artifact }}")
    (folder / "step.sh").write_text(step["run"])
    own = {name: filled(value, inputs) for name, value in step["env"].items()}
    env = runner(folder) | own | {"GITHUB_ACTION_PATH": str(CONTRIB / "github-action")}
    return run(["sh", "-e", folder / "step.sh"], folder, env), folder / filled(upload["with"]["path"], inputs)


def merge_request(folder: Path) -> dict[str, str]:
    """A repository whose branch makes one benchmark slower, while its base has gone on: commits by their names."""
    git = repository(folder)
    (folder / "factor").write_text("1.0")
    build = "{ echo import sys; echo \"sys.argv.append('$(cat factor)')\"; cat suite.py; } >built.py"
    run = f"{sys.executable} -S built.py {{results}}"
    written(folder, f"old = 'HEAD'\nnew = 'HEAD'\nrun = '{run}'\nbuild = '''{build}'''\nblocks = 12\n")
    git("add", ".")
    git("commit", "-qm", "one")
    commits = {"merge base": git("rev-parse", "HEAD").strip()}
    git("checkout", "-qb", "topic")
    (folder / "factor").write_text("1.05")
    git("commit", "-qam", "slower")
    commits["head"] = git("rev-parse", "HEAD").strip()
    git("checkout", "-qb", "base", "HEAD~1")
    (folder / "factor").write_text("2.0")
    git("commit", "-qam", "the base is much slower now")
    commits["base"] = git("rev-parse", "HEAD").strip()
    git("checkout", "-q", "topic")
    return commits


def regressions(report: Path) -> list[str | None]:
    return [case.get("name") for case in ElementTree.parse(report).getroot() if case.find("failure") is not None]


@pytest.mark.slow
def test_the_action_compares_the_head_of_a_pull_request_with_its_merge_base(tmp_path: Path) -> None:
    commits = merge_request(tmp_path)
    done, uploaded = action(tmp_path, {BASE: commits["base"], HEAD: commits["head"]})
    assert done.returncode == 1, done.stderr
    assert f"old: revision {commits['merge base'][:12]}" in done.stderr
    assert (tmp_path / "summary.md").read_text().startswith("**cbench gate: red")
    assert regressions(uploaded / "gate.xml") == ["BenchmarkT1"]
    assert (uploaded / "gate.runs/session2/new").is_dir()


@pytest.mark.slow
def test_the_action_compares_as_the_file_says_where_there_is_no_pull_request(tmp_path: Path) -> None:
    commits = merge_request(tmp_path)
    done, uploaded = action(tmp_path, {BASE: "", HEAD: ""}, results="elsewhere")
    assert done.returncode == 0, done.stderr
    assert f"old: revision {commits['head'][:12]}" in done.stderr
    assert uploaded == tmp_path / "elsewhere"
    assert regressions(uploaded / "gate.xml") == []


def gitlab(
    folder: Path, *, installed: bool = True, **variables: str
) -> tuple[subprocess.CompletedProcess[str], Path, Path]:
    """The job of GitLab with these variables, as a runner executes it; its artifact and its JUnit report."""
    job = yaml.safe_load((CONTRIB / "gitlab/cbench-gate.yml").read_text())[".cbench-gate"]
    assert job["variables"]["GATE_SCRIPT"] == "contrib/gate.sh"  # of a project that has it
    own = job["variables"] | {"GATE_SCRIPT": str(CONTRIB / "gate.sh")} | variables
    done = run(["sh", "-e", "-c", "\n".join(job["script"])], folder, runner(folder, installed) | own)
    (kept,) = job["artifacts"]["paths"]
    report = job["artifacts"]["reports"]["junit"]
    return done, folder / Template(kept).substitute(own), folder / Template(report).substitute(own)


@pytest.mark.slow
def test_the_job_of_gitlab_compares_the_commit_with_its_merge_base(tmp_path: Path) -> None:
    commits = merge_request(tmp_path)
    given = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": commits["merge base"], "CI_COMMIT_SHA": commits["head"]}
    done, kept, report = gitlab(tmp_path, **given)
    assert done.returncode == 1, done.stderr
    assert (kept / "gate.md").read_text().startswith("**cbench gate: red")
    assert regressions(report) == ["BenchmarkT1"]


def test_the_job_of_gitlab_keeps_the_results_in_the_directory_that_is_chosen(tmp_path: Path) -> None:
    given = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "a", "CI_COMMIT_SHA": "b", "GATE_OUT": "elsewhere"}
    done, kept, report = gitlab(tmp_path, installed=False, **given)
    assert done.returncode == 2, done.stderr
    assert (kept / "gate.md").read_text().startswith("**cbench gate: cannot judge")
    assert ElementTree.parse(report).getroot().find("testcase/error") is not None


@pytest.mark.slow
def test_the_script_for_ci_ends_as_the_gate_does_and_publishes_the_summary_of_the_last_run(tmp_path: Path) -> None:
    results = tmp_path / "gate-results"
    written(tmp_path, f"old = '{COMMAND}'\nnew = '{COMMAND}'\nblocks = 12\n")
    for _ in range(2):  # a second run in the same directory
        done = script(tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "summary.md").read_text().count("**cbench gate: green") == 2
    assert {each.name for each in results.iterdir()} == {f"gate.{end}" for end in ("json", "log", "md", "runs", "xml")}
    (tmp_path / "summary.md").unlink()
    written(tmp_path, "old = 'true'\n")
    done = script(tmp_path)
    assert done.returncode == 2
    summary = (tmp_path / "summary.md").read_text()
    assert summary == done.stdout == (results / "gate.md").read_text()
    missing = "gate.toml: new: is missing: give a command, or a git revision if run is set"
    assert summary == f"**cbench gate: cannot judge**\n\n    cbench: error: {missing}\n"
    assert done.stderr == f"cbench: error: {missing}\n"
    (error,) = ElementTree.parse(results / "gate.xml").getroot().findall("testcase/error")
    assert error.get("message") == missing


@pytest.mark.slow
def test_the_script_for_ci_compares_with_the_merge_base(tmp_path: Path) -> None:
    git = repository(tmp_path)
    written(tmp_path, f"old = 'HEAD'\nnew = 'HEAD'\nrun = '{COMMAND}'\nblocks = 2\n")
    git("add", ".")
    git("commit", "-qm", "one")
    base = git("rev-parse", "HEAD").strip()
    git("branch", "topic")
    git("commit", "-q", "--allow-empty", "-m", "the tip of the base branch")
    tip = git("rev-parse", "HEAD").strip()
    done = script(tmp_path, GATE_BASE=tip, GATE_NEW="topic")
    assert done.returncode == 2  # two blocks cannot judge
    assert f"old: revision {base[:12]}\n" in done.stderr
    assert "cannot judge: 3 tests: 3 cannot judge" in (tmp_path / "summary.md").read_text()
    done = script(tmp_path, GATE_BASE="no-such-branch")
    assert done.returncode == 2
    assert "no merge base of no-such-branch and HEAD: a name is wrong, or the history is not whole" in done.stdout


def test_the_script_for_ci_reports_that_cbench_is_not_installed(tmp_path: Path) -> None:
    done = script(tmp_path, installed=False)
    assert done.returncode == 2
    assert "cbench is not installed on this runner" in (tmp_path / "summary.md").read_text()
    (error,) = ElementTree.parse(tmp_path / "gate-results" / "gate.xml").getroot().findall("testcase/error")
    assert (error.get("message") or "").startswith("cbench is not installed on this runner")

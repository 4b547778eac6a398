"""Revisions are built in clones, once, and the repository stays as it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cbench.ab.arms import stage
from cbench.ab.options import AbOptions, Arm
from cbench.ab.revisions import checked_out, commit_of, repository_of
from quiet import UsageError

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *IDENTITY, *arguments], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits of a script in a directory; a file that is not committed."""
    folder = tmp_path / "repository"
    (folder / "sub").mkdir(parents=True)
    git(folder, "init", "-q")
    for text in ("one", "two"):
        (folder / "sub" / "prog.in").write_text(f"#!/bin/sh\necho {text}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", text)
    (folder / "sub" / "prog.in").write_text("changed, and not committed")
    return folder


BUILD = "cp prog.in prog; chmod +x prog; echo built >> ../../count"


def test_a_revision_is_built_once_and_leaves_the_repository_alone(repository: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    top, prefix = repository_of(str(repository / "sub"))
    assert (top, prefix) == (str(repository), "sub/")
    commit = commit_of(top, "HEAD~1")
    target = tmp_path / "target"
    for _ in range(2):
        where = checked_out(top, commit, BUILD, prefix, target, os.environ)
    assert subprocess.run([where / "prog"], capture_output=True, text=True, check=True).stdout == "one\n"
    assert (target / "count").read_text() == "built\n"
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before
    assert git(repository, "worktree", "list").count("\n") == 1


def test_a_build_that_was_killed_begins_again(repository: Path, tmp_path: Path) -> None:
    commit, target = commit_of(str(repository), "HEAD"), tmp_path / "target"
    checked_out(str(repository), commit, BUILD, "sub", target, os.environ)
    (target / "built").unlink()
    (target / "tree" / "sub" / "prog").write_text("half of it")
    where = checked_out(str(repository), commit, BUILD, "sub", target, os.environ)
    assert "echo two" in (where / "prog").read_text()


def test_anything_but_a_revision_is_refused_in_one_line(repository: Path, tmp_path: Path) -> None:
    for name in ("nothing", "--output=x"):
        with pytest.raises(UsageError, match=f"--revision {name}: no such revision in "):
            commit_of(str(repository), name)
    with pytest.raises(UsageError, match=rf"^{tmp_path}: revisions need a git working tree \(git rev-parse: .*"):
        repository_of(str(tmp_path))


def test_a_failing_build_is_named_with_its_last_line(repository: Path, tmp_path: Path) -> None:
    commit = commit_of(str(repository), "HEAD")
    with pytest.raises(UsageError, match=rf"revision {commit[:12]}: --build: .*exited with 2: no compiler"):
        checked_out(str(repository), commit, "echo no compiler >&2; exit 2", "", tmp_path / "t", os.environ)
    assert not (tmp_path / "t" / "built").exists()


def test_a_folder_that_a_revision_does_not_have_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no directory none"):
        checked_out(str(repository), commit_of(str(repository), "HEAD"), "", "none", tmp_path / "t", os.environ)


def test_arms_of_one_revision_share_its_build_unless_it_depends_on_the_arm(repository: Path, tmp_path: Path) -> None:
    head = commit_of(str(repository), "HEAD")
    arms = tuple(Arm(name, "{program}", head) for name in "ab")
    for build, wanted in (("echo {arm} >{program}", ["a", "a", "b"]), ("echo x >{program}", ["x", "x", "x"])):
        options = AbOptions(
            arms=arms, folder=str(repository), repository=str(repository), build=f"{build}; chmod +x {{program}}"
        )
        place = tmp_path / wanted[-1]
        place.mkdir()
        staged = stage(options, place, print)
        assert [Path(each.path).read_text().strip() for each in staged.commands] == wanted


def test_a_clone_has_the_origin_of_the_repository_so_that_relative_urls_of_submodules_work(
    repository: Path, tmp_path: Path
) -> None:
    for folder in ("server/library", "server/project"):
        (tmp_path / folder).mkdir(parents=True)
        git(tmp_path / folder, "init", "-q")
        git(tmp_path / folder, "commit", "-q", "--allow-empty", "-m", "one")
    project, local = tmp_path / "server" / "project", ("-c", "protocol.file.allow=always")
    git(project, *local, "submodule", "--quiet", "add", "../library", "library")
    git(project, "commit", "-qm", "two")
    git(repository, "clone", "-q", str(project), str(tmp_path / "mine"))
    build = f"git {' '.join(local)} submodule --quiet update --init"
    for target, url in (("a", str(project)), ("b", "../server/project")):
        git(tmp_path / "mine", "remote", "set-url", "origin", url)
        commit = commit_of(str(tmp_path / "mine"), "HEAD")
        where = checked_out(str(tmp_path / "mine"), commit, build, "", tmp_path / "target" / target, os.environ)
        assert (where / "library" / ".git").exists()


def test_a_repository_of_another_user_is_reported_with_the_remedy_of_git(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    why = "revisions need git: the repository belongs to another user; if you trust it, run: git config --global --add"
    with pytest.raises(UsageError, match=f"{why} safe.directory {repository}$"):
        repository_of(str(repository))


def test_a_missing_git_is_reported_without_an_option(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match=f"^{repository}: revisions need git: git is not installed$"):
        repository_of(str(repository))


def test_the_users_name_for_remotes_does_not_matter(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "remote", "add", "origin", "https://example.org/a.git")
    for name, value in (("COUNT", "1"), ("KEY_0", "clone.defaultRemoteName"), ("VALUE_0", "upstream")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    commit = commit_of(str(repository), "HEAD")
    where = checked_out(str(repository), commit, "true", "sub", tmp_path / "new", os.environ)
    assert git(where, "config", "--get", "remote.origin.url").strip() == "https://example.org/a.git"

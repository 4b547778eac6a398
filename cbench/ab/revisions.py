"""Build arms from git revisions: each revision is checked out into a separate clone and built there once.

The clone borrows the repository's objects (git-clone(1), --shared). Unlike a worktree, it registers nothing in the
repository: a killed measurement leaves only a directory in the cache, and the user's repository is unchanged.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from cbench.study.process.run_command import CommandError, run_checked
from quiet import UsageError

BUILD_S = 24 * 3600.0
BUILT = "built"


class UnusableGitError(UsageError):
    """Git is not installed, or it refuses to read a repository of another user."""


def repository_of(folder: str) -> tuple[str, str]:
    """The top of the working tree that contains this directory, and the directory's path in the tree. Raises UsageError
    outside a working tree.
    """
    try:
        return _git(folder, "rev-parse", "--show-toplevel"), _git(folder, "rev-parse", "--show-prefix")
    except UnusableGitError as error:
        raise UsageError(f"{folder}: revisions need git: {error}") from None
    except UsageError as error:
        raise UsageError(f"{folder}: revisions need a git working tree ({error})") from None


def commit_of(repository: str, revision: str) -> str:
    """The commit that a revision names. Raises UsageError if there is none."""
    try:
        return _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except UsageError:
        raise UsageError(f"--revision {revision}: no such revision in {repository}{cut_history(repository)}") from None


def cut_history(repository: str) -> str:
    """The end of a message about a missing revision: the remedy in a shallow clone; "" in a complete one."""
    if _git(repository, "rev-parse", "--is-shallow-repository") != "true":
        return ""
    return ", a shallow clone without the whole history; run: git fetch --unshallow --tags (in CI: fetch-depth: 0)"


def has_folder(repository: str, commit: str, prefix: str) -> bool:
    """Whether a commit contains this directory."""
    try:
        return not prefix or _git(repository, "cat-file", "-t", f"{commit}:{prefix}") == "tree"
    except UsageError:
        return False


def checked_out(
    repository: str, commit: str, build: str, prefix: str, folder: Path, environment: Mapping[str, str]
) -> Path:
    """Check out and build a revision below `folder`, unless a build exists there. Returns the directory `prefix` of the
    revision. Raises UsageError if the checkout or the build fails, or if the revision has no such directory.
    """
    tree, mark = folder / "tree", folder / BUILT
    where = tree / prefix
    if mark.exists():
        return where
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _git(repository, "clone", "--quiet", "--shared", "--origin", "origin", "--no-checkout", ".", str(tree))
    if origin := _origin(repository):  # the base of relative URLs of submodules
        _git(str(tree), "remote", "set-url", "origin", origin)
    _git(str(tree), "checkout", "--quiet", "--detach", commit)
    if not where.is_dir():
        raise UsageError(f"revision {commit[:12]} has no directory {prefix}: run cbench in a directory it contains")
    if build:
        try:
            run_checked(build, str(where), environment, BUILD_S, bound=True)
        except CommandError as error:
            raise UsageError(f"revision {commit[:12]}: --build: {error}") from None
    mark.touch()
    return where


def _origin(repository: str) -> str:
    """The URL of the repository's remote `origin`, "" for none; a relative path becomes absolute."""
    try:
        url = _git(repository, "config", "--get", "remote.origin.url")
    except UsageError:
        return ""
    return os.path.normpath(os.path.join(repository, url)) if url.startswith(("./", "../")) else url


def _git(folder: str, *arguments: str) -> str:
    """Run git and return its output. Raises UnusableGitError if git is not installed or distrusts the repository's
    owner. If git fails otherwise, raises UsageError with the reason that git prints.
    """
    git = {
        name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    }
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=git,
            check=False,
        )
    except FileNotFoundError:
        raise UnusableGitError("git is not installed") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exited with {done.returncode}"]
        if remedy := next((line.strip() for line in said if "--add safe.directory" in line), ""):
            raise UnusableGitError(f"the repository belongs to another user; if you trust it, run: {remedy}")
        fatal = [line for line in said if line.startswith("fatal:")]  # a hint may follow
        raise UsageError(f"git {arguments[0]}: {(fatal or said)[-1]}")
    return done.stdout.strip()

"""Debian's packages, of this machine's architecture or of arm64: fetched and unpacked, never installed.

This machine's apt need not know arm64, and its package lists may be old or partly missing, which only root may mend:
apt gets package lists and a list of installed packages (an empty one) of its own in the lab's cache. Nothing here needs
root, and nothing of an unpacked package is run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.lab.harness import cache
from tests.lab.harness.cache import cache_dir

TIMEOUT_S = 900
OLD_S = 24 * 3600
"""Package lists of this age are fetched again: they name versions that the archive no longer has."""
UPDATED = "updated"
NATIVE, ARM = "amd64", "arm64"
NEWEST_SUITE = "trixie-backports"
"""Where Debian has kernels that are newer than this machine's own release has."""
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class PackageError(Exception):
    """One line: the package that could not be fetched or unpacked, and the reason."""


def search_path() -> str:
    """Where to look for tools."""
    return os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"  # depmod is in sbin


def run(command: list[str], cwd: Path | None = None) -> str:
    """The output of the command. PackageError with its last line when it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": search_path(), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        why = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["no message"]
        raise PackageError(f"{command[0]} exited with {done.returncode}: {why[0]}")
    return done.stdout


def names(prefix: str, arch: str = NATIVE, suite: str = "") -> list[str]:
    """The names of all packages that begin so; of a suite of Debian's archive, or of this machine's own sources."""
    return run(["apt-cache", *_options(arch, suite), "pkgnames", prefix]).split()


def download(packages: list[str], folder: Path, arch: str = NATIVE, suite: str = "") -> None:
    """Fetch just these packages into a directory."""
    _get(["download", *packages], folder, arch, suite)


def download_with_dependencies(packages: list[str], folder: Path, arch: str, suite: str = "") -> None:
    """Fetch these packages and all that they need, as if nothing were installed; of a suite, or of our own sources."""
    (folder / "archives/partial").mkdir(parents=True, exist_ok=True)
    options = [f"-oDir::Cache::archives={folder / 'archives'}", "-oDebug::NoLocking=true", "-y"]
    options += ["-oDir::State::status=/dev/null", "-oDir::Cache::pkgcache=", "-oDir::Cache::srcpkgcache="]
    _get([*options, "--no-install-recommends", "--download-only", "install", *packages], folder, arch, suite)
    for archive in (folder / "archives").glob("*.deb"):
        archive.rename(folder / archive.name)


def _get(arguments: list[str], folder: Path, arch: str, suite: str = "") -> None:
    """apt-get; where it fails, once more with new package lists: these may be old."""
    options = _options(arch, suite)
    try:
        run(["apt-get", *options, "-q", *arguments], cwd=folder)
    except PackageError:
        _update(options, _state(arch, suite))
        run(["apt-get", *options, "-q", *arguments], cwd=folder)


def unpack(folder: Path, root: Path) -> None:
    """Unpack every package in the directory under a root."""
    for archive in sorted(folder.glob("*.deb")):
        run(["dpkg-deb", "-x", str(archive), str(root)])


def programs(name: str, packages: list[str]) -> Path:
    """A directory in the cache with these packages unpacked, for tests that compare with another program in a guest."""

    def fetch(made: Path) -> None:
        download(packages, made)
        unpack(made, made)

    return cache.make(cache_dir() / "programs" / name, fetch)


def _state(arch: str, suite: str) -> Path:
    return cache_dir() / "-".join(filter(None, ("apt", arch, suite)))


def _options(arch: str, suite: str = "") -> list[str]:
    """The options that make apt use this architecture; its package lists are fetched when there are none."""
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if not shutil.which(tool):
            raise PackageError(f"Debian's packages are needed, and there is no {tool} to fetch them with")
    folder = _state(arch, suite)
    lists = folder / "lists"
    settings = {
        "APT::Architecture": arch,
        "APT::Architectures": arch,
        "APT::Sandbox::User": "root",  # the directory may be one that the user _apt cannot enter
        "Dir::State": folder,
        "Dir::State::status": "/dev/null",
        "Dir::State::lists": lists,
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
    }
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    if suite:
        sources = folder / "sources.list"
        sources.write_text(f"deb [signed-by={_KEYRING}] http://deb.debian.org/debian {suite} main\n")
        settings |= {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "/dev/null"}
    options = [f"-o{name}={value}" for name, value in settings.items()]
    there = any(lists.glob("*Packages*"))
    if not there or _age(folder) > OLD_S:
        try:
            _update(options, folder)
        except PackageError:
            if not there:
                raise  # an existing copy is good enough
    return options


def _update(options: list[str], folder: Path) -> None:
    run(["apt-get", *options, "-q", "update"])
    (folder / UPDATED).touch()


def _age(folder: Path) -> float:
    try:
        return time.time() - (folder / UPDATED).stat().st_mtime
    except FileNotFoundError:
        return float("inf")

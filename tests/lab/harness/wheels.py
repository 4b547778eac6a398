"""The project's packages for a guest's own Python: the versions of requirements.lock, checked by its hashes, unpacked.

Only what the project needs when it runs: the dependencies in pyproject.toml, and what the lock file says that these
need ("# via"). Nothing of a wheel is run, so it does not matter that this machine could not.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tests.lab.harness.debian import PackageError

PYTHON = "3.11"  # of Debian 12, which the guests' roots are
PLATFORMS = {
    machine: tuple(f"{kind}_{machine}" for kind in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"))
    for machine in ("aarch64", "x86_64")
}
TIMEOUT_S = 600


def wanted(project: str, lock: str, more: Iterable[str] = ()) -> list[str]:
    """The lock file's entries (name, version and hashes) of what the project needs to run, and of `more` packages."""
    direct = tomllib.loads(project)["project"]["dependencies"]
    needed = {match[0].lower() for each in direct if (match := re.match(r"[\w.-]+", each))} | set(more)
    entries = re.findall(r"^([\w.-]+)(==(?:.*\\\n)*.*\n)((?:    #.*\n)*)", lock, re.MULTILINE)
    users = {name: set(re.findall(r"#\s+(?:via )?([\w.-]+)$", via, re.MULTILINE)) for name, _, via in entries}
    while more := {name for name, by in users.items() if by & needed} - needed:
        needed |= more
    return [name + rest for name, rest, _ in entries if name in needed]


def install(project: str, lock: str, folder: Path, machine: str = "aarch64", more: Iterable[str] = ()) -> None:
    """Fetch them with pip for a machine and unpack them into a directory. PackageError when that fails."""
    with tempfile.TemporaryDirectory(prefix=".wheels-", dir=folder.parent) as temporary:
        fetched = Path(temporary)
        (fetched / "requirements.txt").write_text("".join(wanted(project, lock, more)))
        command = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps"]
        command += ["--require-hashes", "--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp"]
        command += [option for platform in PLATFORMS[machine] for option in ("--platform", platform)]
        command += ["-r", "requirements.txt", "-d", temporary]
        done = subprocess.run(command, cwd=fetched, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode:
            why = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
            raise PackageError(f"no Python packages for {machine}: {(why or ['pip says nothing'])[-1]}")
        for wheel in sorted(fetched.glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)

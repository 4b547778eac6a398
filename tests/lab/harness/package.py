"""The project's Debian package, of the checkout as it is. Only the first build fetches packages from the network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import CHECKOUT
from tests.lab.harness import cache, wheels
from tests.lab.harness.arm_project import files
from tests.lab.harness.debian import PackageError

SOURCES = ("quiet", "cbench", "kernel-configs", "docs/schemas", "pyproject.toml", "setup.py", "README.md", "LICENSE")
BUILDER = CHECKOUT / "contrib/package"
PIP = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
TIMEOUT_S = 900


def ensure() -> Path:
    """The package: cached, or built now. PackageError when something for it cannot be fetched, or it does not build."""
    found = _dependencies()
    taken = [path for name in SOURCES for path in files(CHECKOUT / name)]
    key = cache.digest([*taken, *files(BUILDER), CHECKOUT / "CHANGELOG.md", str(found), Path(__file__).read_bytes()])
    made = cache.make(cache.cache_dir() / "packages" / key, lambda folder: _build(folder, taken, found), keep=2)
    return next(made.glob("*.deb"))


def _build(folder: Path, taken: list[Path], found: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder.parent) as temporary:
        source, out = Path(temporary, "source"), Path(temporary, "out")
        for path in taken:
            target = source / path.relative_to(CHECKOUT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        _run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(out), str(source)])
        (wheel,) = out.glob("*.whl")
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(found), "PYTHONPATH": str(CHECKOUT)}
        _run([sys.executable, str(BUILDER / "deb.py"), str(wheel), str(folder)], offline)


def _dependencies() -> Path:
    """A directory of the wheels that the package contains: for Debian 12's Python all, for later ones cffi."""
    wanted = wheels.wanted((CHECKOUT / "pyproject.toml").read_text(), (CHECKOUT / "requirements.lock").read_text())
    cffi = [each for each in wanted if each.startswith("cffi==")]
    platforms = [word for each in wheels.PLATFORMS["x86_64"] for word in ("--platform", each)]

    def fetch(folder: Path) -> None:
        for minor, entries in ((wheels.PYTHON, wanted), *((f"3.{minor}", cffi) for minor in (12, 13, 14))):
            (folder / "requirements.txt").write_text("".join(entries))
            words = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--python-version", minor]
            words += ["--implementation", "cp", *platforms, "-r", str(folder / "requirements.txt"), "-d", str(folder)]
            _run([*PIP, "download", *words])

    return cache.make(cache.cache_dir() / "package-wheels" / cache.digest([*wanted, *platforms]), fetch, keep=2)


def _run(command: list[str], more: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, env={**os.environ, **(more or {})}, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode:
        why = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["no message"]
        raise PackageError(f"no Debian package: {' '.join(command[1:5])}: {why[0]}")

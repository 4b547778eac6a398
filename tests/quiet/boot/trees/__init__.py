"""Machines by their boot files: one text each, "== PATH [MODE]" ahead of each file's content."""

from __future__ import annotations

from pathlib import Path

from tests.trees import machine, plant

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))


def grow(name: str, root: Path) -> Path:
    """Write a machine of four CPUs with these boot files below a root; returns the root."""
    plant(root, machine(4))
    path: Path | None = None
    for line in (FOLDER / f"{name}.txt").read_text().splitlines(keepends=True):
        if line.startswith("== "):
            words = line.split()
            path = root / words[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
            path.chmod(int(words[2] if len(words) > 2 else "644", 8))
        elif path is not None:
            with path.open("a") as file:
                file.write(line)
    return root


def states(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file with its bytes, mode and time; what a lock leaves in /run is not looked at."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and "run/quiet" not in str(path))
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) for path in files
    }

"""Run the commands of one checkout in a fixed environment."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("quiet", "cbench")
TIMEOUT = 300


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Side:
    """A checkout with its virtual environment."""

    name: str
    checkout: Path
    cache: Path

    @property
    def python(self) -> Path:
        """The interpreter of the checkout's environment."""
        return self.checkout / ".venv" / "bin" / "python"

    def environment(self, folder: Path) -> dict[str, str]:
        """The variables of every command: only the path is the caller's."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "MPLCONFIGDIR": str(self.cache),  # the list of fonts takes seconds to make
            "COLUMNS": "100",
            "LINES": "40",
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
        }

    def find_fonts(self, folder: Path) -> None:
        """Let matplotlib make its list of fonts, so that no command reports it."""
        command = [str(self.python), "-c", "import matplotlib.font_manager"]
        subprocess.run(command, env=self.environment(folder), capture_output=True, check=False)

    def run(self, line: str, folder: Path, check: bool = False) -> Done:
        """Run a command line in a directory; quiet and cbench are this checkout's, anything else is the system's."""
        words = shlex.split(line)
        if words[0] in TOOLS:
            words[0] = str(self.python.with_name(words[0]))
        done = subprocess.run(
            words,
            cwd=folder,
            env=self.environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"{self.name}: {line}: exit {done.returncode}: {done.stderr}")
        return Done(done.returncode, done.stdout, done.stderr)

"""Run programs on a host, and query systemd's units."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence

from quiet.host.files import Files


class Programs(Files):
    """Files and programs of a host."""

    _units: dict[str, tuple[str, str]] | None = None

    def run(self, *command: str, seconds: float = 600) -> str:
        """Run a program until it exits and return its output; `seconds`: the time limit.

        Raises OSError if it fails, times out or does not exist.
        """
        import subprocess  # rarely needed and slow to load

        self._only_live()
        said = " ".join(command)
        # cron and services may start with a PATH that lacks the sbin directories
        folders = ":".join(filter(None, (os.environ.get("PATH"), "/usr/sbin:/sbin:/usr/bin:/bin")))
        environment = {**os.environ, "PATH": folders}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=seconds, env=environment
            )
        except subprocess.TimeoutExpired:
            raise OSError(errno.ETIMEDOUT, f"{said} did not end within {seconds / 60:g} minutes") from None
        except FileNotFoundError:
            raise OSError(errno.ENOENT, f"{command[0]}: no such program") from None
        if done.returncode:
            raise OSError(errno.EIO, done.stderr.strip() or f"{said} exited with {done.returncode}")
        return done.stdout

    def systemctl(self, *args: str) -> str:
        """Run systemctl and return its output. Raises OSError if it fails or does not exist."""
        self._units = None  # systemctl may change units
        return self.run("systemctl", *args, seconds=120)

    def unit_states(self) -> dict[str, tuple[str, str]]:
        """The (load state, active state) of each loaded service, timer, socket, path, target and mount, by its name.

        Cached until the next call of systemctl(); empty if systemctl fails.
        """
        if self._units is None:
            units = {}
            with contextlib.suppress(OSError):
                kinds = "--type=service,timer,socket,path,target,mount"
                listed = self.run("systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", kinds)
                rows = (line.split(None, 4) for line in listed.splitlines())
                units = {row[0]: (row[1], row[2]) for row in rows if len(row) > 3}
            self._units = units
        return self._units

    def unit_properties(self, units: Sequence[str], properties: Sequence[str]) -> dict[str, dict[str, str]]:
        """These properties of these units, in systemctl's notation, by the unit's name. Raises OSError."""
        shown = self.run("systemctl", "show", f"--property=Id,{','.join(properties)}", "--", *units)
        lines = (block.splitlines() for block in shown.split("\n\n"))
        blocks = (dict(line.split("=", 1) for line in block if "=" in line) for block in lines)
        return {block.pop("Id"): block for block in blocks if "Id" in block}

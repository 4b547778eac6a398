"""What happens to the host before each run, one class a kind; each makes sure that it happened.

The runner knows one door: reset(), which brings the host into its first state and says how it knows. That of ByReboot
does not come back in this process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import psutil

from cbench.study import model, selfstart
from cbench.study.execute import Execution, execute
from cbench.study.model import Reset
from quiet.errors import QuietError

BOOT_ID = "/proc/sys/kernel/random/boot_id"
DROP = "/proc/sys/vm/drop_caches"
PAUSE_S = 0.2
Facts = dict[str, Any]


class ResetError(QuietError):
    """The host could not be reset; the text says why."""


class Resetting(Protocol):
    """A kind of reset."""

    def reset(self) -> Facts:
        """Do it, and what shows that it was done. Raises ResetError."""


def of(reset: Reset, folder: str, environment: Mapping[str, str], before: Callable[[], None]) -> Resetting:
    """The reset that was asked for. `before`: called right before a reboot, when nothing may be lost any more."""
    if reset.kind == model.COMMAND:
        return ByCommand(reset, folder, environment)
    if reset.kind == model.SERVICE:
        return ByService(reset, folder, environment)
    if reset.kind == model.CACHES:
        return ByCaches()
    if reset.kind == model.COOL:
        return ByCooling(reset)
    if reset.kind == model.PROCESSES:
        return ByProcesses()
    if reset.kind == model.REBOOT:
        return ByReboot(reset, folder, environment, before)
    return Nothing()


class Nothing:
    """No reset."""

    def reset(self) -> Facts:
        return {}


class ByCommand:
    """A command of the user's, and one that checks it."""

    def __init__(self, reset: Reset, folder: str, environment: Mapping[str, str]) -> None:
        self._reset, self._folder, self._environment = reset, folder, environment

    def reset(self) -> Facts:
        done = self._run(self._reset.command)
        if self._reset.check:
            self._run(self._reset.check)
        return {"seconds": done.wall_s, "checked": bool(self._reset.check)}

    def _run(self, command: str) -> Execution:
        return run(command, self._folder, self._environment, self._reset.timeout_s)


class ByService:
    """A systemd unit is restarted; its main process must have begun anew, or for one without any its start be later."""

    def __init__(self, reset: Reset, folder: str, environment: Mapping[str, str]) -> None:
        self._reset, self._folder, self._environment = reset, folder, environment

    def reset(self) -> Facts:
        before = self._state()
        run(f"systemctl restart {_quoted(self._reset.unit)}", self._folder, self._environment, self._reset.timeout_s)
        after = self._state()
        if after.get("ActiveState") != "active":
            raise ResetError(f"{self._reset.unit} is {after.get('ActiveState') or 'unknown'} after its restart")
        started = "ActiveEnterTimestampMonotonic"
        if after.get(started) == before.get(started) or after.get("InvocationID") == before.get("InvocationID"):
            raise ResetError(
                f"{self._reset.unit} was not restarted: it has run since {after.get(started)} us of this boot"
            )
        if self._reset.check:
            run(self._reset.check, self._folder, self._environment, self._reset.timeout_s)
        return {"unit": self._reset.unit, "main_pid": after.get("MainPID"), "active_since_us": after.get(started)}

    def _state(self) -> dict[str, str]:
        names = "ActiveState,MainPID,ActiveEnterTimestampMonotonic,InvocationID"
        command = f"systemctl show --property={names} {_quoted(self._reset.unit)}"
        done = run(command, self._folder, self._environment, self._reset.timeout_s)
        found = (line.partition("=") for line in done.output.decode(errors="replace").splitlines())
        return {name: value for name, _, value in found}


class ByCaches:
    """Page cache, dentries and inodes are written back and dropped (Documentation/admin-guide/sysctl/vm.rst)."""

    def reset(self) -> Facts:
        before = _cached()
        os.sync()
        try:
            Path(DROP).write_text("3\n")
        except OSError as error:
            raise ResetError(f"{DROP}: {error.strerror}: dropping caches needs root") from None
        after = _cached()
        if after > before:
            raise ResetError(f"the page cache has grown from {before:,} to {after:,} kB while it was dropped")
        return {"cached_kb_before": before, "cached_kb_after": after}


class ByCooling:
    """Wait until the host is as cool, or as fast, as wanted."""

    def __init__(self, reset: Reset) -> None:
        self._reset = reset

    def reset(self) -> Facts:
        limit, begun = time.monotonic() + self._reset.timeout_s, time.monotonic()
        while True:
            hottest, slowest = _hottest(), _slowest()
            if self._reset.celsius is not None and hottest is None:
                raise ResetError("this host tells no temperature (/sys/class/thermal, /sys/class/hwmon)")
            if self._reset.khz is not None and slowest is None:
                raise ResetError("this host tells no frequency (no cpufreq driver)")
            cool = self._reset.celsius is None or (hottest is not None and hottest <= self._reset.celsius)
            fast = self._reset.khz is None or (slowest is not None and slowest >= self._reset.khz)
            if cool and fast:
                return {"celsius": hottest, "khz": slowest, "seconds": time.monotonic() - begun}
            if time.monotonic() > limit:
                raise ResetError(f"after {self._reset.timeout_s:g} s still {hottest} degrees Celsius, {slowest} kHz")
            time.sleep(PAUSE_S)


class ByProcesses:
    """Whatever a run's trials have left running is ended: the next run begins with a fresh process tree."""

    def __init__(self) -> None:
        adopt()

    def reset(self) -> Facts:
        ended = 0
        for _ in range(10):  # what is ended may leave children of its own
            left = psutil.Process().children(recursive=True)
            if not left:
                return {"ended": ended}
            for each in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            ended += len(psutil.wait_procs(left, timeout=5)[0])
        raise ResetError(f"process {left[0].pid} ({left[0].name()}) of an earlier run does not end")


class ByReboot:
    """The host boots anew; who goes on afterwards finds another boot id."""

    def __init__(self, reset: Reset, folder: str, environment: Mapping[str, str], before: Callable[[], None]) -> None:
        self._reset, self._folder, self._environment, self._before = reset, folder, environment, before

    def reset(self) -> Facts:
        self._before()
        os.sync()
        run(self._reset.command or "systemctl reboot", self._folder, self._environment, self._reset.timeout_s)
        # From here on an end from outside is the reboot's: nothing is to be cleared up, the study goes on after it.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        time.sleep(self._reset.timeout_s)  # until the host ends this process too
        raise ResetError(f"the host did not reboot within {self._reset.timeout_s:g} s")

    def came_up(self) -> str:
        """As systemd has it: running, degraded (some unit has failed), ...; nothing where there is no systemd."""
        if not selfstart.RUNNING.is_dir():
            return ""
        command = "systemctl is-system-running --wait"
        try:
            done = execute(command, self._folder, self._environment, self._reset.timeout_s)
        except OSError:
            return ""
        return done.output.decode(errors="replace").strip()


def boot_id() -> str:
    """Of this boot."""
    try:
        return Path(BOOT_ID).read_text().strip()
    except OSError:
        return ""


def run(command: str, folder: str, environment: Mapping[str, str], timeout_s: float) -> Execution:
    """A command that has to succeed. Raises ResetError."""
    try:
        done = execute(command, folder, environment, timeout_s)
    except OSError as error:
        raise ResetError(f"{command}: {error.strerror}") from None
    if done.code:
        said = (done.errors or done.output).decode(errors="replace").strip().splitlines()
        raise ResetError(f"{command}: ended with {done.code}{': ' + said[-1][:200] if said else ''}")
    if done.code is None:
        raise ResetError(f"{command}: not done after {timeout_s:g} s")
    return done


def adopt() -> None:
    """Have orphans among the descendants become children of this process, so that none of them is lost (prctl(2))."""
    import ctypes

    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def _cached() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Cached:")).split()[1])


def _hottest() -> float | None:
    found = [
        each.current for group in psutil.sensors_temperatures().values() for each in group if each.current is not None
    ]
    return max(found, default=None)


def _slowest() -> int | None:
    found = []
    for path in Path("/sys/devices/system/cpu/cpufreq").glob("policy*/scaling_cur_freq"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text()))
    return min(found, default=None)


def _quoted(name: str) -> str:
    import shlex

    return shlex.quote(name)

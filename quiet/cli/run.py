"""Run `quiet run`, `quiet lock` and the hidden `quiet run-helper`. Loads few modules, so that short runs start fast."""

from __future__ import annotations

import os

from quiet.console import say
from quiet.errors import Incomplete, UsageError
from quiet.run import commands
from quiet.run.options import FrontOptions, RunRequest

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quiet.run.protocol import RunEnded, RunReady, Waiting


def run(options: RunRequest, own: FrontOptions, command: Sequence[str]) -> int:
    """Apply a profile, run a command on the isolated CPUs, and restore the settings.

    Returns the command's exit code, 4 if the restore is incomplete, or 1 if the command succeeded but exceeded a limit.
    Raises QuietError.
    """
    from quiet.run import front

    limited = (own.report, own.max_lost, own.max_interrupts) != (None, None, None)
    judge = _judge(own) if limited else None
    command = _contained(command, own)
    options = options._replace(
        profile=_absolute(options.profile),
        pinned=commands.pins_itself(command)[:200],
        observe=limited or not own.quiet_report,
        trace=limited,  # tracing adds names and durations, but its setup takes longer than a short run
    )
    events = front.RunEvents(_waiting, _ready, _ended)
    code, ended = front.run(options, own.as_user, command, events)
    if ended is None:
        return code
    if not own.quiet_report:
        for line in ended.lines:
            note(line)
    code = judge(ended, command, code) if judge else code
    return code if ended.complete else Incomplete.exit_code


def _judge(own: FrontOptions) -> Callable[[RunEnded, Sequence[str], int], int]:
    """A function that writes the report of a run and returns its exit code, which depends on the limits.

    Raises UsageError for wrong options.
    """
    from quiet.run import report

    limits = report.limits(own)
    return lambda ended, command, code: report.judged(own, limits, ended, command, code, note)


def _contained(command: Sequence[str], own: FrontOptions) -> Sequence[str]:
    """Add the option that pins the command's container to the isolated CPUs, for --container and if possible.

    Otherwise, returns the command unchanged, after a warning if it starts a container.
    """
    if not commands.is_engine(command):
        return command
    from quiet.host import identity
    from quiet.host.reader import Reader
    from quiet.targets.cgroup import group

    user = identity.wanted(own.as_user)
    start = commands.find_start(command, group(Reader()), user.uid if user else os.geteuid())
    if start is None:
        return command
    if own.container and start.option:
        return start.added(command)
    note(commands.warning(start))
    return command


def lock(command: Sequence[str], share: bool, wait_s: float | None) -> int:
    """Run a command while no other run is on the isolated CPUs. Returns its exit code. Changes nothing; needs no root.

    `wait_s`: the maximum time to wait in seconds; None: no limit. Raises Refused if the turn does not come in time.
    """
    from quiet.host.host import Host
    from quiet.run import lock as locking

    return locking.lock(Host(), command, share, wait_s, note)


def helper() -> int:
    """Run the root helper, which `quiet run` starts with sudo, doas or pkexec. Does not return."""
    from quiet.run import entry

    return entry.run_helper()


def seconds(text: str | None, option: str) -> float | None:
    """The value of a time option in seconds; None if not given. Raises UsageError."""
    if text is None:
        return None
    plain = text.removesuffix("s").strip()
    whole, _, part = plain.partition(".")
    if not (plain.isascii() and (whole + part).isdigit() and len(plain) < 10):
        raise UsageError(f"{option}: must be a number of seconds such as 30, not {text!r}")
    return float(plain)


def wait_limit(wait: str | None, no_wait: bool) -> float | None:
    """The maximum time to wait in the queue in seconds; None: no limit. Raises UsageError."""
    if wait is not None and no_wait:
        raise UsageError("--wait and --no-wait contradict each other; give only one of them")
    return 0.0 if no_wait else seconds(wait, "--wait")


def _absolute(profile: str) -> str:
    """The name of a bundled profile, or the absolute path of a file, because the helper runs in another directory."""
    return os.path.abspath(profile) if "/" in profile or profile.endswith(".toml") else profile


def note(text: str) -> None:
    """Print a message to stderr, separate from the command's output."""
    say(f"quiet: {text}")


def _waiting(message: Waiting) -> None:
    note(message.text)


def _ready(message: RunReady) -> None:
    changes = f"{message.changes} change{'' if message.changes == 1 else 's'}"
    note(f"{message.profile} on CPUs {message.cpus}: {changes}, {message.skips} left alone")
    for text in message.notes:
        note(text)


def _ended(message: RunEnded) -> None:
    if message.stays and message.lingers_s:
        note(f"the profile stays applied for the next runs; quiet restores {message.lingers_s:g} s after the last run")
    elif message.stays:
        note("the profile stays applied: it was applied before, or another quiet run still uses it")
    elif message.complete:
        note(f"restored {message.restored} setting{'' if message.restored == 1 else 's'}, nothing left changed")
    for text in message.notes:
        note(text)

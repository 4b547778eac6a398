"""Commands that have to succeed: resets, setup and teardown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cbench.study.run_command import Execution, execute
from quiet.errors import QuietError

Facts = dict[str, Any]


class ResetError(QuietError):
    """The host could not be reset; the text says why."""


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

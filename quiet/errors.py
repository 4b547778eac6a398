"""Define the errors that a user sees; each has a one-line message and an exit code."""

from __future__ import annotations

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from collections.abc import Iterable


class QuietError(Exception):
    """An expected error; its text is the message for the user, `exit_code` the command's exit code."""

    exit_code = 2


class UsageError(QuietError):
    """Wrong usage or input; the message names the error and how to correct it."""

    exit_code = 2


class Refused(QuietError):
    """Not permitted, or refused for safety; the requested change was not made."""

    exit_code = 3


class Incomplete(QuietError):
    """A restore that left a setting different from its original value."""

    exit_code = 4


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "; did you mean X?" for the known names that are close to `name`, else ""."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known))
    return f"; did you mean {', '.join(close)}?" if close else ""

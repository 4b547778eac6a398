"""The errors that a user sees: one clear line and an exit code."""

from __future__ import annotations


class QuietError(Exception):
    """A message for the user; `exit_code` is what the command ends with."""

    exit_code = 2


class UsageError(QuietError):
    """Wrong usage or wrong input: what was wrong, and what to do."""

    exit_code = 2


class Refused(QuietError):
    """Not permitted, or refused for safety; nothing was changed."""

    exit_code = 3


class Incomplete(QuietError):
    """A restore left something that is not as it was found."""

    exit_code = 4

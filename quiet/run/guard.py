"""Guard a run with a second process, which ends the run if the helper is killed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

_DISMISSED = b"."


class Guard:
    """The second process. A pipe notifies it of the helper's death and, by letters, of the run's progress."""

    def __init__(self, take_over: Callable[[bytes], None]) -> None:
        watched, self._pipe = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(watched)
            return
        os.close(self._pipe)
        letters = b""
        try:
            while letter := os.read(watched, 1):
                letters += letter
            if not letters.endswith(_DISMISSED):
                take_over(letters)
        finally:
            os._exit(0)

    def note(self, letter: bytes) -> None:
        """Send a letter for the run's progress to the guard."""
        with contextlib.suppress(BrokenPipeError):  # it was killed; the helper itself ends the run
            os.write(self._pipe, letter)

    def dismiss(self) -> None:
        """Dismiss the guard, because the run has ended normally."""
        self.note(_DISMISSED)
        os.close(self._pipe)

    def drop(self) -> None:
        """Close the pipe in a fork of the helper, so that the guard does not wait for the fork."""
        os.close(self._pipe)

    def wait(self) -> None:
        """Wait until the guard has ended and its open files are closed."""
        os.waitpid(self._pid, 0)

"""Guard a run by a second process that ends the run if the helper is killed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

_DISMISSED = b"."


class Guard:
    """Detects the helper's death by a pipe, and the run's progress by the letters in the pipe."""

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
        """Record the run's progress for the guard."""
        with contextlib.suppress(BrokenPipeError):  # it was killed; the helper itself ends the run
            os.write(self._pipe, letter)

    def dismiss(self) -> None:
        """Dismiss the guard, because the run has ended normally."""
        self.note(_DISMISSED)
        os.close(self._pipe)

    def drop(self) -> None:
        """Call it in a fork of the helper, so that the guard does not wait for this process."""
        os.close(self._pipe)

    def wait(self) -> None:
        """Wait until the second process is gone and its open files are closed."""
        os.waitpid(self._pid, 0)

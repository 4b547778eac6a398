"""A second process that ends a run in the helper's place, should that be killed."""

from __future__ import annotations

import os
from collections.abc import Callable

_DISMISSED = b"."


class Guard:
    """Knows of the helper's death by a pipe, and how far it was by the letters in it."""

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
        """How far the run is now."""
        os.write(self._pipe, letter)

    def dismiss(self) -> None:
        """The run has ended as it should."""
        os.write(self._pipe, _DISMISSED)
        os.close(self._pipe)

    def drop(self) -> None:
        """In a fork of the helper: the second process is not to wait for this one."""
        os.close(self._pipe)

    def wait(self) -> None:
        """Wait until the second process is gone and its open files are closed."""
        os.waitpid(self._pid, 0)

"""Define a type of target: functions that read and write the state behind a name such as `irq:131`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quiet.host.host import Host
from quiet.host.reader import Reader


class TargetType(NamedTuple):
    """A type of target. `word` precedes the colon of a target; the argument `name` follows it."""

    word: str
    # the value; None if the target is absent
    get: Callable[[Reader, str], str | None]
    # write a value. Raises OSError with the kernel's errno
    put: Callable[[Host, str, str], None]
    # make the target absent again; None: impossible. Raises OSError
    remove: Callable[[Host, str], None] | None = None
    # the file that `put` writes, whose mount must be writable; "" if it writes no file
    written_file: Callable[[Reader, str], str] = lambda reader, name: ""
    # files to watch for changes by other programs, if other than the written file
    watched_files: Callable[[Reader, str], Sequence[str]] | None = None
    # the identity of the object, which must match that of a recorded value (numbers are reused)
    identity: Callable[[Reader, str], str | None] = lambda reader, name: None
    # the target's current name, if it can be renamed: (reader, name, identity)
    current_name: Callable[[Reader, str, str], str] = lambda reader, name, identity: name
    # an absent target has ended, and nothing is left to write
    ends: bool = False
    # write several targets at once, if that is cheaper. Raises OSError; some may already have been written, and the
    # others are then written separately
    put_many: Callable[[Host, Sequence[tuple[str, str]]], None] | None = None

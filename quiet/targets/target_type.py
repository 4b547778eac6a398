"""What a kind of target has to offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quiet.host.host import Host
from quiet.host.reader import Reader


def _no_identity(reader: Reader, name: str) -> str | None:
    return None


def _not_renamed(reader: Reader, name: str, identity: str) -> str:
    return name


class TargetType(NamedTuple):
    """How the targets of one kind are read and written; `name` is what follows the colon.

    `get(reader, name)`: the value, None when the target is absent. `put(host, name, value)`: write it, None makes it
    absent again; raises OSError with the kernel's errno. `identity(reader, name)`: what must still be the same for a
    recorded value to belong to this target, or None. `ends`: an absent target simply ended, and nothing is left to do.
    `together(host, [(name, value), ...])`: write several at once, where that is cheaper; it may raise OSError with some
    of them written, and then each is written alone. `now(reader, name, identity)`: the name that the target has by
    now, where its thing can be renamed.
    """

    get: Callable[[Reader, str], str | None]
    put: Callable[[Host, str, str | None], None]
    identity: Callable[[Reader, str], str | None] = _no_identity
    ends: bool = False
    together: Callable[[Host, Sequence[tuple[str, str | None]]], None] | None = None
    now: Callable[[Reader, str, str], str] = _not_renamed

"""What each command of `quiet boot` does: results to stdout, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiet.console import emit_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quiet.host.reader import Reader


def plan(
    profile: str = "bench", cpus: str | None = None, root: str = "/", loader: str | None = None, as_json: bool = False
) -> int:
    """What apply would do to the boot configuration, with why each parameter. Writes nothing, needs no root."""
    from quiet.boot.plan import make
    from quiet.cli import json_boot, text_boot
    from quiet.host.reader import Reader
    from quiet.settings.profile import load

    made = make(Reader(root), load(profile), cpus, loader)
    if as_json:
        emit_json(json_boot.plan(made))
    else:
        text_boot.plan(made)
    return 0


def apply(profile: str, cpus: str | None, root: str, loader: str | None, as_json: bool) -> int:
    """Put a profile's parameters on the next boots' command line. Twice is the same as once."""
    from quiet.boot.apply import apply as do
    from quiet.cli import json_boot, text_boot
    from quiet.host.host import Host
    from quiet.settings.profile import load

    done = do(Host(root), load(profile), cpus, loader)
    if as_json:
        emit_json(json_boot.done(done))
    else:
        text_boot.applied(done)
    return 0


def remove(root: str, as_json: bool) -> int:
    """Put the boot configuration back as it was found. Exit 4 when it could not be."""
    from quiet.boot.apply import remove as do
    from quiet.cli import json_boot, text_boot
    from quiet.host.host import Host

    done = do(Host(root))
    if as_json:
        emit_json(json_boot.done(done))
    else:
        text_boot.removed(done)
    return 0


def once(
    profile: str, cpus: str | None, root: str, kernel: str | None, initrd: str | None, load_only: bool, as_json: bool
) -> int:
    """Boot once with a profile's parameters, by kexec; the boot after it is as ever. A recorded tree is only shown."""
    import sys

    from quiet.boot import once as doing
    from quiet.cli import json_boot, text, text_boot
    from quiet.host.host import Host
    from quiet.settings.profile import load

    host = Host(root)
    made = doing.make(host, load(profile), cpus, kernel, initrd)
    going = host.live and not made.settled
    if going:
        doing.load(host, made)
    if as_json:
        emit_json(json_boot.once(made, going, going and not load_only))
    else:
        text_boot.once(made, going, going and not load_only)
    sys.stdout.flush()
    if going and not load_only:
        doing.start(host, made, text.note)
    return 0


def status(reader: Reader) -> dict[str, object] | None:
    """What an apply has put into the boot configuration; None when nothing of ours is there."""
    from quiet.boot.location import FILE

    if not reader.exists(FILE):
        return None
    from quiet.boot import record

    return record.status(reader)


def shape(word: str) -> dict[str, object] | None:
    """The kernel parameter of this name; None when there is none."""
    from quiet.boot.parameters.registry import known
    from quiet.cli import json_boot

    item = known(word)
    return json_boot.parameter(item) if item else None


def explain(word: str, stops: Sequence[str], as_json: bool) -> bool:
    """What a kernel parameter does and why; False when it is not known. `stops`: the interruptions that it removes."""
    from quiet.boot.parameters.registry import known
    from quiet.cli import text_boot

    item = known(word)
    if item is None and not stops:
        return False
    if as_json:
        emit_json({**(shape(word) or {"name": word, "title": "kernel parameter"}), "stops": list(stops)})
    elif item:
        text_boot.explain(item, stops)
    else:
        text_boot.stopping(word, stops)
    return True

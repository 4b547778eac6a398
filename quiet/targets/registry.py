"""Register the types of targets. A target is a piece of host state, such as `irq:131`, read and written as a string.

The word before the colon is the type of the target. For each type, there is a file in this directory, which documents
the names and values, and a line in TYPES. None means absent; writing None makes a target absent again.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from quiet.host.host import Host
from quiet.host.proc import start_time
from quiet.host.reader import Reader
from quiet.targets import (
    cgroup,
    cpuset_v1,
    file,
    hold,
    irq,
    lockup,
    mount,
    net,
    own_slice,
    process,
    resctrl,
    sched,
    schemata,
    swap,
    systemd_slice,
    task,
    unit,
    workqueue,
)
from quiet.targets.target_type import TargetType

TYPES: tuple[TargetType, ...] = (
    file.FILE,
    irq.IRQ,
    workqueue.WORKQUEUE,
    cgroup.CGROUP,
    own_slice.OWN_SLICE,
    cpuset_v1.CPUSET_V1,
    task.TASK,
    process.PROCESS,
    sched.SCHED,
    unit.UNIT,
    systemd_slice.SLICE,
    net.NET,
    mount.MOUNT,
    resctrl.RESCTRL,
    schemata.SCHEMATA,
    swap.SWAP,
    lockup.LOCKUP,
    hold.HELD,
)
BY_WORD: dict[str, TargetType] = {each.word: each for each in TYPES}


def split(target: str) -> tuple[TargetType, str]:
    """Split a target into its type and its name. Raises ValueError for an unknown type."""
    word, _, name = target.partition(":")
    try:
        return BY_WORD[word], name
    except KeyError:
        raise ValueError(f"unknown target {target}") from None


def get(reader: Reader, target: str) -> str | None:
    """Read a target; None if it is absent."""
    target_type, name = split(target)
    return target_type.get(reader, name)


def put(host: Host, target: str, value: str | None) -> None:
    """Write a target, or make it absent (None). Raises OSError with the kernel's errno."""
    target_type, name = split(target)
    if value is not None:
        target_type.put(host, name, value)
    elif target_type.remove is not None:
        target_type.remove(host, name)
    else:
        raise OSError(errno.EINVAL, f"{target} cannot be made absent")


def put_many(host: Host, writes: Sequence[tuple[str, str | None]]) -> None:
    """Write several targets of one type that has TargetType.put_many.

    Raises OSError; some targets may already have been written.
    """
    target_type, _ = split(writes[0][0])
    assert target_type.put_many is not None
    items = [(split(target)[1], value) for target, value in writes if value is not None]
    if len(items) < len(writes):
        raise OSError(errno.EINVAL, f"a {target_type.word} cannot be made absent")
    target_type.put_many(host, items)


def shared_put(target: str) -> str:
    """The type of a target that can be written together with others of its type; "" if it must be written alone."""
    target_type, _ = split(target)
    return target_type.word if target_type.put_many else ""


def written_file(reader: Reader, target: str) -> str:
    """The file that a write to the target changes; "" if it changes no file."""
    target_type, name = split(target)
    return target_type.written_file(reader, name)


def watched_files(reader: Reader, target: str) -> Sequence[str]:
    """The files to watch for changes of the target; empty if the target can be changed without a file."""
    target_type, name = split(target)
    if target_type.watched_files is not None:
        return target_type.watched_files(reader, name)
    path = target_type.written_file(reader, name)
    return (path,) if path else ()


def identity(reader: Reader, target: str) -> str | None:
    """The identity of the object that a target names now; a recorded value applies only to the same object.

    None if targets of this type have no identity, or if the object is absent.
    """
    target_type, name = split(target)
    return target_type.identity(reader, name)


def same_thing(identity: str | None, recorded: str | None) -> bool:
    """Whether two identities refer to the same object, even if its driver has requested the interrupt again since."""
    return (identity or "").partition(irq.MADE)[0] == (recorded or "").partition(irq.MADE)[0]


def current_name(reader: Reader, target: str, recorded: str | None) -> str:
    """The current name of a target with a recorded identity; network interfaces can be renamed."""
    target_type, name = split(target)
    if recorded is None:
        return target
    return f"{target_type.word}:{target_type.current_name(reader, name, recorded)}"


def is_of_process(target: str) -> bool:
    """Whether a target is a setting of a process or thread, which may also change the setting itself."""
    return split(target)[0].identity is start_time


def ends(target: str) -> bool:
    """Whether an absent target of this type has ended, like a task, so that nothing is left to write."""
    return split(target)[0].ends

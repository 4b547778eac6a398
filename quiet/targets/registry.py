"""Register the types of targets. A target is a piece of host state, such as `irq:131`, read and written as a string.

The word before the colon is the target's type. Each type is one file of this folder, which documents its names and
values, and one line of TYPES. None means absent; writing None makes a target absent again.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from quiet.host.host import Host
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
    """The type and the name of a target."""
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
    """Write a target. Raises OSError with the kernel's errno."""
    target_type, name = split(target)
    if value is not None:
        target_type.put(host, name, value)
    elif target_type.remove is not None:
        target_type.remove(host, name)
    else:
        raise OSError(errno.EINVAL, f"{target} cannot be made absent")


def put_many(host: Host, writes: Sequence[tuple[str, str | None]]) -> None:
    """Write several targets of one type that has TargetType.put_many. Raises OSError with some of them written."""
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
    """The file that a write to the target goes to; "" when it is not a file."""
    target_type, name = split(target)
    return target_type.written_file(reader, name)


def watched_files(reader: Reader, target: str) -> Sequence[str]:
    """The files that another program writes to change the target; empty if it can be changed without a file."""
    target_type, name = split(target)
    if target_type.watched_files is not None:
        return target_type.watched_files(reader, name)
    path = target_type.written_file(reader, name)
    return (path,) if path else ()


def identity(reader: Reader, target: str) -> str | None:
    """The identity that a target must still have for a recorded value to belong to it, or None."""
    target_type, name = split(target)
    return target_type.identity(reader, name)


def same_thing(identity: str | None, recorded: str | None) -> bool:
    """Whether two identities denote the same object, even if it has been requested again since."""
    return (identity or "").partition(irq.MADE)[0] == (recorded or "").partition(irq.MADE)[0]


def current_name(reader: Reader, target: str, recorded: str | None) -> str:
    """The present name of a target with a recorded identity; network interfaces can be renamed."""
    target_type, name = split(target)
    if recorded is None:
        return target
    return f"{target_type.word}:{target_type.current_name(reader, name, recorded)}"


def ends(target: str) -> bool:
    """Whether an absent target has ended, as tasks do, and nothing is left to write."""
    return split(target)[0].ends

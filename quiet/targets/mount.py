"""Access `mount:/sys/fs/resctrl`: the type of the file system that is mounted on a directory ("resctrl"), or absent."""

from __future__ import annotations

import errno

from quiet.host.host import Host
from quiet.host.proc import mounts
from quiet.host.reader import Reader
from quiet.targets.resctrl import ROOT, groups
from quiet.targets.target_type import TargetType


def _get(reader: Reader, path: str) -> str | None:
    return next((mount.type for mount in mounts(reader) if mount.path == path), None)


def _remove(host: Host, path: str) -> None:
    if path == ROOT and (others := groups(host)):
        # unmounting would remove the groups, and their settings could not be restored
        raise OSError(errno.EBUSY, f"it contains groups of other programs: {', '.join(others)}")
    host.umount(path)


MOUNT = TargetType("mount", _get, lambda host, path, value: host.mount(value, path), _remove)

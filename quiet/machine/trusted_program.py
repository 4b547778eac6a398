"""Find users who can change a program that root will run: its interpreter, its packages, or the directories above them.

Sources: man pages path_resolution(7), inode(7) (S_ISVTX), acl(5); Python's documents on site (package directories).
"""

from __future__ import annotations

import os
import site
import stat
import sys
from collections.abc import Iterable, Iterator

import quiet
from quiet.host.reader import Reader

_LINKS = 40  # the kernel's limit on symbolic links


def others(reader: Reader) -> tuple[str, str] | None:
    """A path of this program that a user other than root can change, with the user; None if only root can."""
    if not reader.is_entry(sys.executable):
        return None  # this program is not in the recorded tree
    return who_can_change(reader, _paths(reader))


def who_can_change(reader: Reader, paths: Iterable[str]) -> tuple[str, str] | None:
    """The first of these paths, or of the directories above them, that a user other than root can change, with the
    user.

    In a recorded tree the owner of the tree stands for root.
    """
    owner = reader.stat("/").st_uid if reader.root else 0
    looked: set[str] = set()
    for path in paths:
        for place in _way(reader, path):
            if place not in looked:
                looked.add(place)
                if who := _who(reader, place, owner):
                    return place, who
    return None


def _paths(reader: Reader) -> Iterator[str]:
    """Yield the paths that are read before or while `quiet` runs."""
    package = os.path.dirname(quiet.__file__)
    yield sys.executable
    yield os.path.join(sys.prefix, "pyvenv.cfg")
    yield os.path.dirname(os.__file__)  # the standard library
    for folder in dict.fromkeys(site.getsitepackages()):
        yield folder
        for name in reader.names(folder):  # its dependencies, and the .pth files that point elsewhere
            yield f"{folder}/{name}"
    yield from _below(reader, package)


def _below(reader: Reader, path: str) -> Iterator[str]:
    """Yield a file, or a directory and everything in it; links are not followed."""
    yield path
    if reader.link(path) is None:
        for name in reader.names(path):
            yield from _below(reader, f"{path}/{name}")


def _way(reader: Reader, path: str) -> Iterator[str]:
    """Yield every directory and link on the way to a path, then the path."""
    rest, place, links = [part for part in path.split("/") if part][::-1], "", 0
    yield "/"
    while rest:
        part = rest.pop()
        if part == "..":
            place = os.path.dirname(place).rstrip("/")
            continue
        step = f"{place}/{part}"
        yield step
        to = reader.link(step)
        if to is None:
            place = step
            continue
        links += 1
        if links > _LINKS:
            return
        place = "" if to.startswith("/") else place
        rest += [each for each in to.split("/") if each not in ("", ".")][::-1]


def _who(reader: Reader, place: str, owner: int) -> str:
    """The users besides root (uid `owner`) who can write to a path, or replace it if it is a link; "" if there are
    none.
    """
    try:
        found = reader.stat(place, follow=False)
    except OSError:
        return ""  # a missing path would be created in its directory, which was checked
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX  # existing entries are protected
    if found.st_uid != owner:
        return _user(found.st_uid)
    if stat.S_ISLNK(found.st_mode):
        return ""  # its mode has no meaning
    if found.st_mode & stat.S_IWOTH and not sticky:
        return "everybody"
    if found.st_mode & stat.S_IWGRP and not sticky:
        if _has_acl(reader, place):  # the bit is then the mask of the list's entries, regardless of the group
            return "another user (`getfacl` shows the access control list)"
        if found.st_gid:
            return _members(found.st_gid)
    return ""


def _has_acl(reader: Reader, path: str) -> bool:
    """Whether a file or directory has a POSIX access control list (acl(5))."""
    try:
        with reader.place(path, follow=False) as place:
            return bool(os.getxattr(place, "system.posix_acl_access", follow_symlinks=False))
    except OSError:
        return False  # it has none, or its file system has none


def _user(uid: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _members(gid: int) -> str:
    """The name of a group whose members can write; "" if it has no members besides root (Debian's staff)."""
    import grp
    import pwd

    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return f"group {gid}"
    there = {*group.gr_mem, *(user.pw_name for user in pwd.getpwall() if user.pw_gid == gid)} - {"root"}
    return f"group {group.gr_name}" if there else ""

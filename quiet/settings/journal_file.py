"""Access the journal's file: read it, copy or remove it if it is damaged, and allocate space."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from quiet.errors import Refused
from quiet.host.lock import FOLDER
from quiet.host.reader import Reader

FILE = f"{FOLDER}/journal.jsonl"
_COPY = f"{FOLDER}/journal.damaged-"
_LARGEST = 1 << 26
_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of fallocate(2)
_CANNOT = (errno.EOPNOTSUPP, errno.ENOSYS)


def content(reader: Reader) -> bytes | str | None:
    """The journal's bytes; if it cannot be read, the reason as text; None if there is no journal.

    Raises Refused if only root can read it.
    """
    try:
        with reader.place(FILE, follow=False) as place:
            fd = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise Refused(f"the journal {FILE} cannot be read: {error.strerror}; run the command as root") from None
    except OSError as error:
        return "it is not a regular file" if error.errno in (errno.ELOOP, errno.ENXIO) else str(error.strerror)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return "it is not a regular file"
        if found.st_size > _LARGEST:
            return f"it is too large ({found.st_size:,} bytes)"
        parts = []
        while part := os.read(fd, _LARGEST):
            parts.append(part)
        return b"".join(parts)
    except OSError as error:
        return str(error.strerror)
    finally:
        os.close(fd)


def preserve(reader: Reader) -> str:
    """Copy a damaged journal into its directory, unless an equal copy exists.

    Returns the path of the copy, "" if copying failed or the journal cannot be read.
    """
    data = content(reader)
    if not isinstance(data, bytes):
        return ""
    folder, _, prefix = _COPY.rpartition("/")
    for name in reader.names(folder):
        if name.startswith(prefix):
            with contextlib.suppress(OSError):
                if reader.data(f"{folder}/{name}") == data:
                    return reader.named(f"{folder}/{name}")
    path = _aside(reader)
    try:
        with reader.place(path, follow=False) as place:
            fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            try:
                os.fchmod(fd, 0o644)
                with open(fd, "wb") as file:
                    file.write(data)
            except OSError:
                os.unlink(place)
                raise
    except OSError:
        return ""
    return reader.named(path)


def _aside(reader: Reader) -> str:
    import time

    start = f"{_COPY}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    names = (f"{start}{'-' * bool(n)}{n or ''}.jsonl" for n in range(1 << 16))
    return next(name for name in names if not reader.is_entry(name))


def discard(reader: Reader, copy: str) -> str:
    """Remove a damaged journal, or move it aside if it was not copied. Returns the path of the copy.

    Raises OSError if the journal cannot be removed or renamed.
    """
    with reader.place(FILE, follow=False) as place:
        if copy:
            os.unlink(place)
            return copy
        aside = _aside(reader)
        os.rename(place, f"{os.path.dirname(place)}/{os.path.basename(aside)}")
    return reader.named(aside)


def allocate(fd: int, start: int, size: int) -> None:
    """Allocate space beyond the end of a file with fallocate(2), without changing its size.

    Raises OSError if there is too little space; does nothing if fallocate(2) is not supported.
    """
    import ctypes

    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None:
        return
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if fallocate(fd, _KEEP_SIZE, start, size) < 0 and (number := ctypes.get_errno()) not in _CANNOT:
        raise OSError(number, os.strerror(number))

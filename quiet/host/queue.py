"""Manage the queue for the isolated CPUs: one file per run in /run/quiet/queue, in the order of arrival.

A ticket is valid while its owner keeps a kernel lock on it, so the ticket of a killed owner is ignored. The first run
in the queue must then lock the file `turn`, so two runs proceed at once only if both share the CPUs, regardless of the
files in the directory. Every user may queue (mode 1777): the kernel records the owner of a ticket's file and its time
of arrival (ctime). The owner is the user of the run; only a ticket that root owns may name another user.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import stat
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from quiet.console import one_line
from quiet.errors import Refused
from quiet.host.files import Files
from quiet.host.lock import FOLDER, make_folders
from quiet.host.proc import status_field
from quiet.host.reader import FLOCK, Reader

QUEUE = f"{FOLDER}/queue"
_TURN = f"{QUEUE}/turn"
_NAME = re.compile(r"[0-9]{20}-[0-9]{1,10}")
_MOST = 2048  # maximum size of a ticket, in bytes
_COMMAND = 160  # maximum length of the recorded command, in characters
_POLL_S, _POLL_FIRST_S = 0.1, 0.02
_ANCESTORS = 256


class Ticket(NamedTuple):
    """A run in the queue.

    `pid`: 0 if the owner of the ticket names a process of another user. `locker`: the process that locks the turn for
    this run, such as its helper; it equals `pid` unless root owns the ticket. A lock without a ticket counts as a run
    whose `name` is "" and whose `since` is 0.
    """

    name: str
    pid: int
    uid: int
    command: str
    share: bool
    since: float  # time of its arrival in seconds since the epoch
    running: bool
    locker: int = 0


Wait = Callable[[str, float], bool]


def queue(reader: Reader) -> list[Ticket]:
    """The valid tickets in the order of arrival, after one ticket for each lock that has none.

    Running commands come first.
    """
    found = [ticket for name in reader.names(QUEUE) if (ticket := _read(reader, name))]
    tickets = [ticket for _, ticket in sorted(found, key=lambda item: (item[0], item[1].name))]
    tickets = [*_without_ticket(reader, tickets), *tickets]
    sharing = [t for n, t in enumerate(tickets) if t.share and all(before.share for before in tickets[:n])]
    first = sharing or tickets[:1]
    return [ticket._replace(running=ticket in first) for ticket in tickets]


def holder_above(reader: Reader, pid: int) -> Ticket | None:
    """The ticket of the running command to which a process or one of its ancestors belongs; None if there is none.

    The first ticket is not enough: a ticket that becomes valid again may precede the ticket of the current run.
    """
    turn = _turn_lockers(reader)
    owners = {each.pid: each for each in queue(reader) if each.running and each.pid and each.locker in turn}
    for _ in range(_ANCESTORS):
        if pid in owners or pid < 2:
            break
        pid = int(status_field(reader.text(f"/proc/{pid}/status"), "PPid") or 0)
    return owners.get(pid)


def _turn_lockers(reader: Reader) -> dict[int, bool]:
    """The processes that have locked the turn, from proc_locks(5); the value is True if the lock is shared."""
    try:
        found = reader.stat(_TURN)
    except OSError:
        return {}
    file = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    lines = (line.split() for line in (Reader().text("/proc/locks") or "").splitlines())
    return {int(line[4]): line[3] == "READ" for line in lines if line[1:2] == ["FLOCK"] and line[5] == file}


def _without_ticket(reader: Reader, tickets: Sequence[Ticket]) -> Iterator[Ticket]:
    """Yield a ticket for each process that locked the turn without a ticket, which any user can do."""
    known = {ticket.locker for ticket in tickets}
    for pid, share in _turn_lockers(reader).items():
        owner = (status_field(Reader().text(f"/proc/{pid}/status"), "Uid") or "").split()
        if owner and pid not in known:
            yield Ticket("", pid, int(owner[0]), "", share, 0, True, pid)


def make_queue(host: Files) -> None:
    """Create the directory and the file `turn`; only root does this. Raises Refused."""
    try:
        make_folders(host, QUEUE)
        # create the file first: another user who owned it could remove it while a run has locked it
        os.close(host.open(_TURN, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644))
        with host.place(QUEUE) as place:
            if os.stat(place).st_mode & 0o7777 != 0o1777:
                os.chmod(place, 0o1777)  # noqa: S103 - every user may queue, and remove only their own files
    except OSError as error:
        raise Refused(f"the queue {QUEUE} cannot be used: {error.strerror}; nothing was changed") from None


class Turn:
    """A run's place in the queue, and later the turn on the CPUs.

    Forked processes share the place until the last of them ends, or until any of them calls close().
    """

    def __init__(self, host: Files, pid: int, command: str, share: bool = False, uid: int | None = None) -> None:
        self._host, self._share, self._turn = host, share, -1
        fields = {"pid": pid, "uid": os.geteuid() if uid is None else uid, "command": command[:_COMMAND]}
        text = json.dumps({**fields, "share": share, "locker": os.getpid()}).encode()[:_MOST]
        self.name, self._fd = _enqueue(host, text, pid)

    def wait(self, wait: Wait, limit_s: float | None = None) -> bool:
        """Wait for the turn. Returns False if it did not come within `limit_s` seconds, or if `wait` gave up.

        `wait(line, seconds)` is called with a line that describes the current run and the number of runs ahead, or with
        "" if neither has changed. It returns False to give up.
        """
        end = None if limit_s is None else time.monotonic() + limit_s
        shown = None
        while True:
            holder, ahead = self._position()
            if ahead == 0 and self._take():
                return True
            pause = _POLL_FIRST_S if ahead < 2 else _POLL_S * ahead
            if end is not None:
                pause = min(pause, end - time.monotonic())
                if pause <= 0:
                    return False
            now = (holder.name if holder else "", ahead)
            line = _waiting(holder, ahead) if ahead and now != shown else ""
            shown = now
            if not wait(line, pause):
                return False

    def close(self) -> None:
        """Leave the queue, for all processes that share this place."""
        if self._turn >= 0:
            fcntl.flock(self._turn, fcntl.LOCK_UN)
            os.close(self._turn)
        with contextlib.suppress(OSError):
            self._host.unlink(f"{QUEUE}/{self.name}")
        os.close(self._fd)

    def _position(self) -> tuple[Ticket | None, int]:
        """The current run, if any, and the number of other runs ahead. Raises Refused if the ticket was deleted."""
        tickets = queue(self._host)
        names = [ticket.name for ticket in tickets]
        if self.name not in names:
            raise Refused("the ticket of this run was removed from the queue; nothing was changed; start the run again")
        before = tickets[: names.index(self.name)]
        blocking = [ticket for ticket in before if not (ticket.share and self._share)]
        if self._share and not blocking:
            return None, 0
        return before[0] if before else None, len(before)

    def _take(self) -> bool:
        if self._turn < 0:
            self._turn = _open(self._host, _TURN)
        try:
            fcntl.flock(self._turn, (fcntl.LOCK_SH if self._share else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _enqueue(host: Files, text: bytes, pid: int) -> tuple[str, int]:
    """Create a ticket with this text. Returns its name and its file, which is locked before it gets its name."""
    name = f"{time.monotonic_ns():020}-{pid % 10**10}"
    new = f"{QUEUE}/.{name}-{os.getpid()}"
    try:
        _remove_dead(host)
        fd = host.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, text)
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0))
            os.fchmod(fd, 0o644)  # only after the lock, which a reader could prevent; regardless of the umask
            with host.place(new, follow=False) as here, host.place(f"{QUEUE}/{name}", follow=False) as there:
                os.rename(here, there)
        except OSError:
            os.close(fd)
            host.unlink(new)
            raise
    except FileNotFoundError:
        hint = "create it as root: `sudo quiet lock -- true`, or any `quiet run`"
        raise Refused(f"the queue {QUEUE} does not exist on this host yet; {hint}") from None
    except OSError as error:
        raise Refused(f"the queue {QUEUE} cannot be used: {error.strerror}; nothing was changed") from None
    return name, fd


def _remove_dead(host: Files) -> None:
    """Remove the tickets of killed runs, as far as this user may."""
    for name in host.names(QUEUE):
        if _NAME.fullmatch(name) and _read(host, name) is None:
            with contextlib.suppress(OSError):
                host.unlink(f"{QUEUE}/{name}")


def _read(reader: Reader, name: str) -> tuple[int, Ticket] | None:
    """The arrival time of a ticket and its content; None if the file is not a ticket or no longer valid."""
    if not _NAME.fullmatch(name):
        return None
    try:
        fd = _open(reader, f"{QUEUE}/{name}")
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return None
        # only a write lock blocks readers, and only the owner can take one
        answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, struct.pack(FLOCK, fcntl.F_RDLCK, 0, 0, 0, 0))
        if struct.unpack(FLOCK, answer)[0] == fcntl.F_UNLCK:
            return None
        return found.st_ctime_ns, _parse(reader, name, found, os.read(fd, _MOST))
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOLCK):
            return None
        raise
    finally:
        os.close(fd)


def _open(reader: Reader, path: str) -> int:
    """Open the path without following a link or blocking on a FIFO. Raises OSError."""
    with reader.place(path, follow=False) as place:
        return os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def _parse(reader: Reader, name: str, found: os.stat_result, text: bytes) -> Ticket:
    """Parse a ticket, as far as it can be trusted: only root may act for other users."""
    pid, uid, command, share, locker = 0, found.st_uid, "", False, 0
    with contextlib.suppress(ValueError, OverflowError, KeyError, TypeError, RecursionError):
        data = json.loads(text)
        share = data["share"] is True
        command = one_line(str(data["command"])[:_COMMAND])
        uid = int(data["uid"]) if found.st_uid == 0 else uid
        claimed = int(data["pid"])
        owner = status_field(reader.text(f"/proc/{claimed}/status"), "Uid") or ""
        pid = claimed if found.st_uid == 0 or owner.split()[:1] == [str(uid)] else 0
        locker = int(data["locker"]) if found.st_uid == 0 else pid
    return Ticket(name, pid, uid, command, share, found.st_ctime, False, locker)


@contextlib.contextmanager
def queued(host: Files, command: str, wait: Wait, share: bool = False, limit_s: float | None = None) -> Iterator[None]:
    """Hold the turn inside the block; do not wait if an ancestor of this process holds the turn.

    Raises Refused if the turn does not come within `limit_s` seconds, or if there is no queue.
    """
    if holder_above(host, os.getpid()):
        yield
        return
    if os.geteuid() == 0:
        make_queue(host)
    turn = Turn(host, os.getpid(), command, share)
    try:
        if not turn.wait(wait, limit_s):
            raise Refused(f"{refusal(host)}; nothing was run")
        yield
    finally:
        turn.close()


def refusal(reader: Reader) -> str:
    """The message for a run that is refused because its turn did not come in time."""
    holder = next((ticket for ticket in queue(reader) if ticket.running), None)
    return f"the isolated CPUs are in use{f' by {described(holder)}' if holder else ''}"


def described(ticket: Ticket) -> str:
    """Describe a ticket: its process, user, command and age."""
    pid = f"PID {ticket.pid}" if ticket.pid else "another process"
    command = f": {ticket.command}" if ticket.command else ""
    age = f"for {max(time.time() - ticket.since, 0):.0f} s" if ticket.since else "without a ticket"
    return f"{pid} (uid {ticket.uid}{command}, {age})"


def _waiting(holder: Ticket | None, ahead: int) -> str:
    who = described(holder) if holder else "another run"
    return f"waiting for {who}, {ahead} ahead"

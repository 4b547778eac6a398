"""Keep a helper's profile applied for a while, so that the user's next runs need neither sudo nor an apply."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from quiet import cpulist
from quiet.errors import QuietError
from quiet.host.host import Host
from quiet.host.lock import FOLDER
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import parse_requested
from quiet.run.options import RunRequest
from quiet.run.protocol import FROM_FRONT, LINGER_SOCKET, HelperChannel, Peer, RunReady, connect
from quiet.settings import journal
from quiet.settings.journal_file import FILE
from quiet.settings.profile import Profile

LONGEST_S = 3600.0
_SESSIONS = 64  # maximum at once, because root's processes do not count toward the user's limits; further runs use sudo
_POLL_S = 0.2
_PATIENCE_S = 120  # time limit for a helper to restore


class _Stop(Exception):
    """Ends serve(), so that the helper restores."""


class Lingering:
    """The profile that stays applied between runs, and its user. Every run restarts the timer."""

    def __init__(self, host: Host, options: RunRequest, profile: Profile, ready: RunReady, uid: int) -> None:
        self._asked, self._profile, self._uid = options.profile, profile, uid
        self.seconds = limited(options.linger_s)
        self.ready = ready._replace(changes=0)
        self._journal = _journal_state(host)
        self._placement = _placement(options)

    def fits(self, reader: Reader, options: RunRequest, profile: Profile) -> bool:
        """Whether a run requests exactly this profile, with the same CPUs, and the profile is still applied."""
        if _placement(options) != self._placement:
            return False
        if (options.profile, profile) != (self._asked, self._profile) or self._journal != _journal_state(reader):
            return False
        cpus = options.cpus
        return cpus is None or parse_requested(cpus, "--cpus") == cpulist.parse(self.ready.cpus)

    def profile(self, name: str) -> Profile | None:
        """The lingering profile if it is the bundled profile `name`, else None.

        It need not be read again, because only root can change a bundled profile.
        """
        return self._profile if name == self._profile.source and "/" not in name else None

    def listen(self, host: Host) -> bool:
        """Start accepting runs. Returns False if another helper of this user already does so, or on failure."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with host.place(f"{LINGER_SOCKET}{self._uid}", follow=False) as path:
                if peer := connect(path):
                    peer.close()
                    return False
                remove(host, self._uid)
                before = os.umask(0o177)
                try:
                    self._listener.bind(path)
                finally:
                    os.umask(before)
                os.chown(path, self._uid, -1)
                self._listener.listen(64)
        except OSError:
            self._listener.close()
            return False
        return True

    def serve(self, host: Host, session: Callable[[HelperChannel, Peer], None]) -> None:
        """Run each session in a fork, until the linger time passes without a run, or until SIGTERM."""
        sessions: set[int] = set()
        ending = False

        def stop(number: int, frame: object) -> None:
            nonlocal ending
            ending = True  # Python drops an exception raised in a __del__ or in a callback after a fork
            raise _Stop

        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        end = time.monotonic() + self.seconds
        with contextlib.suppress(_Stop):
            signal.signal(signal.SIGTERM, stop)
            while not ending and (sessions or time.monotonic() < end):
                wait_s = _POLL_S if sessions else max(end - time.monotonic(), 0)
                if poll.poll(wait_s * 1000):
                    connection, _ = self._listener.accept()
                    if len(sessions) < _SESSIONS:
                        sessions.add(self._begin(connection, session))
                    connection.close()
                ended = {pid for pid in sessions if os.waitpid(pid, os.WNOHANG)[0]}
                if ended or sessions:
                    end = time.monotonic() + self.seconds
                sessions -= ended
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        remove(host, self._uid)
        self._listener.close()

    def _begin(self, connection: socket.socket, session: Callable[[HelperChannel, Peer], None]) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._listener.close()
            channel = HelperChannel(connection, FROM_FRONT)
            peer = channel.peer()
            if peer.uid == self._uid:
                session(channel, peer)
        finally:
            os._exit(0)


def limited(linger_s: float) -> float:
    """The time in seconds for which a profile stays applied after the last run: `linger_s`, at most LONGEST_S."""
    return min(linger_s, LONGEST_S)


def end_others(host: Host, profile: Profile, cpus: str | None) -> None:
    """Make helpers with another profile or other CPUs restore the host. Raises Refused if the journal is damaged."""
    state = journal.load(host)
    if state is None or not state.passing:
        return
    with contextlib.suppress(QuietError):
        same = cpus is None or parse_requested(cpus, "--cpus") == state.cpus.isolated
        if same and (state.profile, state.source) == (profile.name, profile.source):
            return
    for path in (f"{FOLDER}/{name}" for name in host.names(FOLDER)):
        with host.place(path, follow=False) as place:
            if path.startswith(LINGER_SOCKET) and (connection := connect(place)):
                _end(HelperChannel(connection, 0).peer())
                connection.close()


def remove(host: Host, uid: int) -> None:
    """Remove the socket of a user's lingering helper."""
    with contextlib.suppress(FileNotFoundError):
        host.unlink(f"{LINGER_SOCKET}{uid}")


def _end(peer: Peer) -> None:
    with contextlib.suppress(OSError):
        fd = os.pidfd_open(peer.pid)
        try:
            if peer.uid == 0:
                signal.pidfd_send_signal(fd, signal.SIGTERM)
                select.select([fd], [], [], _PATIENCE_S)
        finally:
            os.close(fd)


def _journal_state(reader: Reader) -> tuple[int, int, int] | None:
    try:
        found = reader.stat(FILE)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _placement(options: RunRequest) -> tuple[bool | None, bool, str | None]:
    """The options that determine the type of the partition and its memory nodes."""
    return options.threads, bool(options.pinned), options.mems

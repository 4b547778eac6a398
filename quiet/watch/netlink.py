"""Receive the kernel's notifications of devices (uevents), network interfaces and processes on netlink sockets.

Sources: netlink(7), rtnetlink(7), driver-api/connector.rst and include/uapi/linux/{connector,cn_proc,netlink}.h.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from typing import ClassVar, NamedTuple

_UEVENT, _CONNECTOR, _ROUTE = 15, 11, 0  # netlink protocols
_GROUP = 1  # the multicast group of kernel uevents, of links, and of processes
_LISTEN, _IGNORE = 1, 2  # PROC_CN_MCAST_LISTEN, PROC_CN_MCAST_IGNORE
_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_MESSAGE = struct.Struct("=IIIIHH")  # cn_msg
_EVENT = struct.Struct("=IIQ")  # proc_event up to its data
_FORK, _EXEC, _COMM = 0x1, 0x2, 0x200
_SIZE = 1 << 16  # maximum size of a message, in bytes
_ROOM = 1 << 20  # requested receive buffer, in bytes; the kernel limits it to net.core.rmem_max
_AT_ONCE = 1024  # maximum number of messages read before the other sources have their turn


class Uevent(NamedTuple):
    """A device's notification: ("bind", "/devices/pci0000:00/…/virtio0", "virtio")."""

    action: str
    path: str
    subsystem: str


class _Netlink:
    """A nonblocking netlink socket. Raises OSError if the kernel does not permit or support it."""

    protocol: ClassVar[int]

    def __init__(self) -> None:
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        self._socket = socket.socket(socket.AF_NETLINK, kind, self.protocol)
        self.lost = False  # the socket overflowed, so notifications are missing
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
            self._socket.bind((0, _GROUP))
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _messages(self) -> list[bytes]:
        messages: list[bytes] = []
        while len(messages) < _AT_ONCE:
            try:
                data, sender = self._socket.recvfrom(_SIZE)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.lost = True
                continue
            if sender[0] == 0:  # accept only messages from the kernel, because programs may send to the group too
                messages.append(data)
        return messages


class Uevents(_Netlink):
    """Notifications of devices that appear, disappear or are bound to a driver, and of CPUs going online or offline."""

    protocol = _UEVENT

    def read(self) -> list[Uevent]:
        """The messages since the last call."""
        return [event for data in self._messages() if (event := uevent(data))]


def uevent(data: bytes) -> Uevent | None:
    """Parse one message: "ACTION@PATH", then KEY=VALUE, each terminated by a NUL byte. None for any other message."""
    head, *rest = data.decode(errors="replace").split("\0")
    action, at, path = head.partition("@")
    values = dict(item.partition("=")[::2] for item in rest)
    return Uevent(action, path, values.get("SUBSYSTEM", "")) if at else None


class Links(_Netlink):
    """Notifications of changed network interfaces.

    The driver of an interface that goes up requests interrupts, for which the kernel sends no uevent.
    """

    protocol = _ROUTE

    def read(self) -> bool:
        """Read the pending messages. Returns whether there were any."""
        return bool(self._messages())


class Processes(_Netlink):
    """Notifications of new threads, started programs and changed names of threads.

    Requires CAP_NET_ADMIN and CONFIG_PROC_EVENTS.
    """

    protocol = _CONNECTOR

    def __init__(self) -> None:
        super().__init__()
        try:
            self._ask(_LISTEN)
        except OSError:
            super().close()
            raise

    def close(self) -> None:
        """Unsubscribe explicitly: before Linux 6.6, the kernel still counts a listener that only exits."""
        with contextlib.suppress(OSError):
            self._ask(_IGNORE)
        super().close()

    def _ask(self, operation: int) -> None:
        data = struct.pack("=I", operation)
        message = _MESSAGE.pack(1, 1, 0, 0, len(data), 0) + data
        size = _HEADER.size + len(message)
        self._socket.send(_HEADER.pack(size, 3, 0, 0, os.getpid()) + message)  # NLMSG_DONE

    def read(self) -> set[int]:
        """The threads that started, executed another program or changed their name."""
        return {tid for data in self._messages() if (tid := started(data))}


def started(data: bytes) -> int:
    """Parse a message: the thread of a fork, an exec or a new name; 0 for other messages."""
    at = _HEADER.size + _MESSAGE.size
    if len(data) < at + _EVENT.size + 16:
        return 0
    event, _, _ = _EVENT.unpack_from(data, at)
    numbers = struct.unpack_from("=4I", data, at + _EVENT.size)
    return int(numbers[2] if event == _FORK else numbers[0] if event in (_EXEC, _COMM) else 0)

"""Timers of CPU 1 that expire while it is idle: connections over loopback with keepalive, twenty more per second."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import time

SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # netdevice(7)
MOST = 400


def main() -> None:
    """Open connections until there are MOST, and keep them."""
    os.sched_setaffinity(0, {1})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    server = socket.create_server(("127.0.0.1", 0))
    kept: list[tuple[socket.socket, socket.socket]] = []
    while True:
        if len(kept) < MOST:
            client = socket.create_connection(server.getsockname())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
                client.setsockopt(socket.IPPROTO_TCP, option, 1)
            kept.append((client, server.accept()[0]))
        time.sleep(0.05)


if __name__ == "__main__":
    main()

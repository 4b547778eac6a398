"""The socket of a helper that stays, by which the fronts of its user reach it. Loads little: every front asks."""

from __future__ import annotations

import socket

from quiet.host.lock import FOLDER
from quiet.run.protocol import HelperChannel

SOCKET = f"{FOLDER}/linger."  # and the number of its user


def connect(uid: int) -> socket.socket | None:
    """A connection to the helper that stays for this user; None when there is none."""
    connection = server(f"{SOCKET}{uid}")
    if connection and HelperChannel(connection, 0).peer().uid != 0:
        connection.close()
        return None
    return connection


def server(path: str) -> socket.socket | None:
    """A connection to the listening helper; None if there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    return connection

"""Opening, upgrading and closing a store's file, and what SQLite's errors mean."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from cbench.store.schema import APPLICATION_ID, STEPS, VERSION
from quiet import QuietError, UsageError

WAIT_S = 10.0
"""How long another process may write before ours is given up."""

REASONS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY_ROLLBACK": "a write to it was cut short, and putting that right needs the right to write",
    "SQLITE_READONLY": "not writable",
    "SQLITE_CANTOPEN": "cannot be opened or created",
    "SQLITE_BUSY": f"another process has held it for {WAIT_S:.0f} s",
    "SQLITE_CORRUPT": "damaged",
    "SQLITE_NOTADB": "damaged",
    "SQLITE_IOERR": "cannot be written to (disk, quota or file size limit?)",
    "SQLITE_AUTH": "not permitted",
    "SQLITE_PERM": "not permitted",
}


def reason(error: sqlite3.Error) -> str:
    """Why, in words; SQLite's own name stays in it."""
    name = getattr(error, "sqlite_errorname", "")
    for start, words in REASONS.items():
        if name.startswith(start):
            return f"{words} [{name}]"
    return f"{error} [{name}]" if name else str(error)


def for_writing(path: Path) -> sqlite3.Connection:
    """A connection to a store of the newest version, which is made if there is no file or an empty one."""
    _check(path, exists=False)
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{path}: not writable")
    connection = _connect(path, "rwc")
    try:
        # What says whose file it is comes first: nothing may be changed in one that is not ours.
        version = _version(path, connection)
        if version < VERSION:
            _upgrade(connection)  # before there is a log: the file by itself shall say what it is
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
    except (sqlite3.Error, QuietError) as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise QuietError(f"{path}: {reason(error)}; nothing was stored") from None
        raise
    return connection


def for_reading(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, while another process may be writing."""
    _check(path, exists=True)
    log = Path(f"{path}-wal")
    # In a folder that cannot be written SQLite cannot share a log's index; without a log it needs none.
    alone = not log.exists() and not os.access(path.parent, os.W_OK)
    _recover(path)
    connection = _connect(path, "ro&immutable=1" if alone else "ro")
    try:
        if _version(path, connection) == 0:
            raise UsageError(f"{path}: empty: nothing was stored in it")
    except (sqlite3.Error, QuietError) as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise QuietError(f"{path}: {reason(error)}") from None
        raise
    return connection


def _recover(path: Path) -> None:
    """Where a write was cut short by a kill, have SQLite take it back; it does so when who may write reads."""
    if not Path(f"{path}-journal").exists() or not os.access(path, os.W_OK):
        return
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_connect(path, "rw")) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master")


def close(connection: sqlite3.Connection, written: bool) -> None:
    """Merge the log, if there is one, and leave a single file; on a full disk the log stays."""
    if written:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("PRAGMA busy_timeout=0")
            connection.execute("PRAGMA journal_mode=DELETE")
    with contextlib.suppress(sqlite3.Error):
        connection.close()


def _check(path: Path, exists: bool) -> None:
    if not path.name:
        raise UsageError(f"{path}: the name of a file is missing")
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, not a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: not an ordinary file")
    if exists and not path.exists():
        raise UsageError(f"{path}: no such file")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no directory {path.parent}")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    try:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(uri, uri=True, timeout=WAIT_S, isolation_level=None)
    except sqlite3.Error as error:
        raise QuietError(f"{path}: {reason(error)}") from None


def _version(path: Path, connection: sqlite3.Connection) -> int:
    """The version of the store in it, 0 for an empty file; UsageError for anything else."""
    try:
        connection.execute("BEGIN")  # one state of the file, also when another process is just making a store of it
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
            raise UsageError(f"{path}: not a store of cbench; choose another name") from None
        raise
    if application == 0 and version == 0 and tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise UsageError(f"{path}: an SQLite file, but not a store of cbench; choose another name")
    if version > VERSION:
        raise UsageError(f"{path}: made by a newer cbench (format {version}, this one knows {VERSION})")
    return version


def _upgrade(connection: sqlite3.Connection) -> None:
    """Step by step to the newest version; all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]  # another process may have been faster
        for step in STEPS[version:]:
            for statement in step.split(";"):
                if statement.strip():
                    connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise

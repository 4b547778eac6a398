"""Open, upgrade and close a store's file, and explain SQLite's errors."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from cbench.store.schema import APPLICATION_ID, STEPS, VERSION
from cbench.store.trust import refuse_foreign_link
from quiet import QuietError, UsageError, one_line, raised_at

P = ParamSpec("P")
T = TypeVar("T")

WAIT_S = 10.0
"""The longest wait, in seconds, for another process that writes."""
MOST = 64 << 20
"""The maximum size of a value in bytes; the largest values are outputs of up to 16 MiB."""

REASONS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY_ROLLBACK": "a write to it was cut short, and repairing it needs write permission",
    "SQLITE_READONLY": "not writable",
    "SQLITE_CANTOPEN": "cannot be opened or created",
    "SQLITE_BUSY": f"another process has locked it for {WAIT_S:.0f} s",
    "SQLITE_CORRUPT": "damaged",
    "SQLITE_NOTADB": "damaged",
    "SQLITE_IOERR_READ": "cannot be read (a failing disk?)",
    "SQLITE_IOERR": "cannot be written to (disk, quota or file size limit?)",
    "SQLITE_AUTH": "not permitted",
    "SQLITE_PERM": "not permitted",
    "SQLITE_TOOBIG": f"a value exceeds {MOST >> 20} MiB",
}


def reason(error: sqlite3.Error) -> str:
    """The text of the error, including SQLite's own name for it."""
    name = getattr(error, "sqlite_errorname", "")
    for start, words in REASONS.items():
        if name.startswith(start):
            return f"{words} [{name}]"
    return one_line(f"{error} [{name}]" if name else str(error))


@contextlib.contextmanager
def explained(path: Path, what_is_kept: str = "") -> Iterator[None]:
    """A context that converts SQLite's errors to a QuietError of one line, which ends with `what_is_kept`."""
    try:
        yield
    except sqlite3.Error as error:
        raise QuietError(f"{path}: {reason(error)}{what_is_kept}") from None


_DAMAGE = OverflowError, RecursionError, ValueError
"""The errors raised when JSON or a check rejects the content of a store."""
_UNEXPECTED = ArithmeticError, AttributeError, LookupError, TypeError
"""Further errors that code can raise, either because a damaged store has a missing row or a wrong type, or because of
defects in the code itself.
"""


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """A context that converts any error that a damaged store causes to a QuietError of one line.

    If the error may also be a defect of the code, the line mentions this and the location; errors that can only be
    defects pass through unchanged.
    """
    try:
        yield
    except sqlite3.Error as error:
        known = getattr(error, "sqlite_errorname", "").startswith(tuple(REASONS))
        raise QuietError(f"{os.fspath(path)}: {'' if known else 'damaged: '}{reason(error)}") from None
    except _DAMAGE as error:
        said = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise QuietError(f"{os.fspath(path)}: damaged: {said}{one_line(str(error))}") from None
    except _UNEXPECTED as error:
        if isinstance(error, AttributeError) and _is_ours(error.obj):
            raise
        what = f"{type(error).__name__}: {one_line(str(error))} at {raised_at(error)}"
        raise QuietError(
            f"{os.fspath(path)}: damaged, or cbench has a bug: {what}; report it if the file is intact"
        ) from error


def _is_ours(thing: object) -> bool:
    """Whether an object is a module or an instance of one of our classes, which no store can contain."""
    return isinstance(thing, ModuleType) or type(thing).__module__.partition(".")[0] in ("cbench", "quiet")


def reads_store(function: Callable[Concatenate[Path, P], T]) -> Callable[Concatenate[Path, P], T]:
    """Decorate a function of a store's path so that all of its code runs within reading()."""

    @wraps(function)
    def guarded(path: Path, /, *args: P.args, **options: P.kwargs) -> T:
        with reading(path):
            return function(path, *args, **options)

    return guarded


class Database:
    """An open store, as a context manager."""

    def __init__(self, path: Path, connection: sqlite3.Connection, writing: bool) -> None:
        self.path = path
        self._connection = connection
        self._writing = writing

    def close(self) -> None:
        """Close the store and merge its log, so that a single file remains. If the disk is full or another process
        uses the store, the log remains as a part of the store.
        """
        if self._writing:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA busy_timeout=0")
                self._connection.execute("PRAGMA journal_mode=DELETE")
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A context with the connection for reading. Raises QuietError for content that a store cannot have."""
        with reading(self.path):
            yield self._connection

    def _write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Make a change in one transaction. Raises QuietError if it cannot be written."""
        with explained(self.path, self._what_is_kept()):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                result = change(self._connection)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        return result

    def _what_is_kept(self) -> str:
        """The part of an error message about the content that is kept."""
        return ""


def for_writing(path: Path) -> sqlite3.Connection:
    """A connection to a store of the newest version. The store is created if there is no file, or an empty one, and
    upgraded if it is older. Raises UsageError if the file is not a store or cannot be written, QuietError for other
    errors.
    """
    _check(path, exists=False)
    refuse_foreign_link(path)
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{path}: not writable")
    connection = _connect(path, "rwc")
    with explained(path, "; nothing was stored"), _closed_on_error(connection):
        # Identify the file first, because a foreign file must not be changed.
        version = _version(path, connection)
        if version < VERSION:
            _upgrade(connection)  # before a log exists, because the file itself must identify its format
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
    return connection


def for_reading(path: Path) -> sqlite3.Connection:
    """A read-only connection, which works while another process writes. Raises UsageError if the file is missing, empty
    or not a store, QuietError if it is damaged.
    """
    _check(path, exists=True)
    log = Path(f"{path}-wal")
    # In a read-only directory, SQLite cannot share the index of a log; without a log, there is no index.
    alone = not log.exists() and not os.access(path.parent, os.W_OK)
    _recover(path)
    connection = _connect(path, "ro&immutable=1" if alone else "ro")
    with explained(path), _closed_on_error(connection):
        if _version(path, connection) == 0:
            raise UsageError(f"{path}: empty: nothing was stored in it")
    return connection


@contextlib.contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, QuietError):
        connection.close()
        raise


def _recover(path: Path) -> None:
    """Make SQLite roll back a write that a kill interrupted, by reading the file with write access."""
    if not Path(f"{path}-journal").exists() or not os.access(path, os.W_OK):
        return
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_connect(path, "rw")) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master")


def _check(path: Path, exists: bool) -> None:
    if not path.name:
        raise UsageError(f"{path}: the name of a file is missing")
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, not a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: not an ordinary file")
    if exists and not path.exists():
        raise UsageError(f"{path}: no such file")
    if exists and not path.stat().st_size:  # includes kernel files, on which SQLite would block
        raise UsageError(f"{path}: empty: nothing was stored in it")
    if not path.parent.is_dir():
        raise no_directory(path)


def no_directory(path: Path) -> UsageError:
    """The error for a file to be created in a directory that does not exist."""
    return UsageError(f"{path}: there is no directory {path.parent}; create it, or choose another path")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    with explained(path):
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=WAIT_S, isolation_level=None)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST)
        connection.execute("PRAGMA trusted_schema=OFF")
    return connection


# A view or a computed column is evaluated by every query and can run forever. SQLite executes the text `sql` of an
# entry, whatever the entry's `type` says, and itself writes this text with these first words.
_FOREIGN = """
SELECT count(*) FROM sqlite_master WHERE sql != ''
AND sql NOT GLOB 'CREATE TABLE *' AND sql NOT GLOB 'CREATE INDEX *' AND sql NOT GLOB 'CREATE UNIQUE INDEX *'
"""
_COMPUTED = "SELECT count(*) FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c WHERE t.sql != '' AND c.hidden"


def _version(path: Path, connection: sqlite3.Connection) -> int:
    """The version of the store, 0 for an empty file. Raises UsageError if the file is not a store or is too new, and
    QuietError if it is damaged.
    """
    try:
        connection.execute("BEGIN")  # a consistent view, even if another process is creating the store
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        foreign = connection.execute(_FOREIGN).fetchone()[0] or connection.execute(_COMPUTED).fetchone()[0]
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
            raise UsageError(f"{path}: not a cbench store") from None
        raise
    except UnicodeDecodeError as error:  # SQLite's message quotes the schema
        raise QuietError(f"{path}: damaged: {one_line(str(error))}") from None
    if application == 0 and version == 0 and tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise UsageError(f"{path}: an SQLite file, but not a cbench store")
    if version < 1:
        raise QuietError(f"{path}: damaged: its format number is {version}")
    if foreign:
        raise UsageError(f"{path}: not a cbench store: it contains views, triggers or computed columns")
    if version > VERSION:
        raise UsageError(
            f"{path}: written by a newer cbench (format {version}; this version reads up to {VERSION}); upgrade cbench"
        )
    return version


def _upgrade(connection: sqlite3.Connection) -> None:
    """Upgrade the store step by step to the newest version, in one transaction."""
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


def has_study(connection: sqlite3.Connection) -> bool:
    """Whether an open store contains a study."""
    table = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'study'").fetchone()[0]
    return bool(table and connection.execute("SELECT count(*) FROM study").fetchone()[0])


def has_content(path: Path) -> bool:
    """Whether the file has any content; a store whose creation was killed has none. True for a file of another program
    and for a damaged store.
    """
    if not path.is_file() or not path.stat().st_size:
        return False
    _recover(path)
    try:
        with reading(path), contextlib.closing(_connect(path, "ro")) as connection:
            if _version(path, connection) == 0:
                return False
            return has_study(connection) or bool(connection.execute("SELECT count(*) FROM run").fetchone()[0])
    except QuietError:  # the file belongs to another program, or is damaged
        return True


def study_kind(path: Path) -> str | None:
    """The kind of the study in a store, None if it contains no study. Raises QuietError if the file is not a store."""
    with Database(path, for_reading(path), False) as store, store._reading() as connection:
        return str(connection.execute("SELECT kind FROM study").fetchone()[0]) if has_study(connection) else None

"""The store when something goes wrong outside it: no space, no permission, a kill, another process that uses it."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cbench.store.database import for_reading, reading
from cbench.store.kind import is_store
from cbench.store.schema import APPLICATION_ID
from cbench.store.store import Store
from quiet.errors import QuietError, UsageError
from tests import CHECKOUT
from tests.cbench.store.storing import HOST, facts, read, stored, trials

WRITER = """
import sys
from cbench.store.store import Store
from cbench.store.kind import is_store
from cbench.store.schema import APPLICATION_ID
from quiet.errors import QuietError
from tests.cbench.store.storing import HOST, facts, trials
path, limit = sys.argv[1], int(sys.argv[2])
if limit:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with Store.create(path, HOST, []) as store:
        series, done = store.begin(facts()), 0
        while done < 10**6:
            store.add(series, trials(range(done, done + 100)))
            done += 100
            print(done, flush=True)
except QuietError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def writer(path: Path, limit: int = 0) -> subprocess.Popen[str]:
    """Another process that stores 100 trials again and again and says how many it has stored."""
    return subprocess.Popen(
        [sys.executable, "-B", "-c", WRITER, str(path), str(limit)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=CHECKOUT,
    )


@pytest.mark.slow
@pytest.mark.parametrize("limit", [100_000, 400_000, 3_000_000])
def test_a_full_disk_keeps_the_earlier_trials(limit: int, tmp_path: Path) -> None:
    """The limit on a file's size gives the same kind of error from the kernel as a full disk or a quota."""
    path = tmp_path / "s.db"
    with writer(path, limit) as process:
        assert process.stdout
        *said, error = process.stdout.read().splitlines()
    kept = int(said[-1])
    assert process.returncode == 2
    assert error.startswith(f"{path}: cannot be written to (disk, quota or file size limit?) [SQLITE_IOERR")
    assert error.endswith(f"]; {kept:,} trials of this run are kept in it")
    assert read(path)[0].values == list(range(kept))
    stored(path, [[42]])
    assert [len(series.trials) for series in read(path)] == [kept, 1]


def test_a_disk_without_room_for_the_first_page_is_reported_in_one_line(tmp_path: Path) -> None:
    with writer(tmp_path / "s.db", 1000) as process:
        assert process.stdout
        (line,) = process.stdout.read().splitlines()
    assert process.returncode == 2
    assert line.endswith("; nothing was stored")


def test_a_full_file_by_sqlites_own_limit_says_that_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    def fill() -> None:
        with Store.create(path, HOST, []) as store:
            store._connection.execute("PRAGMA max_page_count=40")
            series = store.begin(facts())
            for start in range(0, 10**6, 100):
                store.add(series, trials(range(start, start + 100)))

    with pytest.raises(QuietError, match="the disk is full") as caught:
        fill()
    kept = len(read(path)[0].trials)
    assert kept
    assert f"{kept:,} trials of this run are kept in it" in str(caught.value)


@pytest.mark.parametrize("seed", range(5))
def test_kill_9_in_the_middle_keeps_everything_that_was_stored(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    draw = random.Random(seed)
    with writer(path) as process:
        assert process.stdout
        said = [process.stdout.readline() for _ in range(draw.randint(1, 40))]
        time.sleep(draw.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read().splitlines(keepends=True)
    assert is_store(path)
    header = path.read_bytes()[:72]  # https://www.sqlite.org/fileformat.html: the application id is at 68
    assert int.from_bytes(header[68:], "big") == APPLICATION_ID
    complete = [int(line) for line in said if line.endswith("\n")]
    values = read(path)[0].values
    assert values == list(range(len(values)))
    assert complete[-1] <= len(values) <= complete[-1] + 100
    assert len(values) % 100 == 0
    stored(path, [[1]])
    assert len(read(path)) == 2


def test_damaged_text_that_sqlite_quotes_is_reported_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    stored(path, [[42]])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE run SET host = CAST(x'0A1880' AS TEXT)")
    with pytest.raises(QuietError, match="Could not decode") as caught:
        read(path)
    assert str(caught.value).isprintable()


def test_a_store_that_another_process_holds_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cbench.store.database.WAIT_S", 0.1)
    path = stored(tmp_path / "s.db", [[1]])
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(QuietError, match="another process has locked it") as caught:
        Store.create(path, HOST, [])
    assert "\n" not in str(caught.value)
    holder.close()


@pytest.fixture
def shut() -> Iterator[Path]:
    """A store in a directory that every user may read, and only root may write."""
    with tempfile.TemporaryDirectory() as name:
        path = stored(Path(name) / "s.db", [[1, 2]])
        path.chmod(0o444)
        path.parent.chmod(0o555)
        yield path
        path.parent.chmod(0o755)


def as_nobody(attempt: Callable[[], object]) -> str:
    """What an attempt gives, or its error's line, in a process without root's privileges."""
    reader, writer = multiprocessing.Pipe(duplex=False)

    def child() -> None:
        if os.geteuid() == 0:
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
        try:
            writer.send(str(attempt()))
        except QuietError as error:
            writer.send(str(error))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    writer.close()
    said = str(reader.recv())
    process.join()
    return said


def test_a_folder_that_cannot_be_written_can_be_read(shut: Path) -> None:
    assert as_nobody(lambda: [series.values for series in read(shut)]) == "[[1, 2]]"


def test_a_file_or_folder_that_cannot_be_written_is_reported_in_one_line(shut: Path) -> None:
    assert as_nobody(lambda: Store.create(shut, HOST, [])) == f"{shut}: not writable"
    other = shut.with_name("other.db")
    said = as_nobody(lambda: Store.create(other, HOST, []))
    assert said == f"{other}: cannot be opened or created [SQLITE_CANTOPEN]"


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
FOREIGN = {
    "a view": [
        f"CREATE VIEW run AS {ENDLESS} SELECT i AS run, started_ns, ended_ns, version, command, host FROM n, old"
    ],
    "a trigger": ["CREATE TRIGGER t AFTER INSERT ON old BEGIN DELETE FROM series; END"],
    "a computed column": ["CREATE TABLE run (run INTEGER PRIMARY KEY, host AS (hex(zeroblob(1e8))))"],
    "a virtual table": ["CREATE VIRTUAL TABLE run USING rtree(run, a, b)"],
}


@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN)
def test_a_store_whose_queries_could_run_forever_is_refused(statements: list[str], tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[1]])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE run RENAME TO old")
        try:
            for statement in statements:
                connection.execute(statement)
        except sqlite3.OperationalError as error:
            pytest.skip(str(error))  # this SQLite has no virtual table of this kind
    for attempt in (lambda: read(path), lambda: Store.create(path, HOST, [])):
        with pytest.raises(UsageError, match="not a cbench store: it contains views, triggers or computed columns"):
            attempt()


def test_a_query_computes_no_value_above_the_limit(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[1]])
    connection = for_reading(path)
    with closing(connection), pytest.raises(QuietError, match="a value exceeds 64 MiB"), reading(path):
        connection.execute("SELECT hex(zeroblob(4e8))").fetchone()

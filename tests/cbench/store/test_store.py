"""The store: every value exact, every chunk whole, and nothing that was stored is lost."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.model import FAULT, INTERRUPT, MIGRATION, SWITCH, Trial, TrialCause
from cbench.store import database
from cbench.store.database import reading
from cbench.store.kind import is_store
from cbench.store.records import Timeline
from cbench.store.schema import VERSION, pack, unpack
from cbench.store.store import Store
from quiet.errors import QuietError, UsageError
from quiet.noise import clock
from tests.cbench.store.storing import HOST, facts, read, stored, trials

UINT64 = st.integers(0, 2**64 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TRIALS = st.builds(
    Trial,
    value=UINT64,
    output=UINT64,
    causes=st.lists(st.builds(TrialCause, st.sampled_from([SWITCH, MIGRATION, FAULT]), NAMES), max_size=3).map(tuple),
    context_switches=st.integers(0, 2**31),
    page_faults=st.integers(0, 2**31),
    interrupts=st.dictionaries(NAMES, st.integers(1, 2**40), max_size=3),
    migrated=st.booleans(),
    valid=st.booleans(),
    begin=UINT64,
    end=UINT64,
    counts=st.dictionaries(NAMES, UINT64, max_size=3),
    kernel=st.none() | UINT64,
    traced=st.none()
    | st.lists(st.builds(TrialCause, st.sampled_from([FAULT, INTERRUPT]), NAMES, ns=UINT64)).map(tuple),
)


@settings(deadline=None)
@given(TRIALS)
def test_a_trial_comes_back_as_it_was(trial: Trial) -> None:
    assert unpack(pack(trial)) == trial


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(TRIALS, min_size=1, max_size=5))
def test_sqlite_keeps_every_bit_of_a_trial(found: list[Trial]) -> None:
    connection = sqlite3.connect(":memory:")
    places = ", ".join("?" * 13)
    kinds = ", ".join(f'"{name}" ANY' for name in range(13))
    connection.execute(f"CREATE TABLE t ({kinds}) STRICT")
    connection.executemany(f"INSERT INTO t VALUES ({places})", [pack(trial) for trial in found])
    assert [unpack(row) for row in connection.execute("SELECT * FROM t")] == found
    connection.close()


def test_counts_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.create(path, HOST, []) as store:
        store.add(store.begin(facts()), [Trial(5, 6, counts={"instructions": 2**63}, kernel=3)])
    kept = read(path)[0].trials[0]
    assert kept.counts == {"instructions": 2**63}
    assert kept.value == 5
    more = sqlite3.connect(path).execute("SELECT more FROM trial").fetchone()[0]
    assert more == '{"kernel":3}'


def test_a_run_keeps_its_host_its_command_and_its_times(tmp_path: Path) -> None:
    before = time.time_ns()
    path = stored(tmp_path / "s.db", [[1, 2], [3]])
    with Store.open(path) as store:
        (run,) = store.runs()
    assert run.host == HOST
    assert run.command == ("cbench", "run", "hash")
    assert run.ended_ns is not None
    assert before <= run.started_ns <= run.ended_ns <= time.time_ns()


def test_series_keep_their_order_and_what_was_known_before_and_after(tmp_path: Path) -> None:
    series = read(stored(tmp_path / "s.db", [[1, 2], [3]]))
    assert [(s.process, s.position, s.values, s.test, s.cpu) for s in series] == [
        (0, 0, [1, 2], "hash n=1000", 1),
        (1, 1, [3], "hash n=1000", 1),
    ]
    assert series[0].warmup == [11, 7]
    assert series[0].facts["stolen_ms"] == 0
    assert (series[0].unit, series[0].quantum) == ("TSC ticks", 25)
    assert all(s.ended_ns is not None for s in series)


def test_parameters_that_are_drawn_for_each_process_are_not_part_of_the_test(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.create(path, HOST, []) as store:
        for size in (100, 200):
            for process, offset in enumerate((0, 64)):
                store.begin(facts(process, workload="chase", params={"size": size, "offset": offset}))
        store.begin(facts(0, workload="hash"))
    assert [series.test for series in read(path)] == [
        "chase size=100",
        "chase size=100",
        "chase size=200",
        "chase size=200",
        "hash n=1000",
    ]
    assert read(path)[1].params == {"size": 100, "offset": 64}


def test_chunks_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.create(path, HOST, []) as store:
        first, second = store.begin(facts()), store.begin(facts(1))
        for start in range(0, 30, 10):
            store.add(first, trials(range(start, start + 10)))
            store.add(second, trials([start]))
        store.add(first, [])
    kept = read(path)
    assert kept[0].values == list(range(30))
    assert [each.position for each in kept[0].trials] == list(range(30))
    assert kept[1].values == [0, 10, 20]


def test_a_second_run_is_added_to_the_first(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[1]])
    stored(path, [[2]], cpu=3)
    assert [(s.run.number, s.cpu, s.values) for s in read(path)] == [(1, 1, [1]), (2, 3, [2])]


def test_the_time_of_a_trial_is_known_from_its_ticks(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.create(path, HOST, []) as store:
        series = store.begin(facts())
        time.sleep(0.05)
        ticks, middle = clock.now(), time.time_ns()
        time.sleep(0.05)
        store.add(series, [Trial(1, 1, begin=ticks), Trial(1, 1)])
    found = read(path)[0].trials
    assert found[0].begin_ns is not None
    assert abs(found[0].begin_ns - middle) < 30_000_000
    assert found[1].begin_ns is None


def test_between_two_moments_a_clock_runs_evenly() -> None:
    line = Timeline([100, 200, 400], [1_000, 2_000, 2_200])
    assert [line.of(t) for t in (99, 100, 150, 200, 300, 400, 401, 0)] == [
        *(None, 1_000, 1_500, 2_000, 2_100, 2_200, None, None),
    ]


def test_a_closed_store_is_one_file(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[1]])
    assert os.listdir(tmp_path) == ["s.db"]
    assert is_store(path)


def test_an_exception_in_the_middle_leaves_the_run_open_and_the_trials_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    def stopped() -> None:
        with Store.create(path, HOST, []) as store:
            store.add(store.begin(facts()), trials([4, 5]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    (series,) = read(path)
    assert series.values == [4, 5]
    assert series.run.ended_ns is None
    assert series.ended_ns is None
    assert series.unit == "TSC ticks"


def test_a_store_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.create(path, HOST, []) as store:
        series = store.begin(facts())
        store.add(series, trials([1]))
        assert read(path)[0].values == [1]
        store.add(series, trials([2]))
        assert read(path)[0].values == [1, 2]


def plain(folder: Path) -> Path:
    path = folder / "notes.txt"
    path.write_text("these are my notes, " * 50)
    return path


def short(folder: Path) -> Path:
    path = folder / "short.txt"
    path.write_text("no")
    return path


def foreign(folder: Path) -> Path:
    path = folder / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (a)")
    connection.commit()
    connection.close()
    return path


def newer(folder: Path) -> Path:
    path = stored(folder / "newer.db", [[1]])
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={VERSION + 1}")
    connection.close()
    return path


REFUSED = [
    (plain, "not a cbench store"),
    (short, "not a cbench store"),
    (foreign, "an SQLite file, but not a cbench store"),
    (newer, f"written by a newer cbench (format {VERSION + 1}"),
    (lambda folder: folder, "is a directory"),
    (lambda folder: folder / "none" / "s.db", "there is no directory"),
    (lambda _: Path("/dev/full"), "not an ordinary file"),
    (lambda _: Path("/"), "the name of a file is missing"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_anything_but_a_store_is_refused_and_left_unchanged(
    make: Callable[[Path], Path], message: str, tmp_path: Path
) -> None:
    path = make(tmp_path)
    before = path.read_bytes() if path.is_file() else None
    for attempt in (lambda: Store.create(path, HOST, []), lambda: Store.open(path)):
        with pytest.raises(UsageError) as caught:
            attempt()
        if before is not None or path.exists():
            assert message in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_file_that_is_missing_or_empty_has_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        Store.open(tmp_path / "s.db")
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="empty: nothing was stored"):
        Store.open(tmp_path / "empty")
    assert read(stored(tmp_path / "empty", [[1]]))[0].values == [1]


@pytest.mark.slow
def test_a_store_that_another_process_is_just_creating_is_empty_and_not_foreign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")  # writes its first page
    assert path.stat().st_size
    other = threading.Thread(target=lambda: stored(path, [[5]]))
    connect = database._connect

    def connected(path: Path, mode: str) -> sqlite3.Connection:
        connection = connect(path, mode)
        if threading.current_thread() is not other:
            connection.set_trace_callback(interfere)
        return connection

    def interfere(statement: str) -> None:
        if "user_version" in statement:  # the text before it has been read
            other.start()
            other.join(0.5)

    monkeypatch.setattr(database, "_connect", connected)
    with pytest.raises(UsageError, match=r"new\.db: empty: nothing was stored in it"):
        Store.open(path)
    other.join()
    assert len(read(path)) == 1


def test_a_damaged_store_is_reported_in_one_line(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [list(range(5000))])
    content = bytearray(path.read_bytes())
    content[5 * 4096 : -4096] = random.Random(1).randbytes(len(content) - 6 * 4096)
    path.write_bytes(content)
    with pytest.raises(QuietError, match="damaged") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_trials_are_plain_rows_for_any_sqlite_tool(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[5, 6, 7]])
    found = sqlite3.connect(path).execute("SELECT sum(value), count(*) FROM trial JOIN series USING (series)")
    assert found.fetchone() == (18, 3)


def test_records_are_frozen(tmp_path: Path) -> None:
    (series,) = read(stored(tmp_path / "s.db", [[5]]))
    for thing, name in ((series, "cpu"), (series.run, "host"), (series.trials[0], "position")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, 1)


@pytest.mark.parametrize("version", [0, -1])
def test_a_store_with_tables_is_not_empty_whatever_its_version_says(version: int, tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[1, 2]])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={version}")
    with pytest.raises(QuietError, match=rf"s\.db: damaged: its format number is {version}$"):
        Store.open(path)


def test_a_schema_that_is_not_text_is_a_damaged_store(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[1, 2]])
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE T\xffBLE", 1))
    with pytest.raises(QuietError, match=r"s\.db: damaged: "):
        Store.open(path)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        *((OverflowError("x"), "OverflowError: x"), (RecursionError("x"), "RecursionError: x")),
        *((ValueError("x"), "x"), (UnicodeError("x"), "x"), (sqlite3.DatabaseError("x"), "x")),
    ],
)
def test_any_error_from_a_damaged_store_is_one_line_that_names_it(error: Exception, why: str) -> None:
    with pytest.raises(QuietError, match=rf"^s\.db: damaged: {why}$"), reading("s.db"):
        raise error


def test_advice_is_not_damage() -> None:
    with pytest.raises(UsageError, match=r"^advice$"), reading("s.db"):
        raise UsageError("advice")


@pytest.mark.parametrize("read_wrongly", [lambda: {}[0], lambda: None.get, lambda: [] + 1, lambda: 1 / 0])
def test_a_possible_defect_of_the_reader_is_not_reported_only_as_damage(read_wrongly: Callable[[], object]) -> None:
    said = rf"^s\.db: damaged, or cbench has a bug: .* at {__name__}:\d+; report it if the file is intact$"
    with pytest.raises(QuietError, match=said):  # noqa: SIM117
        with reading("s.db"):
            read_wrongly()


@pytest.mark.parametrize("thing", [sqlite3, Trial(1, 2)])
def test_an_error_that_no_store_can_cause_is_a_defect(thing: object) -> None:
    with pytest.raises(AttributeError), reading("s.db"):
        thing.nothing  # type: ignore[attr-defined]  # noqa: B018

"""`cbench compare`: files that cannot be compared are reported in one line."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from cbench.store.store import Store
from tests.cbench.compare.comparing import fails
from tests.cbench.store.storing import CYCLES, HOST, facts, stored, trials


def test_a_file_of_sqlite_that_is_not_a_store_is_reported_in_one_line(a: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    fails(a, tmp_path / "other.db", "an SQLite file, but not a cbench store")


@pytest.mark.parametrize("values", ["1" + "0" * 400, "1e999", '"x"', "[1]", "null", "1], [", "[" * 100_000])
def test_a_damaged_file_of_pyperf_is_reported_in_one_line(a: Path, values: str, tmp_path: Path) -> None:
    head = '{"benchmarks": [{"runs": [{"values": [1, ' + values
    (tmp_path / "p.json").write_text(head + ']}]}], "metadata": {"name": "n", "unit": "integer"}, "version": "1.0"}')
    fails(a, tmp_path / "p.json", "p.json: ")


def test_a_damaged_archive_of_pyperf_is_reported_in_one_line(a: Path, tmp_path: Path) -> None:
    data = bytearray(gzip.compress(json.dumps(list(range(1000))).encode()))
    data[20:40] = b"\xff" * 20
    (tmp_path / "p.json.gz").write_bytes(data)
    fails(a, tmp_path / "p.json.gz", "p.json.gz: damaged gzip file: ")


def test_data_that_cannot_be_compared_are_reported_in_one_line(a: Path, tmp_path: Path) -> None:
    cycles = stored(tmp_path / "c.db", [[5, 5]], counter=CYCLES)
    fails(a, cycles, "hash n=1000: A is in TSC ticks, B in cycles")
    fails(a, stored(tmp_path / "s.db", [[5, 5]], workload="sieve"), "no test is in both")
    fails(a, f"{a}:sieve", "no test 'sieve'; the file has 'hash n=1000'")
    fails(a, tmp_path / "none", "no such file")
    fails(a, tmp_path / "none:hash", "no such file")
    (tmp_path / "folder").mkdir()
    fails(a, tmp_path / "folder", "the directory is empty")
    fails(a, stored(tmp_path / "z.db", [[0, 5]]), "ratios need values above 0")
    fails(a, stored(tmp_path / "f.db", [[6, 5]]), "has no floor; use --headline median", headline="floor")
    Store.create(tmp_path / "e.db", HOST, []).close()
    fails(a, tmp_path / "e.db", "contains no trials")


def test_without_undisturbed_trials_there_is_nothing_to_compare_by_them(a: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    with Store.create(path, HOST, []) as store:
        store.add(store.begin(facts()), trials([5], {0: "interrupt LOC"}))
    fails(a, path, "no undisturbed trial in B", clean_only=True)


MALFORMED = [
    "",
    "{",
    "{}",
    "[]",
    "not JSON",
    '{"version": "1.0"}',
    '{"version": "7.5", "benchmarks": []}',
    '{"version": "1.0", "benchmarks": []}',
    '{"version": "1.0", "benchmarks": 5}',
    '{"version": "1.0", "benchmarks": [{"runs": []}]}',
    '{"version": "1.0", "benchmarks": [{"runs": [{"values": [1]}]}]}',
    '{"version": "1.0", "metadata": {"name": "x"}, "benchmarks": [{"runs": [{"values": [-1]}]}]}',
    '{"version": "1.0", "metadata": {"name": "x"}, "benchmarks": [{"runs": [{"values": [NaN]}]}]}',
    '{"version": "1.0", "metadata": {"name": "x"}, "benchmarks": [{"runs": [{"values": [Infinity]}]}]}',
    '{"version": "1.0", "metadata": {"name": "x"}, "benchmarks": [{"runs": [{"values": ["1"]}]}]}',
    '{"version": "1.0", "metadata": {"name": "x"}, "benchmarks": [{"runs": [{"warmups": [[1, 2]]}]}]}',
    '{"version": "1.0", "metadata": {"name": "x", "unit": "parsec"}, "benchmarks": [{"runs": [{"values": [1]}]}]}',
    '{"version": "1.0", "metadata": 5, "benchmarks": [{"runs": [{"values": [1]}]}]}',
]


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_file_is_reported_in_one_line(text: str, a: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    fails(a, path, str(path))
    fails(path, a, str(path))


def test_a_file_in_another_encoding_is_reported_in_one_line(a: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b'{"version": "\xff\xfe"}')
    fails(a, tmp_path / "bad.json", "bad.json: line 1: not UTF-8 text")

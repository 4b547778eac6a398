"""Damaged files of every format: read, or refused in one line that names the file. Never anything else."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench.formats import registry
from quiet import QuietError
from tests.cbench.formats.test_fixtures import DATA, FIXTURES
from tests.cbench.store.storing import noisy, stored
from tests.fuzz.damage import damage

MUTATIONS = 200
SEED = 20261123
LONGEST = 700  # characters of a message, with the names of all formats and a path
PLACE = re.compile(r"line \d|\[\d+\]|^: [\w./-]+: ")
OF_THE_WHOLE_FILE = re.compile(
    ": (empty|unknown format|damaged gzip file|damaged JSON: (nested|an integer of)|contains no results|no values"
    "|contains no trials|contains no BenchmarkResults|all trials failed)"
)


def damaged(files: list[Path], folder: Path) -> Iterator[Path]:
    """MUTATIONS copies, each damaged in one file of it; of a directory one of its files."""
    draw = random.Random(f"{SEED} {files[0].name}")
    for number in range(MUTATIONS):
        seed = draw.choice(files)
        copy = folder / f"{number}" / seed.name
        copy.parent.mkdir()
        if seed.is_dir():
            shutil.copytree(seed, copy)
        else:
            shutil.copy(seed, copy)
        victim = draw.choice(sorted(each for each in copy.rglob("*") if each.is_file())) if seed.is_dir() else copy
        victim.write_bytes(damage(victim.read_bytes(), draw))
        yield copy
        shutil.rmtree(copy.parent)


def check(path: Path, kind: str = "") -> bool:
    """Whether it is still read. `kind`: the format in whose messages the place must be."""
    try:
        samples = registry.read(path)
    except QuietError as error:
        message = str(error)
        assert str(path) in message
        assert len(message.replace(str(path), "")) < LONGEST
        assert len(message.splitlines()) == 1
        rest = message.removeprefix(str(path)).removeprefix(f": {kind}")
        assert not kind or PLACE.search(rest) or OF_THE_WHOLE_FILE.match(rest), message
        return False
    assert samples
    assert all(sample.processes and all(sample.processes) for sample in samples)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({kind for _, kind, *_ in FIXTURES}))
def test_200_damaged_files_are_read_or_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    files = [DATA / file for file, each, *_ in FIXTURES if each == kind]
    read = [check(path, kind) for path in damaged(files, tmp_path)]
    assert len(read) == MUTATIONS
    assert not all(read)  # the damage is real


@pytest.mark.slow
def test_200_damaged_stores_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    store = stored(tmp_path / "s.db", noisy(1e6, 3, 5, seed=1))
    read = [check(path) for path in damaged([store], tmp_path)]
    assert not all(read)


def test_200_damaged_parquet_files_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet  # type: ignore[import-untyped]

    path = tmp_path / "t.parquet"
    parquet.write_table(csv.read_csv(DATA / "table-processes.csv"), path)
    assert [sample.name for sample in registry.read(path)] == ["sort", "sum"]
    read = [check(each) for each in damaged([path], tmp_path)]
    assert not all(read)

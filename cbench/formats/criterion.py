"""Read a directory of Criterion.rs (`target/criterion`): the latest samples of each benchmark below it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError, JsonValue, Number
from cbench.formats.reader import ResultReader, TestSample
from quiet import UsageError

LATEST = "new"
SAMPLE, BENCHMARK = "sample.json", "benchmark.json"
MOST = 50_000
"""The maximum number of directories to search; a directory with more is probably the root of a file system and not
Criterion's directory.
"""


class CriterionReader(ResultReader):
    """Each `new/sample.json` is one process; its samples are the values, in ns per iteration (`times` / `iters`).

    Copies of `target/criterion` below one directory are several processes of the same benchmarks.
    """

    name = "Criterion directory"
    more = "run `cargo bench` {n} times, copy target/criterion after each into one directory, and give this directory"

    def matches(self, content: Content) -> bool:
        return content.directory and next(_samples(content.path), None) is not None

    def read(self, content: Content) -> tuple[TestSample, ...]:
        return tuple(self._sample(content.path, path) for path in sorted(_samples(content.path)))

    def _sample(self, folder: Path, path: Path) -> TestSample:
        about = path.with_name(BENCHMARK)
        with _within(folder, about):
            name = _document(about)["full_id"].text()
        with _within(folder, path):
            return self.sample(name, "ns", [_times(_document(path))])


@contextmanager
def _within(folder: Path, path: Path) -> Iterator[None]:
    """A context that adds this file's path to the place of each DamagedError."""
    try:
        yield
    except DamagedError as error:
        raise DamagedError(str(path.relative_to(folder)), str(error)) from None


def _samples(folder: Path) -> Iterator[Path]:
    """The files with the latest samples. Links are not followed."""
    for number, (root, folders, files) in enumerate(os.walk(folder)):
        if number == MOST:
            raise UsageError(
                f"{folder}: contains more than {MOST:,} directories; give Criterion's directory, target/criterion"
            )
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        if os.path.basename(root) == LATEST and SAMPLE in files and BENCHMARK in files:
            yield Path(root, SAMPLE)


def _document(path: Path) -> JsonValue:
    document = Content(path).json
    if document is None:
        raise DamagedError("", "not JSON")
    return document


def _times(sample: JsonValue) -> list[Number]:
    """The time per iteration of each sample, in ns. Older versions write an array of two arrays instead of `iters` and
    `times`.
    """
    if sample.is_list and len(sample.items()) == 2:
        iterations, times = (each.numbers() for each in sample.items())
    else:
        iterations, times = sample["iters"].numbers(), sample["times"].numbers()
    if len(iterations) != len(times):
        raise DamagedError("times", f"{len(times):,} values, but iters has {len(iterations):,}")
    if min(iterations) <= 0:
        raise DamagedError("iters", "a sample without iterations")
    return [time / count for time, count in zip(times, iterations, strict=True)]

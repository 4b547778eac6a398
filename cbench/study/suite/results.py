"""Read the results of a harness through cbench.formats, and assign them to the tests that were run."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from itertools import chain
from pathlib import Path
from statistics import median

from cbench.formats import registry
from cbench.formats.reader import TestSample
from cbench.study.process.run_command import Execution
from cbench.study.records import StoredFacts
from quiet import UsageError, one_line

BETWEEN = " /:"
"""The characters that separate the parts of a result's name."""


class NoResultsError(Exception):
    """Raised if a process has left no readable results; the text gives the reason."""


def read(done: Execution, results: str) -> tuple[TestSample, ...]:
    """Read the results that a process has written to the path `results`. Raises NoResultsError if there are none."""
    if not os.path.exists(results):
        raise NoResultsError(f"exited with {done.code} and wrote no results: {last_line(done)}")
    try:
        return registry.read(Path(results))
    except UsageError as error:
        raise NoResultsError(f"its results: {str(error).removeprefix(f'{results}: ')}") from None


def last_line(done: Execution) -> str:
    """The reason why a process ended: the last line with the word "error", otherwise the last line. The line is from
    its error output or, if this is empty, from its output. "it printed nothing" if both are empty.
    """
    lines = (done.errors.strip() or done.output.strip()).decode(errors="replace").splitlines()
    named = [line for line in lines if "error" in line.lower()] or lines
    return one_line(named[-1].strip()) if named else "it printed nothing"


def assigned(samples: Sequence[TestSample], tests: Container[str]) -> dict[str, dict[str, TestSample]]:
    """The results by metric of each test that has any, in the order of the results.

    A result belongs to the test with the same name, or else to the test with the longest name that is a prefix of the
    result's name and ends at a word boundary: Go's `BenchmarkA/sub-8` belongs to `BenchmarkA`, Catch2's `case: loop` to
    `case`. If a test has only one result, its metric is ""; otherwise, a metric is the rest of its result's name.
    """
    of_test: dict[str, dict[str, TestSample]] = {}
    for sample in samples:
        owner = _owner(sample.name, tests)
        if owner is not None:
            of_test.setdefault(owner, {})[sample.name[len(owner) :]] = sample
    return {test: _short(found) for test, found in of_test.items()}


def _owner(name: str, tests: Container[str]) -> str | None:
    if name in tests:
        return name
    ends = (end for end in range(len(name) - 1, 0, -1) if not (name[end].isalnum() or name[end] == "_"))
    return next((name[:end] for end in ends if name[:end] in tests), None)


def _short(results: dict[str, TestSample]) -> dict[str, TestSample]:
    """The results by shortened names, which lack the leading words that all names share."""
    common = min(results)
    while not all(rest.startswith(common) for rest in results):
        common = common[:-1]
    while common and any(_within_word(rest, len(common)) for rest in results):
        common = common[:-1]
    return {rest[len(common) :].strip(): sample for rest, sample in results.items()}


def _within_word(text: str, at: int) -> bool:
    return at < len(text) and text[at] not in BETWEEN and text[at - 1] not in BETWEEN


def value(sample: TestSample) -> float:
    """The median of all values that this process measured for the result."""
    return float(median(chain.from_iterable(sample.processes)))


def facts(results: dict[str, TestSample]) -> StoredFacts:
    """The facts stored with the medians: the unit and all samples of each metric."""
    return {
        metric: {"unit": sample.unit, "values": [*chain.from_iterable(sample.processes)]}
        for metric, sample in results.items()
    }

"""List the tests of a suite, once, before the orders of a study are drawn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from cbench.study.process.run_command import Execution, execute
from cbench.study.process.scratch import scratch
from cbench.study.suite.results import NoResultsError, last_line, read
from cbench.study.suite.suite import RESULTS, Suite
from quiet import QuietError, UsageError, one_line, printable

MOST_TESTS = 10_000
STATUS = 256
"""The number of exit statuses, which have eight bits."""


def discover(suite: Suite, folder: str, environment: Mapping[str, str], file: str) -> tuple[str, ...]:
    """The names of all tests, in the suite's own order. Raises UsageError, with the name of `file`, if they cannot be
    listed.
    """
    where = f"{file}: suite.discover"
    with scratch() as place:
        results = str(place / "results")
        words = suite.discovery(results)
        try:
            variables = {**environment, **suite.variables(results)}
            done = execute(words, str(Path(folder, suite.directory)), variables, suite.timeout_s, bound=True)
        except (OSError, QuietError) as error:
            hint = "; a program with options must be a list of words" if len(words[0].split()) > 1 else ""
            raise UsageError(f"{where}: {words[0]}: {getattr(error, 'strerror', None) or error}{hint}") from None
        if done.code is None:
            raise UsageError(f"{where}: timed out after {suite.timeout_s:g} s; raise suite.timeout")
        if any(RESULTS in word for word in suite.discover):
            names = _of_results(where, done, results)
        else:
            names = _of_lines(suite.names, done)
        if done.code and not (suite.counts and done.code == len(names) % STATUS):
            raise UsageError(f"{where}: exited with {done.code}: {last_line(done)}")
    return _checked(where, names, last_line(done))


def _of_results(where: str, done: Execution, results: str) -> list[str]:
    try:
        return [sample.name for sample in read(done, results)]
    except NoResultsError as error:
        raise UsageError(f"{where}: {error}") from None


def _of_lines(names: str, done: Execution) -> list[str]:
    lines = done.output.decode(errors="replace").splitlines()
    return [found[1] for line in lines if (found := re.fullmatch(names, line.strip())) and found[1] is not None]


def _checked(where: str, names: list[str], said: str) -> tuple[str, ...]:
    if not names:
        raise UsageError(f"{where}: lists no tests: {said}")
    if len(names) > MOST_TESTS:
        raise UsageError(f"{where}: {len(names):,} tests; at most {MOST_TESTS:,} are supported")
    for name, times in Counter(names).items():
        if not name or printable(name) != name or "\n" in name or "\t" in name:
            raise UsageError(f"{where}: {one_line(name)!r}: is empty or has control characters; rename the test")
        if times > 1:
            raise UsageError(
                f"{where}: {one_line(name)!r} is listed {times:,} times, so its results are ambiguous; give each test "
                "its own name"
            )
    return tuple(names)

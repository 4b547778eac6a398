"""Run some tests of a suite in one process, and return one trial per test."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cbench.study.process.process_tags import PADDING
from cbench.study.process.run_command import Execution, execute
from cbench.study.process.scratch import scratch
from cbench.study.records import Ended, StoredFacts
from cbench.study.suite.results import NoResultsError, assigned, facts, last_line, read, value
from cbench.study.suite.suite import Suite
from quiet import QuietError

LATE = "timed out"
POINTER = 8
MOST_PADDING = 100_000
"""The maximum number of bytes of padding; below the kernel's MAX_ARG_STRLEN, which is 128 KiB with 4 KiB pages."""
SHOWN_CHARACTERS = 80


def measure(
    suite: Suite,
    names: Sequence[str],
    order: Sequence[int],
    run: int,
    position: int,
    *,
    seed: int,
    study_folder: str,
    environment: Mapping[str, str],
) -> list[Ended]:
    """Run the tests with the numbers in `order` in one process, in this order if the harness allows it.

    Returns one trial per test, in the order in which they ran. `names`: the names of all tests; `position`: the
    position of the first test in its run. Any failure is recorded in the trials' `failure`.
    """
    with scratch() as place:
        results, listed = place / "results", place / "order"
        tests = [names[number] for number in order]
        if suite.needs_order_file():
            listed.write_text(suite.order_file(tests))
        words = suite.command(tests, seed, str(results), str(listed))
        longest = suite.command(names, sys.maxsize, str(results), str(listed))
        variables = {**environment, **suite.variables(str(results))}
        variables[PADDING] = variables.get(PADDING, "") + "x" * min(_size(longest) - _size(words), MOST_PADDING)
        begun = time.time_ns()
        try:
            done = execute(words, str(Path(study_folder, suite.directory)), variables, suite.timeout_s, bound=True)
        except (OSError, QuietError) as error:
            why = f"{words[0]} could not be started: {getattr(error, 'strerror', None) or error}"
            ends = begun, time.time_ns()
            return [
                Ended(run, position + place, number, *ends, why, None, b"", b"", {}, {})
                for place, number in enumerate(order)
            ]
        if suite.results_on_stdout and not done.cut:
            results.write_bytes(done.output)
        return _trials(suite, names, order, run, position, done, results)


def _size(words: Sequence[str]) -> int:
    """The stack space in bytes of a command line: its words and the pointers to them (execve(2))."""
    return sum(len(word.encode()) + 1 + POINTER for word in words)


def _trials(
    suite: Suite, names: Sequence[str], order: Sequence[int], run: int, position: int, done: Execution, results: Path
) -> list[Ended]:
    why = f"{LATE} ({suite.timeout_s:g} s)" if done.code is None else ""
    if not why and suite.results_on_stdout and done.cut:
        why = f"{done.cut:,} bytes of its output were not kept: let suite.run write the results to {{results}}"
    numbers = {names[number]: number for number in order}
    try:
        samples = () if why else read(done, str(results))
    except NoResultsError as error:
        samples, why = (), str(error)
    of_test = assigned(samples, numbers)
    if samples and not of_test:
        why = f"its results belong to other tests, such as {samples[0].name[:SHOWN_CHARACTERS]!r}"
    why = why or f"the process exited with {done.code} and reported no result for this test: {last_line(done)}"
    ran = [numbers[test] for test in of_test] if suite.ordered else []
    ended = []
    for place, number in enumerate(_in_fact(order, ran)):
        found = of_test.get(names[number], {})
        values = {metric: (value(sample), repr(value(sample))) for metric, sample in found.items()}
        times: StoredFacts = {"wall_s": done.wall_s, "user_s": done.user_s, "sys_s": done.sys_s}
        kept: StoredFacts = {} if place else {"output_cut": done.cut} if done.cut else {}
        ended.append(
            Ended(
                run=run,
                position=position + place,
                test=number,
                begun_ns=done.begun_ns,
                ended_ns=done.ended_ns,
                failure=None if found else why,
                code=done.code,
                output=b"" if place else done.output,  # the output of the whole process is stored once
                errors=b"" if place else done.errors,
                values=values,
                facts={"process": times, "results": facts(found)} | kept,
            )
        )
    return ended


def _in_fact(planned: Sequence[int], ran: Sequence[int]) -> list[int]:
    """The order in which the tests ran, according to the results. A test without a result stays after its planned
    predecessor.
    """
    if not ran:
        return list(planned)
    order, with_results = list(ran), set(ran)
    for place, number in enumerate(planned):
        if number not in with_results:
            before = next((each for each in reversed(planned[:place]) if each in order), None)
            order.insert(0 if before is None else order.index(before) + 1, number)
    return order

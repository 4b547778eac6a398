"""Read OrderSage's own result files: *_all_exp_results.csv (2021) and *_all_test_results.csv (2022).

A result has one or more numbers, with or without brackets. Four numbers are those of STREAM (copy, scale, add, triad).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf, isnan

from cbench.formats import csv_rows
from cbench.formats.content import Content
from cbench.formats.csv_rows import MISSING
from cbench.formats.json_value import DamagedError, Number
from cbench.formats.reader import ResultReader, TestSample

SHARED = ("run_uuid", "order_number", "order_type", "completion_status", "result")
COMMANDS = ("exp_command", "test_command")
STREAM = ("copy_omp", "scale_omp", "add_omp", "triad_omp")
SUCCESS, FAILURE = "Success", "Failure"


class OrderSageReader(ResultReader):
    """A row is a trial of a command in fixed or random order; it counts as a process with one value per metric, without
    a unit.
    """

    name = "OrderSage CSV"
    lists_orders = True
    lists_treatments = True
    more = "run OrderSage with {n} runs"

    def matches(self, content: Content) -> bool:
        return is_ordersage(csv_rows.columns(content))

    def read(self, content: Content) -> tuple[TestSample, ...]:
        rows = csv_rows.rows(content)
        command = next((name for name in COMMANDS if rows and name in rows[0][1]), "")
        if not rows or not command:
            raise DamagedError("", "contains no trials")
        labels = short_names([row[command] for _, row in rows])
        tests = [labels[row[command]] for _, row in rows]
        results = [numbers(place, row["completion_status"], row["result"]) for place, row in rows]
        metrics = metrics_of(tests, results)
        values: dict[str, list[list[Number]]] = {}
        for (place, _), test, result in zip(rows, tests, results, strict=True):
            if result and len(result) != len(metrics[test]):
                raise DamagedError(
                    place, f"{len(result)} numbers, but other results of this test have {len(metrics[test])}"
                )
            for metric, value in zip(metrics[test], result, strict=False):
                values.setdefault(f"{test}:{metric}" if metric else test, []).append([value])
        if not values:
            raise DamagedError("", "all trials failed")
        return tuple(self.sample(name, "", processes) for name, processes in values.items())


def is_ordersage(names: Sequence[str]) -> bool:
    """Whether a CSV file with these columns is one of OrderSage's result files."""
    return set(SHARED) <= set(names) and any(name in names for name in COMMANDS)


def lacking(names: Sequence[str]) -> str:
    """The only column that a CSV file with these columns lacks to be one of OrderSage's result files; "" if it lacks
    none or several.
    """
    missing = [name for name in SHARED if name not in names]
    if not any(name in names for name in COMMANDS):
        missing.append(" or ".join(COMMANDS))
    return missing[0] if len(missing) == 1 else ""


def short_names(commands: Sequence[str]) -> dict[str, str]:
    """The name of each command: the command without the leading ./ and the trailing .sh, or all commands unchanged if
    two of these names would be equal.
    """
    short = {each: each.removeprefix("./").removesuffix(".sh") for each in dict.fromkeys(commands)}
    return short if len(set(short.values())) == len(short) else {each: each for each in short}


def numbers(place: str, status: str, result: str) -> list[float]:
    """The numbers of a result; [] if the trial failed or a number is missing. Raises DamagedError for any other status
    or text.
    """
    if status == FAILURE:
        return []
    if status != SUCCESS:
        raise DamagedError(place, f"completion_status is {status[:40]!r}, neither {SUCCESS} nor {FAILURE}")
    if result.strip() in MISSING:
        return []
    try:
        bare = result.strip()
        found = [float(each) for each in (bare[1:-1] if bare[:1] + bare[-1:] == "[]" else bare).split(",")]
    except ValueError:
        found = []
    if not found or "_" in result or any(map(isinf, found)):
        raise DamagedError(place, f"result {result[:40]!r} is not a number")
    return [] if any(map(isnan, found)) else found


def metrics_of(tests: Sequence[str], results: Sequence[Sequence[float]]) -> dict[str, Sequence[str]]:
    """The names of each test's metrics; a single "" if a test has only one number or failed in every trial."""
    metrics: dict[str, Sequence[str]] = {}
    for test, found in zip(tests, results, strict=True):
        if found and test not in metrics:
            count = len(found)
            metrics[test] = STREAM if count == len(STREAM) else [str(n) for n in range(count)] if count > 1 else [""]
    return {test: metrics.get(test, [""]) for test in tests}

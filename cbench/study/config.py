"""Read and check a study's file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cbench.store.kind import check_ordinary
from cbench.study import model
from cbench.study.instruments import perf_record
from cbench.study.instruments import registry as instruments
from cbench.study.instruments.instrument import LAST, NO_CALL_GRAPH, SAMPLES, Sampling
from cbench.study.model import Metric, Study, Test
from cbench.study.orders import ALL_RANDOM, DESIGNS, INTERLEAVED, OF_SUITES, SHUFFLED, SUBSETS, WILLIAMS, square
from cbench.study.process import process_tags
from cbench.study.resets import registry as resets
from cbench.study.suite import parse as suites
from cbench.study.suite.suite import Suite
from cbench.study.toml_table import TomlTable, lines
from quiet import UsageError

MOST_TESTS, MOST_RUNS = 10_000, 1_000_000
DAY_S = 86_400.0
MOST_DEPTH = 50
NESTED = "tables and lists are nested too deeply"
OURS = dict.fromkeys(
    (process_tags.RUN, process_tags.POSITION, process_tags.TEST, process_tags.MARK, process_tags.PADDING),
    "cbench sets it for each trial",
)


def load(path: Path) -> Study:
    """The study that a file describes. Raises UsageError, with file, line and key, if the file is invalid."""
    return parse(text_of(path, "order", "study"), str(path), str(path.absolute().parent))


def text_of(path: Path, command: str, kind: str) -> str:
    """The text of a file. Raises UsageError if it cannot be read, is empty, or is not UTF-8.

    `command`: the command whose `init` writes an example; `kind`: the word for the file in messages.
    """
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, not a {kind}'s file")
    check_ordinary(path)
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; `cbench {command} init` writes an example") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text; save it as UTF-8") from None


def parse(text: str, file: str, folder: str, check: bool = True) -> Study:
    """Parse a study from the text of its file. `check`: require that this host has the workloads, counter, profile and
    directories, and accepts the environment variables. Raises UsageError as load() does.
    """
    whole = whole_of(text, file)
    study = whole.table("study")
    whole.only_tables("study", "test", "suite", "reset", "environment")
    timeout, read = study.number("timeout", 600.0, 0.1, 7 * DAY_S), study.given("read")
    tests: tuple[Test, ...] = ()
    suite = None
    if whole.has("suite"):
        suite = suites.parse(whole.table("suite"), timeout, (model.LOWER, model.HIGHER))
        if whole.has("test") or read is not None:
            raise whole.error("suite", "lists its tests and reads their results itself: remove [[test]] and study.read")
    else:
        tests = _tests(whole, timeout, folder if check else None, read_of(study))
    design = _design(study, suite)
    repetitions = study.whole("repetitions", None, 1, MOST_RUNS)
    if suite is None and design == WILLIAMS and (wrong := no_square(repetitions, len(tests))):
        raise study.error("repetitions", wrong)
    parsed = Study(
        name=study.label("name", Path(file).stem),
        tests=tests,
        repetitions=repetitions,
        design=design,
        seed=study.whole("seed", 1, -(2**63), 2**63 - 1),
        alpha=study.number("alpha", 0.05, 1e-9, 0.5),
        reset=resets.parse(whole.table("reset")),
        failures=study.text("failures", "trial", ("trial", "run")),
        counter=counter_of(study, check),
        profile=profile_of(study, check),
        cpus=study.text("cpus", ""),
        setup=study.texts("setup"),
        teardown=study.texts("teardown"),
        environment=whole.variables("environment", OURS if check else None, check),
        folder=folder,
        suite=suite,
    )
    if check and not parsed.setup and not parsed.reset.command:  # only setup and reset could create a missing directory
        _folders(whole, tests, Path(folder))
    if parsed.cpus and not parsed.profile:
        raise study.error("cpus", 'needs a profile, such as profile = "bench"')
    study.end()
    whole.end()
    return parsed


def _design(study: TomlTable, suite: Suite | None) -> str:
    """The design of the study. Raises UsageError if the suite's harness, or the suite's key `isolated`, does not allow
    this design.
    """
    if suite is None:
        return study.text("design", INTERLEAVED, DESIGNS)
    if suite.isolated == "yes":
        return study.text("design", INTERLEAVED, OF_SUITES)
    choices: tuple[str, ...] = OF_SUITES
    why = ""
    if suite.control == "own":
        choices, why = (SUBSETS,), f"{suite.harness} runs tests in its own order, so only the selection can vary"
    elif suite.control == "drawn":
        choices, why = (ALL_RANDOM,), f"{suite.harness} draws the order itself"
    elif suite.isolated == "both":
        choices = tuple(each for each in OF_SUITES if each not in (INTERLEAVED, SHUFFLED))
        why = 'isolated = "both" compares processes, and leaves no runs for a fixed order'
    design = study.text("design", INTERLEAVED if INTERLEAVED in choices else choices[0], OF_SUITES)
    if design not in choices:
        raise study.error("design", f"{design!r}: must be {' or '.join(choices)} here: {why}")
    return design


def no_square(repetitions: int, tests: int) -> str:
    """The reason why these repetitions do not form complete squares; "" if they do."""
    multiple = len(square(tests))
    return (
        f"{repetitions}: must be a multiple of {multiple} for {tests} tests in this design"
        if repetitions % multiple
        else ""
    )


def with_tests(study: Study, names: Sequence[str]) -> Study:
    """The study of a suite, completed with the tests that the suite has listed."""
    return replace(study, tests=tuple(Test(name) for name in names))


def whole_of(text: str, file: str) -> TomlTable:
    """A file's whole content. Raises UsageError if it is not TOML, with the line number if known, or if it is nested
    too deeply.
    """
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{file}: {NESTED}") from None
    except ValueError as error:  # also raised for numbers with more digits than Python reads
        place = re.search(r"\s*\(at line (\d+), column \d+\)", str(error))
        line = f":{place[1]}" if place else ""
        raise UsageError(f"{file}{line}: {str(error)[: place.start()] if place else error}") from None
    if _depth(content) > MOST_DEPTH:
        raise UsageError(f"{file}: {NESTED}")
    content.pop("fleet", None)  # only `cbench fleet` reads this table
    return TomlTable(file, lines(text), (), content)


def _depth(content: Any) -> int:
    """The nesting depth of tables and lists."""
    depth, inside = 0, [content]
    while inside := [each for each in inside if isinstance(each, (dict, list))]:
        depth += 1
        inside = [item for each in inside for item in (each.values() if isinstance(each, dict) else each)]
    return depth


def profile_of(study: TomlTable, check: bool) -> str:
    """The profile that a table names, "" for none. `check`: require that the profile exists."""
    name = study.text("profile", "")
    if name and check:
        from quiet import load_profile

        try:
            load_profile(name)
        except UsageError as error:
            raise study.error("profile", str(error).removeprefix("profile ")) from None
    return name


def _folders(whole: TomlTable, tests: tuple[Test, ...], folder: Path) -> None:
    """Check that the directories of the tests exist. The study's own directory is checked when the study begins."""
    for number, test in enumerate(tests):
        if folder.is_dir() and not (folder / test.directory).is_dir():
            raise whole.error_at(("test", number, "directory"), f"{folder / test.directory}: no such directory")


def counter_of(study: TomlTable, check: bool) -> str:
    """The counter for workloads. `check`: require that this host has the counter."""
    wanted = study.text("counter", "auto")
    if wanted != "auto" and check:
        from cbench.machine import counters, events

        if wanted not in (counters.CALIBRATED, counters.ticks_name()) and events.split(wanted) is None:
            raise study.error("counter", f"{wanted!r}: must be auto or a counter from `cbench list`")
    return wanted


def _tests(whole: TomlTable, timeout: float, folder: str | None, default: str) -> tuple[Test, ...]:
    tables = whole.tables("test")
    if not tables:
        raise whole.error("test", "is missing: a study needs at least one [[test]], or a [suite]")
    if len(tables) > MOST_TESTS:
        raise whole.error("test", f"{len(tables):,} tests; at most {MOST_TESTS:,} are supported")
    tests: dict[str, Test] = {}
    for table in tables:
        test = _test(table, timeout, folder, default)
        if test.name in tests:
            raise table.error("name", f"{test.name!r} appears twice")
        tests[test.name] = test
    return tuple(tests.values())


def _test(table: TomlTable, timeout: float, folder: str | None, default: str) -> Test:
    name = table.label("name")
    if not name or ":" in name:
        raise table.error("name", f"{name!r}: must be a nonempty name without colons")
    command, workload = what_of(table)
    metrics: tuple[Metric, ...] = ()
    for each in table.tables("metric"):
        metric = metric_of(each, bool(workload), False, default)
        if metric.name in {known.name for known in metrics}:
            raise each.error("name", f"{metric.name!r} appears twice")
        metrics += (metric,)
    if metrics:
        if table.given("read") is not None:
            raise table.error("read", "write it in each [[test.metric]] instead")
    else:
        metrics = (metric_of(table, bool(workload), True, default),)
    test = Test(
        name=name,
        command=command,
        workload=workload,
        params=table.pairs("params", int),
        metrics=metrics,
        timeout_s=table.number("timeout", timeout, 0.1, 7 * DAY_S),
        directory=table.text("directory", ""),
        sampling=_sampling(table, metrics),
    )
    if test.params and command:
        raise table.error("params", "only a workload has parameters")
    if test.directory and workload:
        raise table.error("directory", "applies only to commands")
    table.end()
    if workload and folder is not None:
        from cbench.study import workload as workloads

        if wrong := workloads.check(test, folder):
            raise table.error(*wrong)
    return test


def _sampling(table: TomlTable, metrics: tuple[Metric, ...]) -> Sampling | None:
    """The sampling of the test's command, shared by all its metrics that count samples; None if there are none."""
    ways = {perf_record.parse(metric.detail) for metric in metrics if metric.source == SAMPLES}
    if len(ways) > 1:
        raise table.error("metric", "is sampled in two ways: write the same samples:HOW in all metrics of a test")
    return next((replace(each, call_graph=each.call_graph or NO_CALL_GRAPH) for each in ways), None)


def what_of(table: TomlTable, what: str = "a test is either a command or a workload") -> tuple[str, str]:
    """The command and the workload of a table; one of the two is "". Raises UsageError, with the message `what`, if
    both or neither are given.
    """
    given = [key for key in ("command", "workload") if table.has(key)]
    texts = {key: table.text(key, "") for key in ("command", "workload")}
    for key in given:
        if not texts[key].strip():
            raise table.error(key, "is empty")
    if len(given) != 1:
        for key in () if given else texts:
            table.refuse_misspelled(key)
        raise table.error("command", f"{what}: write exactly one of them")
    return texts["command"], texts["workload"]


def read_of(table: TomlTable) -> str:
    """The default of `read` for commands: the key `read` of `[study]` or `[screen]`. Raises UsageError if the value is
    invalid.
    """
    read = table.text("read", LAST)
    try:
        instruments.parse(read)
    except ValueError as error:
        raise table.error("read", str(error)) from None
    return read


def metric_of(table: TomlTable, workload: bool, alone: bool, default: str = LAST) -> Metric:
    """Parse a metric. `workload`: the test is one of cbench's workloads; `alone`: the table is the test's own, so the
    metric has no name; `default`: the default `read` for commands. Raises UsageError if a key is invalid.
    """
    name = "" if alone else table.label("name")
    if not alone and (not name or ":" in name):
        raise table.error("name", f"{name!r}: must be a nonempty name without colons")
    read = table.text("read", model.VALUE if workload else default)
    if workload:
        source, _, detail = read.partition(":")
        if source != model.VALUE or detail:
            raise table.error("read", f"{read!r}: must be {model.VALUE!r} for a workload")
    else:
        try:
            source, detail = instruments.parse(read)
        except ValueError as error:
            raise table.error("read", str(error)) from None
    unit = table.label("unit", "" if workload else instruments.BY_SOURCE[source].unit)
    better = table.text("better", model.LOWER, (model.HIGHER, model.LOWER))
    if not alone:
        table.end()
    return Metric(name, source, detail, unit, better)

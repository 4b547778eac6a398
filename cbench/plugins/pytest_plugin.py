"""Provide `pytest --cbench-store=FILE`, which stores pytest-benchmark's rounds and each benchmark's interruptions.

pytest loads this file in every environment that has cbench installed, so the file imports other modules of cbench only
if the option is given.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cbench.plugins.own_process import OwnInterruptions

OPTION = "--cbench-store"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --cbench-store to pytest."""
    group = parser.getgroup("cbench")
    group.addoption(
        OPTION,
        metavar="FILE",
        default=None,
        help="Add the rounds and interruptions of each pytest-benchmark test to FILE, for `cbench compare`.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the keeper if the option is given. Raises pytest.UsageError if pytest-benchmark is missing, if pytest
    would interpret the option's file as the path of a test, if tests run in parallel, or if the file cannot be written.
    """
    path = config.getoption(OPTION)
    if path is None:
        return
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError(f"{OPTION}: needs pytest-benchmark: install it, or remove -p no:benchmark")
    file = (config.invocation_params.dir / path).resolve()
    if OPTION in config.invocation_params.args and not file.is_relative_to(config.invocation_params.dir.resolve()):
        raise pytest.UsageError(
            f"write {OPTION}={path}, because pytest interprets a separate word as the path of a test"
        )
    if hasattr(config, "workerinput") or getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(f"{OPTION}: benchmarks that run in parallel disturb each other; omit -n")
    config.pluginmanager.register(BenchmarkKeeper(Path(path)), "cbench-keeper")


class BenchmarkKeeper:
    """Writes each benchmark and its interruptions to the store, and the interruptions to pytest-benchmark's
    `extra_info`.
    """

    def __init__(self, path: Path) -> None:
        from cbench.machine.describe import describe
        from cbench.plugins.own_process import OwnCounts
        from cbench.results import json_object
        from cbench.store.store import Store
        from quiet import QuietError, isolated_cpus

        host = json_object(describe(frozenset(), isolated_cpus()))
        try:
            self._store = Store.create(path, host=host, command=sys.argv)
        except QuietError as error:
            raise pytest.UsageError(f"{OPTION} {error}") from None
        self._path, self._counts = path, OwnCounts()
        self._kept: list[tuple[str, int, OwnInterruptions]] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
        """Count interruptions while the test's function runs, including pytest-benchmark's calibration."""
        fixture: Any = pyfuncitem.funcargs.get("benchmark")
        if fixture is None:
            yield
            return
        self._counts.begin()
        outcome = yield
        seen = self._counts.end()
        stats = getattr(fixture, "stats", None)
        if stats is not None and outcome.excinfo is None:
            fixture.extra_info["interrupted"] = asdict(seen)
            self._keep(pyfuncitem.nodeid, list(stats.stats.data), seen)

    def _keep(self, test: str, seconds: list[float], seen: OwnInterruptions) -> None:
        from cbench.model import Counter, Trial
        from cbench.store.records import NO_CPU

        counter = Counter(
            name="wall",
            unit="ns",
            available=True,
            why="",
            method="pytest-benchmark's timer, mean of a round",
            quantum=1,
            overhead=None,
            overhead_median=None,
        )
        facts = {"workload": test, "params": {}, "cpu": NO_CPU, "process": 0, "counter": asdict(counter)}
        number = self._store.begin({**facts, "interrupted": asdict(seen)})
        self._store.add(number, [Trial(value=round(each * 1e9), output=0) for each in seconds])
        self._store.finish(number, {})
        self._kept.append((test, len(seconds), seen))

    def pytest_unconfigure(self) -> None:
        """Close the store."""
        self._counts.close()
        self._store.drop_if_empty()
        self._store.close()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report the interruptions of each benchmark."""
        if not self._kept:
            disabled = terminalreporter.config.getoption("benchmark_disable", False)
            why = " (--benchmark-disable)" if disabled else ""
            terminalreporter.write_line(f"{OPTION} {self._path}: no benchmark was measured{why}, so nothing is stored")
            return
        terminalreporter.section(f"benchmarks stored in {self._path}")
        for test, rounds, seen in self._kept:
            terminalreporter.write_line(f"{test}: {rounds:,} rounds; {seen.text or 'not interrupted'}")

"""Progress by area while tests run, and where their time went: `pytest -p tests.progress`, as `make test` does.

An area is a directory of `tests/`, or one file of the lab's cases. A line appears when an area is complete, when a test
fails, and at least every 30 s with the tests that are running.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Sequence
from pathlib import PurePath
from typing import Any

import pytest

EVERY_S = 30.0
SLOWEST = 12  # areas in the table at the end


def area(node: str) -> str:
    """The area of a test's node ID: `quiet/knobs`, `cbench/order`, `lab/boot`."""
    path = PurePath(node.split("::", 1)[0])
    parts = path.parts[1:] if path.parts[:1] == ("tests",) else path.parts
    if parts[:1] == ("lab",):
        return f"lab/{path.stem.removeprefix('test_')}"
    return "/".join(parts[:2]) if len(parts) > 2 else path.stem.removeprefix("test_")


def plain(node: str) -> str:
    """A node ID without the group that pytest-xdist appends."""
    return node.rsplit("@", 1)[0] if "@" in node.rsplit("::", 1)[-1] else node


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # in the process that starts the others
        config.pluginmanager.register(Progress(config), "tests-progress")


class Progress:
    """Counts reports and prints lines through pytest's terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.began = time.monotonic()
        self.printed = self.began
        self.left: Counter[str] = Counter()
        self.outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.seconds: Counter[str] = Counter()
        self.running: dict[str, float] = {}
        self.lock = threading.Lock()
        self.ended = threading.Event()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._expect(ids)

    def _expect(self, ids: Sequence[str]) -> None:
        if self.left:  # each process of pytest-xdist collects the same tests
            return
        self.left = Counter(area(each) for each in ids)
        self._print(f"{len(ids):,} tests in {len(self.left)} areas")
        threading.Thread(target=self._keep_printing, daemon=True).start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        with self.lock:
            self.running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        with self.lock:
            self.running.pop(nodeid, None)
            place = area(nodeid)
            self.left[place] -= 1
            complete = self.left[place] == 0
        if complete:
            counts = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(self.outcomes[place].items()))
            self._print(f"{place}: {counts} ({_minutes(self.seconds[place])} of tests)")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        place = area(report.nodeid)
        with self.lock:
            self.seconds[place] += report.duration
            if report.when == "call" or not report.passed:
                self.outcomes[place][report.outcome] += 1
        if report.failed:
            self._print(f"FAILED {plain(report.nodeid)} ({report.when})")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """Keep categories for the summary; the letters on the terminal are replaced by this file's lines."""
        category, _letter, _word = yield
        return category, "", ""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self.ended.set()
        if not self.seconds:
            return
        total = sum(self.seconds.values())
        terminalreporter.section(f"where the time went: {_minutes(total)} of tests in {self._clock()}")
        for place, seconds in self.seconds.most_common(SLOWEST):
            terminalreporter.line(f"{_minutes(seconds):>9}  {seconds / total:4.0%}  {place}")
        if (rest := len(self.seconds) - SLOWEST) > 0:
            seconds = sum(each for _, each in self.seconds.most_common()[SLOWEST:])
            terminalreporter.line(f"{_minutes(seconds):>9}  {seconds / total:4.0%}  {rest} other areas")

    def _keep_printing(self) -> None:
        while not self.ended.wait(1):
            now = time.monotonic()
            if now - self.printed < EVERY_S:
                continue
            with self.lock:
                running = sorted(self.running.items(), key=lambda each: each[1])
                left = sum(self.left.values())
            names = ", ".join(f"{_short(node)} ({_minutes(now - since)})" for node, since in running)
            self._print(f"{left:,} tests left; running: {names or 'none'}")

    def _print(self, line: str) -> None:
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        with self.lock:
            self.printed = time.monotonic()
            if terminal is not None:
                terminal.ensure_newline()
                terminal.write_line(f"[{self._clock()}] {line}", flush=True)

    def _clock(self) -> str:
        return _minutes(time.monotonic() - self.began)


def _short(node: str) -> str:
    path, _, name = plain(node).partition("::")
    return f"{PurePath(path).name}::{name}"


def _minutes(seconds: float) -> str:
    return f"{seconds // 60:.0f}:{seconds % 60:02.0f}"

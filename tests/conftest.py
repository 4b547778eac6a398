"""Shared fixtures of the tests: those that need something that is not installed report why they were skipped."""

from __future__ import annotations

import gc
import itertools
import re
import shutil
import signal
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from tests import ABSENT, browser

# Other processes use the CPUs too: how long an example takes says nothing. The examples are the same each time, so that
# a red test is red for the change; `pytest --hypothesis-profile=explore` looks for new ones.
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, **UNHURRIED)
settings.register_profile("explore", max_examples=1000, **UNHURRIED)
settings.load_profile("repeatable")

# Under nohup or in a script's background these are ignored, which children inherit: the tests send them.
TAKEN = {
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGQUIT: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}
for number, handler in TAKEN.items():
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)

# Tests call commands thousands of times in this process. Typer inspects the functions of all commands each time.
typer.main.get_params_from_function = cache(typer.main.get_params_from_function)

NUMBERS = itertools.count()
SKIPPED = re.compile(rf"{ABSENT}(.*?)['\"]?\)?$")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable the garbage collector: collection creates a million objects that stay, and scanning them takes longer."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """As pytest's, without its search for a free number, which lists the directories of all earlier tests.

    The directory of a test that passed is removed at once: at the end, one process would remove them all.
    """
    name = re.sub(r"\W", "_", request.node.name)[:28]
    path = tmp_path_factory.mktemp(f"{name}{next(NUMBERS)}", numbered=False)
    failed = request.session.testsfailed
    yield path
    if request.session.testsfailed == failed:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(autouse=True)
def closed_pipes() -> Iterator[None]:
    """A command that a test calls lets a closed pipe end its process, which here is that of all tests."""
    before = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, before)


@pytest.fixture
def tool(request: pytest.FixtureRequest) -> str:
    """The program that the test is parametrized with (by name, indirectly) is installed."""
    name: str = request.param
    if shutil.which(name) is None:
        _skip(name, f"not installed: apt-get install {name} (`make test` does it when it may)")
    return name


@pytest.fixture(scope="session")
def chromium() -> None:
    """A browser is installed; otherwise the test is skipped with what to install."""
    if browser.program() is None:
        _skip("the browser", "not installed: apt-get install chromium (`make test` does it when it may)")


def _skip(what: str, why: str) -> None:
    pytest.skip(f"{ABSENT}{what}: {why}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """From the reports, which come from the processes of pytest-xdist too."""
    texts = [str(each.longrepr) for each in terminalreporter.stats.get("skipped", [])]
    said = sorted({found[1] for text in texts if (found := SKIPPED.search(text))})
    if said:
        terminalreporter.section("tests were SKIPPED for what is not installed", sep="!", red=True)
        for line in said:
            terminalreporter.line(line)

"""What the tests share: those that need what is not installed say loudly why they were skipped."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import browser
from tests.lab import guest
from tests.lab.debian import PackageError
from tests.lab.machines import MACHINES

# Other processes use the CPUs too: how long an example takes says nothing. The examples are the same each time, so that
# a red test is red for the change; `pytest --hypothesis-profile=explore` looks for new ones.
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, **UNHURRIED)
settings.register_profile("explore", max_examples=1000, **UNHURRIED)
settings.load_profile("repeatable")

# Under nohup or in a script's background these are ignored, which children inherit: the tests send them.
for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)

ABSENT = "not here: "
SKIPPED = re.compile(rf"{ABSENT}(.*?)['\"]?\)?$")
# The boots that take longest, longest first: what is left for the end is short, and all processes end together.
LONGEST = (
    *("test_services", "test_boot", "test_exact", "test_network", "test_watch", "test_host", "test_noise_remedies"),
    *("test_crash", "test_noise", "test_pollution", "test_noise_endings", "test_study", "test_own_kernel"),
    *("test_systemd", "test_kmod", "test_main_job", "test_step", "test_thesis", "test_harness"),
)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist makes its groups of the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that look at the same boot of a machine go to the same process; those that boot go first, being long."""
    items.sort(key=_turn)
    for item in items:
        if item.get_closest_marker("lab"):
            call = getattr(item, "callspec", None)
            machine = call.params.get("machine", "") if call else ""
            boot = "visit" if item.get_closest_marker("visit") else item.path.stem
            item.add_marker(pytest.mark.xdist_group(f"{boot}-{machine}"))


def _turn(item: pytest.Item) -> int:
    if not item.get_closest_marker("lab"):
        return len(LONGEST) + 1
    return LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)


@pytest.fixture(autouse=True)
def closed_pipes() -> Iterator[None]:
    """A command that a test calls lets a closed pipe end its process, which here is that of all tests."""
    before = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, before)


@pytest.fixture(scope="session")
def lab() -> None:
    """The emulator of x86-64 is installed; otherwise the test is skipped with what to install."""
    _need_emulator("x86_64")


@pytest.fixture
def machine(request: pytest.FixtureRequest) -> guest.Machine:
    """The machine that the test is parametrized with (by name, indirectly), with all that it boots from at hand."""
    wanted = MACHINES[request.param]
    _need_emulator(wanted.kind)
    try:
        guest.prepare(wanted)
    except PackageError as error:
        _skip(f"machine {wanted.name}", str(error))
    return wanted


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


def _need_emulator(kind: str) -> None:
    if absent := guest.missing(kind):
        _skip(f"the {kind} emulator", f"not installed: {', '.join(absent)} (`make test` installs them when it may)")


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

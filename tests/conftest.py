"""What the tests share: the tests that boot kernels say loudly why they were skipped."""

from __future__ import annotations

import pytest

from tests.lab import guest, kernels
from tests.lab.machines import MACHINES

SKIPPED: dict[str, str] = {}


@pytest.hookimpl(tryfirst=True)  # pytest-xdist makes its groups of the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that look at the same boot of a machine go to the same process; those that boot go first, being long."""
    items.sort(key=lambda item: item.get_closest_marker("lab") is None)
    for item in items:
        if item.get_closest_marker("lab"):
            call = getattr(item, "callspec", None)
            machine = call.params.get("machine", "") if call else ""
            boot = "visit" if item.get_closest_marker("visit") else item.path.stem
            item.add_marker(pytest.mark.xdist_group(f"{boot}-{machine}"))


@pytest.fixture(scope="session")
def lab() -> None:
    """The emulator is installed; otherwise the test is skipped with what to install."""
    if absent := guest.missing():
        _skip("the emulator", f"not installed: {', '.join(absent)} (`make test` installs them when it may)")


@pytest.fixture
def machine(request: pytest.FixtureRequest, lab: None) -> guest.Machine:
    """The machine that the test is parametrized with (by name, indirectly), with its kernel at hand."""
    wanted = MACHINES[request.param]
    try:
        kernels.ensure(wanted.series)
    except kernels.KernelError as error:
        _skip(f"kernel {wanted.series}", str(error))
    return wanted


def _skip(what: str, why: str) -> None:
    SKIPPED[what] = why
    pytest.skip(f"no lab: {what}: {why}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if SKIPPED:
        terminalreporter.section("tests on real kernels were SKIPPED", sep="!", red=True)
        for what, why in SKIPPED.items():
            terminalreporter.line(f"{what}: {why}")

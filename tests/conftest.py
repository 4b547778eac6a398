"""What the tests share: the tests that boot kernels say loudly why they were skipped."""

from __future__ import annotations

import pytest

from tests.lab import guest, kernels
from tests.lab.machines import MACHINES

SKIPPED: dict[str, str] = {}


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

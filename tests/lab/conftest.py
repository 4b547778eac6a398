"""Shared fixtures of the lab's tests: machines that are ready to boot, the order of the boots, and how to repeat one
test.
"""

from __future__ import annotations

import shlex
from collections.abc import Generator

import pytest

from tests import ABSENT
from tests.lab.harness.boot import Machine, missing, prepare
from tests.lab.harness.debian import PackageError
from tests.lab.harness.machines import MACHINES

# `make test` runs most cases on one machine; `make test-long` runs the other cases and machines.
OTHER_MACHINES = (
    *("isolated-6.1", "plain-6.1", "plain-7.3", "net-6.1", "cpufreq-6.1", "numa", "cgroup-v1"),
    *("own", "host-6.1", "host-own", "exact-6.12"),
)
LONG_VISITS = ("isolated-6.12", "smt")  # `make test` visits plain-6.12 and cpufreq
LONG_CASES = frozenset(
    (
        "test_services",
        "test_screen_boots",
        "test_own_kernel",
        "test_step",
        "test_noise_remedies",
        "test_package",
        "test_fleet",
        "test_host",
        "test_journal",  # `make test` damages the journals of recorded hosts
        *("test_network", "test_wake", "test_threads", "test_timers", "test_monitor", "test_noise_endings"),
    )
)
REPEAT = "make setup lab-setup && .venv/bin/python -m pytest {}"
# The boots that take longest, longest first: the remaining ones are short, and all processes end together.
LONGEST = (
    *("test_services", "test_fleet", "test_boot", "test_exact", "test_network", "test_watch", "test_host"),
    *("test_noise_remedies", "test_crash", "test_noise", "test_pollution", "test_noise_endings", "test_study"),
    *("test_own_kernel", "test_systemd", "test_kmod", "test_main_job", "test_step", "test_thesis", "test_harness"),
)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist makes its groups of the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that look at the same boot of a machine go to the same process; those that boot go first, being long."""
    items.sort(key=_turn)
    for item in items:
        if item.get_closest_marker("lab"):
            call = getattr(item, "callspec", None)
            machine = call.params.get("machine", "") if call else ""
            visit = bool(item.get_closest_marker("visit"))
            boot = "visit" if visit else item.path.stem
            item.add_marker(pytest.mark.xdist_group(f"{boot}-{machine}"))
            if machine in OTHER_MACHINES or item.path.stem in LONG_CASES or (visit and machine in LONG_VISITS):
                item.add_marker(pytest.mark.long)


def _turn(item: pytest.Item) -> int:
    if not item.get_closest_marker("lab"):
        return len(LONGEST) + 1
    return LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the command that repeats a failed test alone to its report."""
    report = yield
    if report.failed and item.get_closest_marker("lab"):
        # Not the node's id, to which pytest-xdist appends the group.
        test = shlex.quote(f"{item.path.relative_to(item.config.rootpath)}::{item.name}")
        report.sections.append(("repeat this test alone", REPEAT.format(test)))
    return report


@pytest.fixture(scope="session")
def lab() -> None:
    """The emulator of x86-64 is installed; otherwise the test is skipped with what to install."""
    _need_emulator("x86_64")


@pytest.fixture
def machine(request: pytest.FixtureRequest) -> Machine:
    """The machine that the test is parametrized with (by name, indirectly), with all that it boots from at hand."""
    wanted = MACHINES[request.param]
    _need_emulator(wanted.kind)
    try:
        prepare(wanted)
    except PackageError as error:
        pytest.skip(f"{ABSENT}machine {wanted.name}: {error}")
    return wanted


def _need_emulator(kind: str) -> None:
    if absent := missing(kind):
        packages = ", ".join(absent)
        pytest.skip(f"{ABSENT}the {kind} emulator: not installed: {packages} (`make test` installs them when it may)")

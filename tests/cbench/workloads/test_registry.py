"""The C registry, its description in Python, and valid requests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import psutil
import pytest

from cbench._cbench import ffi, lib
from cbench.model import Workload
from cbench.workloads import registry
from cbench.workloads.loader import builtin
from cbench.workloads.selection import check_memory, select
from quiet.errors import UsageError
from tests import CHECKOUT
from tests.cbench.running import cbench, measured

C_FILES = sorted((CHECKOUT / "cbench" / "c" / "workloads").glob("*.c"))
EVERY = pytest.mark.parametrize("workload", registry.WORKLOADS, ids=lambda workload: workload.name)


def test_c_exports_the_workloads_that_python_has() -> None:
    exported = [
        name for path in C_FILES for name in re.findall(r"^CB_WORKLOAD\((\w+),", path.read_text(), re.MULTILINE)
    ]
    assert sorted(exported) == sorted(workload.function for workload in registry.WORKLOADS)


def test_a_program_that_is_given_as_a_workload_is_measured_after_the_dashes(tmp_path: Path) -> None:
    for name in ("true", "/bin/true"):
        with pytest.raises(UsageError, match=rf"; to measure a command: cbench run -- {name}$"):
            select([name], {}, True, tmp_path, print)
    with pytest.raises(UsageError, match=r"LIB\.so:FUNCTION$"):
        select(["no-such-program"], {}, True, tmp_path, print)


def test_a_name_that_c_does_not_know_is_reported_in_one_line() -> None:
    assert lib.cb_workload_find(b"hush", ffi.new("const cb_workload **")) < 0
    with pytest.raises(UsageError, match=r"no workload 'hush' in the C code: rebuild it"):
        builtin("hush", {"n": 1})


@EVERY
def test_every_workload_says_what_it_stresses_and_what_it_should_cost(workload: Workload) -> None:
    assert workload.stresses
    assert workload.cost
    assert all(parameter.meaning for parameter in workload.parameters)


@EVERY
def test_every_workload_takes_n_and_can_be_checked_at_its_defaults(workload: Workload) -> None:
    assert workload.parameters[0].name == "n"
    for quick in (False, True):
        assert registry.expected_output(workload, registry.parameters(workload, {}, quick)) is not None


@EVERY
def test_every_workload_refuses_parameters_that_are_not_its_own(workload: Workload) -> None:
    found = ffi.new("const cb_workload **")
    assert lib.cb_workload_find(workload.function.encode(), found) == 0
    if found[0].create == ffi.NULL:
        assert [parameter.name for parameter in workload.parameters] == ["n"]
    else:
        too_many = [parameter.quick for parameter in workload.parameters] + [1]
        assert found[0].create(too_many, len(too_many), ffi.new("void **")) < 0


@EVERY
def test_the_untimed_call_before_a_trial_does_no_more_work_than_the_trial(workload: Workload) -> None:
    for quick in (False, True):
        n = registry.parameters(workload, {}, quick)["n"]
        assert 0 <= n // workload.rewarm_share <= n


@pytest.mark.parametrize(
    ("name", "setting", "line"),
    [
        (
            "chase",
            "stride=20",
            "--param stride=20: chase takes stride (bytes from one link to the next) in multiples",
        ),
        ("chase", "pages=2", "--param pages=2: chase takes pages (1: huge pages, 0: small) from 0 to 1"),
        ("chase", "size=4", "--param size=4: chase takes size (buffer in bytes) from 16 to"),
        ("chase", "stride=1048576", "chase: size=262,144 has no room for one link every 1,048,576 bytes"),
        ("branch", "pattern=4", "--param pattern=4: branch takes pattern (0 always taken, 1 alternating"),
        ("branch", "period=0", "--param period=0: branch takes period (period of pattern 2) from 1 to"),
        ("triad", "size=504", "--param size=504: triad takes size (bytes of each of the three arrays) from 512 to"),
        ("fault", "n=262145", "--param n=262145: fault takes n (pages) from 1 to 262,144"),
        ("aliquot", "start=0", "--param start=0: aliquot takes start (first term) from 1 to"),
        ("etalon", "n=0", "--param n=0: etalon takes n (milliseconds) from 1 to 1,000,000"),
        ("hash", "stride=128", "--param stride: unknown; hash takes n"),
    ],
)
def test_an_invalid_parameter_is_one_clear_line(name: str, setting: str, line: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(line)}"):
        measured(name, params=[setting])


@pytest.mark.slow
def test_a_parameter_of_one_workload_leaves_the_others_alone() -> None:
    done = cbench("run", "hash", "chase", "--quick", "--trials", "1", "--param", "stride=128", "--json")
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["results"]
    assert first["params"] == {"n": 100_000}
    assert second["params"] == {"n": 20_000, "size": 256 * 1024, "stride": 128, "pages": 1}


def test_three_arrays_that_do_not_fit_are_refused_though_one_would() -> None:
    third = psutil.virtual_memory().available * 2 // 5
    check_memory(registry.find("memory"), {"n": 1, "size": third})
    with pytest.raises(UsageError, match="triad would need more than 80 % "):
        check_memory(registry.find("triad"), {"n": 1, "size": third})


@pytest.mark.slow
def test_list_shows_what_every_workload_costs() -> None:
    listed = json.loads(cbench("list", "--json").stdout)["workloads"]
    assert [workload["cost"] for workload in listed[:-1]] == [workload.cost for workload in registry.WORKLOADS]
    assert "expected cost" in cbench("list", env={"COLUMNS": "200"}).stdout

"""The kernel module's client: the same structures as in C, and one clear line for every obstacle."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cbench.machine import counters
from cbench.measure.inkernel import client, module, session
from cbench.measure.inkernel.client import ModuleAnswer, Reason
from cbench.workloads.registry import find
from quiet.errors import Refused, UsageError
from quiet.host.reader import Reader
from tests import CHECKOUT
from tests.c_code import EVERY_COMPILER
from tests.trees import plant

FOLDER = CHECKOUT / "cbench" / "kmod"
HEADER = FOLDER / "cbench_kmod.h"
FIELDS = ("version", "workload", "params", "rewarm", "param_count", "trials_at", "reason", "overhead", "pmu_error")
OFFSETS = (0, 8, 40, 88, 96, 128, 136, 152, 176)


@EVERY_COMPILER
def test_structures_are_laid_out_in_python_as_in_c(compiler: str, tmp_path: Path) -> None:
    facts = {
        "sizeof(struct cbench_request)": client.REQUEST.size,
        "sizeof(struct cbench_trial)": 16,
        "CBENCH_RUN": client.RUN,
        "CBENCH_VERSION": client.VERSION,
        "CBENCH_PARAMS_MAX": client.PARAMS_MAX,
        "CBENCH_TRIALS_MAX": client.TRIALS_MAX,
        "CBENCH_REGION_DEFAULT_NS": client.REGION_NS,
        "CBENCH_REGION_MAX_NS": client.REGION_MAX_NS,
        "CBENCH_STOP_MACHINE": client.STOP_MACHINE,
        "CBENCH_BEST": client.COUNTERS["auto"],
        "CBENCH_CYCLES": client.COUNTERS["cycles"],
        "CBENCH_TICKS": client.COUNTERS[counters.ticks_name()],
        **{f"CBENCH_{reason.name}": reason for reason in Reason},
        **{f"offsetof(struct cbench_request, {f})": at for f, at in zip(FIELDS, OFFSETS, strict=True)},
    }
    lines = [f'_Static_assert({name} == {value:d}u, "{name}");' for name, value in facts.items()]
    source = tmp_path / "same.c"
    source.write_text("\n".join(["#include <stddef.h>", f'#include "{HEADER}"', *lines, ""]))
    done = subprocess.run([compiler, "-Werror", "-fsyntax-only", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_reason_of_the_header_is_known_here() -> None:
    section = HEADER.read_text().partition("/* reason")[2].partition("struct cbench_trial")[0]
    assert re.findall(r"#define CBENCH_(\w+) \d+u", section) == [reason.name for reason in Reason]


def test_the_module_has_the_workloads_that_the_client_names() -> None:
    text = (FOLDER / "regions.c").read_text()
    assert tuple(re.findall(r"\{ CB_FUNCTIONS\((\w+)\), ", text)) == client.WORKLOADS


def test_no_floating_point_and_nothing_but_the_call_in_the_timed_region() -> None:
    region = (FOLDER / "regions.c").read_text().partition("#define CB_REGION(")[2].partition("#define CB_REGIONS")[0]
    assert re.search(r"start = now;\s*\\\n\s*result = cb_##name##_run\(state, n\);\s*\\\n\s*stop = now;", region)
    for file in FOLDER.glob("*.c"):
        assert not re.search(r"\b(float|double|kernel_fpu_begin|printk|pr_\w+)\b", file.read_text()), file.name


@pytest.mark.skipif(os.path.exists(client.DEVICE), reason="the module is loaded here")
def test_without_the_module_the_message_says_how_to_load_it() -> None:
    with pytest.raises(Refused, match=r"^--in-kernel: \S"):
        client.measure("hash", {"n": 1}, 0, 1, 0, False)


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"proc/modules": "x 1 0 - Live"}, r"^the kernel module is not loaded: build it \(`make kmod`.* insmod"),
        ({}, r"without loadable modules"),
        ({"proc/modules": "x", "proc/sys/kernel/modules_disabled": "1"}, r"kernel\.modules_disabled = 1"),
        ({"proc/modules": "x", "sys/kernel/security/lockdown": "none [integrity] confidentiality"}, r"\(integrity;"),
        ({"proc/modules": "x", "sys/module/module/parameters/sig_enforce": "Y"}, r"module\.sig_enforce"),
        ({"proc/modules": "x", "sys/module/cbench/version": "1"}, r"is devtmpfs mounted"),
    ],
)
def test_reasons_for_a_missing_module_are_distinguished(tmp_path: Path, files: dict[str, str], line: str) -> None:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    assert re.search(line, module.why_absent(Reader(str(tmp_path))))


@pytest.mark.parametrize(
    ("name", "counter", "line"),
    [
        ("float", "auto", r"^float does not run in the kernel; empty, hash, sieve, memory, chase, branch do$"),
        ("hash", "instructions", r"^--counter instructions with --in-kernel: use auto, cycles, (tsc|cntvct)$"),
    ],
)
def test_workloads_that_do_not_run_in_the_kernel_are_refused_with_the_list_of_those_that_do(
    name: str, counter: str, line: str
) -> None:
    with pytest.raises(UsageError, match=line):
        session.check(find(name), counter)


def test_a_user_s_function_is_not_taken_for_the_module_s_of_the_same_name() -> None:
    with pytest.raises(UsageError, match=r"^mine.c:hash does not run in the kernel"):
        session.check(replace(find("hash"), name="mine.c:hash", library="mine.so"), "auto")


def answer(reason: Reason, error: int, **more: int) -> ModuleAnswer:
    rest = dict.fromkeys(("counter", "width", "done", "overhead", "region_ns", "fitting_n", "pmu_error"), 0)
    return ModuleAnswer(error, reason, **{**rest, **more})


@pytest.mark.parametrize(
    ("given", "kind", "line"),
    [
        (answer(Reason.DONE, errno.ENOTTY), Refused, "another version"),
        (answer(Reason.BAD_VERSION, errno.EINVAL), Refused, "another version"),
        (answer(Reason.DONE, errno.EPERM), Refused, "needs root"),
        (answer(Reason.BAD_PARAM, errno.EINVAL), UsageError, "hash in the kernel does not accept n=5"),
        (answer(Reason.BUSY, errno.EBUSY), Refused, "another process is measuring"),
        (answer(Reason.NO_MEMORY, errno.ENOMEM), Refused, "cannot allocate enough memory"),
        (answer(Reason.NO_CYCLES, errno.ENOENT, pmu_error=-errno.ENOENT), UsageError, r"\[ENOENT\]; use (tsc|cntvct)$"),
        (answer(Reason.TOO_LONG, errno.ETIME, region_ns=3 * 10**9, fitting_n=7), Refused, r"3,000 ms .* --param n=7$"),
        (answer(Reason.TOO_LONG, errno.ETIME, region_ns=2**64 - 1, fitting_n=7), Refused, r"off for hours or more"),
        (answer(Reason.SIGNAL, errno.EINTR), Refused, "by a signal"),
        (answer(Reason.NOT_BOUND, errno.EINVAL), Refused, "CPU 3 went offline, or this process was moved"),
        (answer(Reason.BAD_TRIALS, errno.EINVAL), Refused, r"\(reason 5\)"),
    ],
)
def test_each_refusal_is_one_line_with_a_remedy(given: ModuleAnswer, kind: type, line: str) -> None:
    failure = client.refusal(given, "hash", {"n": 5}, 3, client.REGION_NS)
    assert type(failure) is kind
    assert re.search(line, str(failure))
    assert "\n" not in str(failure)


@pytest.mark.parametrize(
    ("function", "params", "line"),
    [
        (
            "memory",
            {"n": 1, "size": 2**31},
            "--param size=2147483648: memory in the kernel takes size up to 1,073,741,824",
        ),
        ("branch", {"n": 2**27}, "--param n=134217728: branch in the kernel takes n up to 67,108,864"),
        (
            "chase",
            {"n": 1, "size": 2**29, "stride": 64},
            "--param size=536870912: chase in the kernel takes up to 4,194,304 links, not 8,388,608",
        ),
    ],
)
def test_a_rejected_parameter_is_named_with_the_accepted_range(
    function: str, params: dict[str, int], line: str
) -> None:
    failure = client.refusal(answer(Reason.BAD_PARAM, errno.EINVAL), function, params, 3, client.REGION_NS)
    assert str(failure) == line


def test_a_missing_cpu_is_named_with_the_existing_ones() -> None:
    with pytest.raises(UsageError, match=r"^CPU 4095 is not online \(online: 0"), client.bound(4095):
        pass


def test_the_thread_returns_to_its_cpus_after_a_measurement_and_after_an_error() -> None:
    before = os.sched_getaffinity(0)
    with client.bound(min(before)):
        assert os.sched_getaffinity(0) == {min(before)}
    assert os.sched_getaffinity(0) == before
    with pytest.raises(UsageError), client.bound(min(before)), client.bound(4095):
        pass
    assert os.sched_getaffinity(0) == before


def test_a_hybrid_cpu_is_counted_by_its_own_pmu(tmp_path: Path) -> None:
    for name, number, cpus in (("cpu_core", 4, "0-3"), ("cpu_atom", 10, "4-7")):
        plant(
            tmp_path,
            {f"sys/bus/event_source/devices/{name}/{k}": v for k, v in (("type", str(number)), ("cpus", cpus))},
        )
    assert [counters.own_pmu(cpu, Reader(str(tmp_path))) for cpu in (0, 5, 9)] == [4, 10, 0]


def test_missing_headers_name_the_package(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"install linux-headers-0\.0-none \(apt install\), or set KDIR"):
        module.headers({}, "0.0-none")
    with pytest.raises(UsageError, match=r"^KDIR=.*: no kernel build tree"):
        module.headers({"KDIR": str(tmp_path)}, "0.0-none")


def test_a_build_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "Makefile").write_text("modules:\n\t@echo 'main.c:3: error: no such thing' >&2; exit 1\n")
    with pytest.raises(UsageError, match=r"^the module does not build: main\.c:3: error: no such thing$"):
        module.build(tmp_path / "out", ["make", "-C", str(tree)])
    copied = {path.name for path in (tmp_path / "out").rglob("*")}
    assert {"Kbuild", "main.c", "reads.h", "hash.c", "cbench_kmod.h"} <= copied
    assert not [name for name in copied if name.endswith(".py")]


def test_everything_that_the_build_needs_is_installed_with_the_package() -> None:
    packaged = (CHECKOUT / "pyproject.toml").read_text()
    assert '"cbench.kmod" = ["*.c", "*.h", "Kbuild", "Makefile"]' in packaged
    assert {path.suffix or path.name for path in FOLDER.iterdir()} <= {".c", ".h", "Kbuild", "Makefile"}

"""The resolution of the instruments on this host, and messages about missing ones."""

from __future__ import annotations

import gzip
import os
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest

from cbench.study.config import parse
from cbench.study.instruments import registry, times
from cbench.study.process.run_command import execute
from quiet.host.reader import Reader
from tests.cbench.study.instruments.perf import BUSY

TICK_S = time.clock_getres(times.MONOTONIC_COARSE)
FULL = "sys/devices/system/cpu/nohz_full"


def host(root: Path, options: str, nohz_full: str) -> Reader:
    for path, content in (("proc/config.gz", gzip.compress(options.encode())), (FULL, nohz_full.encode())):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return Reader(str(root))


@pytest.mark.parametrize(
    ("options", "nohz_full", "step_s"),
    [
        ("CONFIG_TICK_CPU_ACCOUNTING=y\n", "(null)\n", TICK_S),
        ("CONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n", "(null)\n", TICK_S),
        ("CONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n", "\n", TICK_S),
        ("CONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n", "2-3\n", 1e-6),
        ("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE=y\n", "(null)\n", 1e-6),
    ],
)
def test_how_cpu_time_is_divided_depends_on_the_kernel(
    options: str, nohz_full: str, step_s: float, tmp_path: Path
) -> None:
    step, why = times.cpu_time_step(host(tmp_path, options, nohz_full))
    assert step == step_s
    assert "/proc/config.gz" in why


def test_a_kernel_that_hides_its_configuration_is_assumed_to_use_ticks_and_this_is_reported(tmp_path: Path) -> None:
    step, why = times.cpu_time_step(Reader(str(tmp_path)))
    assert step == TICK_S
    assert "is assumed, because" in why


def test_the_tick_is_that_of_the_clock_that_moves_with_it() -> None:
    seen = set()
    limit = time.monotonic() + 0.1
    while time.monotonic() < limit:
        seen.add(time.clock_gettime_ns(times.MONOTONIC_COARSE))
    ordered = sorted(seen)
    steps = [b - a for a, b in pairwise(ordered)]
    tick = TICK_S * 1e9
    assert steps
    assert all(step > 0.99 * tick for step in steps)


@pytest.mark.slow
def test_the_sum_of_user_and_system_time_is_not_a_multiple_of_the_tick() -> None:
    """It is the scheduler's own count: ticks only divide it."""
    tick = round(TICK_S * 1e6)
    done = [execute(BUSY, "/", {"PATH": os.environ["PATH"]}, 60) for _ in range(5)]
    sums = [round(1e6 * (each.user_s + each.sys_s)) for each in done]
    assert sum(bool(each % tick) for each in sums) >= 4


def test_user_and_system_time_are_those_that_its_own_shell_prints(tmp_path: Path) -> None:
    """What the shell has used until it prints, of its children and its own; after that it only ends."""
    before = time.monotonic()
    done = execute(f"sh -c '{BUSY}'; times >times", str(tmp_path), {"PATH": os.environ["PATH"]}, 60)
    elapsed = time.monotonic() - before
    printed = sum(60 * int(m) + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", (tmp_path / "times").read_text()))
    assert printed > 0
    assert -0.02 < done.user_s + done.sys_s - printed < 0.5 * printed
    assert elapsed > done.user_s + done.sys_s - TICK_S


@pytest.mark.slow
def test_every_instrument_can_be_read_or_says_why_not() -> None:
    for each in registry.instruments():
        text = f'[study]\nrepetitions = 1\n[[test]]\nname = "a"\ncommand = "true"\nread = "{each.read}"\n'
        metric = parse(text, "s.toml", "/").tests[0].metrics[0]
        assert metric.unit == each.unit
        assert each.what
        assert each.why
        assert each.resolution_s is None or each.resolution_s > 0
        if each.read in {time.source for time in times.COMMAND_TIMES}:
            assert each.missing == ""

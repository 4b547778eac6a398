"""Run the five workloads of NIST TN 1855 as commands, for instruments that measure commands.

    python -m cbench.workloads.programs 0 [times=N] [start=TERM]      compute the aliquot sequence from TERM, N times
    python -m cbench.workloads.programs 1 load=SOCKET [times=N]       the same, with dd on the same CPU (competing.py)
    python -m cbench.workloads.programs 2 [processes=N] [exponent=P]  check a perfect number (exponent P, N processes)
    python -m cbench.workloads.programs 3 [blocks=N] [mib=M]          copy N blocks of M MiB, /dev/urandom to /dev/null
    python -m cbench.workloads.programs 4 [ms=N]                      read a clock until N milliseconds have elapsed

Each program checks its result, and exits with 1 if the result is wrong. It prints one JSON object: the work done, and
the time of the work itself, excluding Python's start, by each of CLOCKS and in ticks of quiet's clock.

Source: D. Flater, NIST Technical Note 1855 (2014), section 3.2. In the Note, the parameters are start 10^7, 8 processes
and exponent 31, 5 blocks of 10 MiB, and ten seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from cbench.workloads import competing, registry, screening
from cbench.workloads.loader import builtin
from quiet import QuietError, UsageError, ticks

NAMES = ("aliquot", "competing", "perfect", "copy", "etalon")
"""The names of the programs, in the order of the Note's numbers."""
CLOCKS = {
    "raw_s": time.CLOCK_MONOTONIC_RAW,
    "monotonic_s": time.CLOCK_MONOTONIC,
    "realtime_s": time.CLOCK_REALTIME,
    "boottime_s": time.CLOCK_BOOTTIME,
}
Made = dict[str, Any]


class WrongResult(QuietError):
    """Raised if a program's result is wrong; the text gives the reason."""

    exit_code = 1


def aliquot(times: int, start: int) -> Made:
    """Compute the aliquot sequence `times` times, and check each result."""
    params = registry.parameters(registry.find("aliquot"), {"start": start}, quick=False)
    with builtin("aliquot", params) as loaded:
        results, took = _timed(lambda: {int(loaded.run(loaded.state, params["n"])) for _ in range(times)})
    _check(results, {registry.expected_output(registry.find("aliquot"), params)})
    return took | {"times": times}


def beside_load(socket: str, times: int, start: int) -> Made:
    """Compute the aliquot sequence while dd runs on the same CPU, like workload 1 of the Note, which ran on a machine
    with a single CPU (nosmp).
    """
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    with competing.load(socket, cpu) as load_s:
        sequence = aliquot(times, start)
        used = load_s()
    if used == 0:
        raise WrongResult(f"the competing load on CPU {cpu} did not run")
    return sequence | {"cpu": cpu, "load_s": used}


def perfect(processes: int, exponent: int) -> Made:
    """Check that a number is perfect: `processes` processes search for its divisors, which must add up to the number
    itself.
    """
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
    from multiprocessing import get_context

    workload = registry.find("perfect")
    shares = [
        registry.parameters(workload, {"exponent": exponent, "first": first, "step": processes}, quick=False)
        for first in range(1, processes + 1)
    ]
    with ProcessPoolExecutor(processes, get_context("fork")) as pool:
        try:
            sums, took = _timed(lambda: list(pool.map(_share, shares)))
        except BrokenExecutor:
            raise WrongResult("a process that searches for divisors failed") from None
    _check({sum(sums)}, {screening.perfect_number(exponent)})
    return took | {"processes": processes, "exponent": exponent}


def _share(params: Mapping[str, int]) -> int:
    with builtin("perfect", params) as loaded:
        return int(loaded.run(loaded.state, params["n"]))


def copy(blocks: int, mib: int) -> Made:
    """Copy random blocks, and check that each is complete and different from the others."""
    block, seen = bytearray(mib << 20), set[bytes]()

    def work() -> int:
        copied = 0
        with open("/dev/urandom", "rb", buffering=0) as source, open("/dev/null", "wb", buffering=0) as target:
            for _ in range(blocks):
                copied += source.readinto(block) or 0
                target.write(block)
                seen.add(bytes(block[-16:]))
        return copied

    copied, took = _timed(work)
    _check({copied, len(seen)}, {blocks * mib << 20, blocks})
    return took | {"blocks": blocks, "mib": mib}


def etalon(ms: int) -> Made:
    """Read the clock until `ms` milliseconds have elapsed on CLOCK_MONOTONIC_RAW."""
    with builtin("etalon", {"n": ms}) as loaded:
        result, took = _timed(lambda: loaded.run(loaded.state, ms))
    _check({result}, {ms})
    return took | {"ms": ms}


def _timed(work: Callable[[], Any]) -> tuple[Any, Made]:
    """The value that `work` returns, and the time by every clock; the clocks are read in the same order before and
    after the work.
    """
    before = [time.clock_gettime_ns(clock) for clock in CLOCKS.values()]
    before_ticks = ticks()
    result = work()
    ticks_after = ticks()
    after = [time.clock_gettime_ns(clock) for clock in CLOCKS.values()]
    took = {name: (b - a) / 1e9 for name, a, b in zip(CLOCKS, before, after, strict=True)}
    return result, {**took, "ticks": ticks_after - before_ticks}


def _check(results: object, expected: object) -> None:
    if results != expected:
        raise WrongResult(f"the result is wrong: {results} instead of {expected}")


TERMS = {"times": (40, 10**6), "start": (10**7, 10**15)}
PROGRAMS: tuple[tuple[Callable[..., Made], dict[str, tuple[int, int]]], ...] = (
    (aliquot, TERMS),
    (beside_load, TERMS),
    (perfect, {"processes": (len(os.sched_getaffinity(0)), 10_000), "exponent": (31, 31)}),
    (copy, {"blocks": (5, 10**6), "mib": (10, 31)}),
    (etalon, {"ms": (10_000, 10**6)}),
)
"""The programs, in the order of the Note's numbers: the function, and the default and maximum of each parameter."""


def program(which: str, arguments: list[str]) -> Made:
    """Run a program, given by its name or number, and return its JSON object. Raises UsageError for invalid arguments,
    WrongResult for a wrong result.
    """
    if which not in (*NAMES, *map(str, range(len(NAMES)))):
        raise UsageError(f"{which!r}: unknown program; use 0 to {len(NAMES) - 1}, or {', '.join(NAMES)}")
    number = NAMES.index(which) if which in NAMES else int(which)
    function, limits = PROGRAMS[number]
    known = [*limits, *(["load"] if function is beside_load else [])]
    socket = next((each.removeprefix("load=") for each in arguments if each.startswith("load=")), "")
    given = registry.parse_settings(each for each in arguments if not each.startswith("load="))
    if function is beside_load and not socket:
        raise UsageError(
            "load= is missing: write load=SOCKET, the socket of `python -m cbench.workloads.competing begin SOCKET`"
        )
    if unknown := [name for name in given if name not in limits]:
        raise UsageError(f"{unknown[0]}: unknown; {NAMES[number]} takes {', '.join(known)}")
    settings = {name: given.get(name, default) for name, (default, _) in limits.items()}
    for name, value in settings.items():
        if not 1 <= value <= limits[name][1]:
            raise UsageError(f"{name}={value}: must be from 1 to {limits[name][1]:,}")
    return {"workload": number, **function(**settings, **({"socket": socket} if "load" in known else {}))}


def main() -> int:
    """Run the command line. Returns the exit code."""
    try:
        if len(sys.argv) < 2:
            raise UsageError(f"the program is missing: use 0 to {len(NAMES) - 1}, or {', '.join(NAMES)}")
        sys.stdout.write(json.dumps(program(sys.argv[1], sys.argv[2:])) + "\n")
    except QuietError as error:
        sys.stderr.write(f"cbench.workloads.programs: error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

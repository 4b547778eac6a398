"""Define the memory layout of a measurement's processes: fixed, or drawn for each process.

The layout changes a program's speed without being part of the program: the size of the environment and so the place of
the stack (Mytkowicz and others, "Producing Wrong Data Without Doing Anything Obviously Wrong!", ASPLOS 2009), the
addresses of the mappings, and the physical pages of a buffer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from cbench.model import PLAIN, Layout, Params, Workload
from quiet import UsageError

ASLR, ENVIRONMENT, STACK, OFFSET, PAGES = FACTORS = ("aslr", "environment", "stack", "offset", "pages")
MOST_PROCESSES = 1000
PAGE = 4096
MOST_BYTES = 65536
ALIGNMENT = {ENVIRONMENT: 1, STACK: 16, OFFSET: 64}
"""The alignment of drawn sizes in bytes: a stack is aligned to 16 bytes, a buffer to a cache line."""


@dataclass(frozen=True, slots=True)
class LayoutPlan:
    """The plan of the processes' layouts. `vary`: the factors that are drawn for each process, from `seed`; the others
    stay at their levels in `base`.

    `every`: whether all factors were requested, so that a factor that a workload lacks is not an error.
    """

    processes: int = 1
    vary: frozenset[str] = frozenset()
    seed: int = 1
    base: Layout = PLAIN
    every: bool = False


SINGLE = LayoutPlan()


def plan(processes: int, vary: str, seed: int, base: Layout) -> LayoutPlan:
    """The plan for this number of processes. `vary`: factor names separated by commas, "all" or "". Raises UsageError
    for unknown factors, numbers out of range, and factors to vary in a single process.
    """
    if not 1 <= processes <= MOST_PROCESSES:
        raise UsageError(f"--processes {processes}: must be from 1 to {MOST_PROCESSES:,}")
    names = FACTORS if vary == "all" else tuple(part.strip() for part in vary.split(",") if part.strip())
    for name in names:
        if name not in FACTORS:
            raise UsageError(f"--vary {name!r}: unknown; use all or {', '.join(FACTORS)}")
    if names and processes == 1:
        raise UsageError("--vary draws a layout for each process: request several processes with --processes N")
    for option, value in (("--environment", base.environment), ("--stack", base.stack)):
        if not 0 <= value <= MOST_BYTES:
            raise UsageError(f"{option} {value}: must be from 0 to {MOST_BYTES:,} bytes")
    return LayoutPlan(processes, frozenset(names), seed, base, vary == "all")


def check(chosen: LayoutPlan, workloads: Iterable[Workload]) -> None:
    """Raises UsageError if --vary names a factor that no workload has."""
    if chosen.every:
        return
    listed = tuple(workloads)
    for name in sorted(chosen.vary & {OFFSET, PAGES}):
        if not any(_has(workload, name) for workload in listed):
            names = ", ".join(workload.name for workload in listed)
            raise UsageError(
                f"--vary {name}: no such parameter in {names} (see `cbench list`); omit it, or write --vary all "
                "for the available ones"
            )


def draw(chosen: LayoutPlan, workload: Workload, params: Params) -> list[tuple[Layout, Params]]:
    """One layout and one set of parameters for each process. The result depends only on the plan, the workload and its
    parameters.
    """
    random = Random(f"{chosen.seed} {workload.name}")
    switches = {name: _balanced(random, chosen.processes) for name in (ASLR, PAGES)}
    drawn: list[tuple[Layout, Params]] = []
    for number in range(chosen.processes):
        sizes = {name: random.randrange(0, PAGE, step) for name, step in ALIGNMENT.items()}
        layout, settings = chosen.base, dict(params)
        if ASLR in chosen.vary:
            layout = replace(layout, aslr=switches[ASLR][number])
        if ENVIRONMENT in chosen.vary:
            layout = replace(layout, environment=sizes[ENVIRONMENT])
        if STACK in chosen.vary:
            layout = replace(layout, stack=sizes[STACK])
        if OFFSET in chosen.vary and _has(workload, OFFSET):
            settings[OFFSET] = sizes[OFFSET]
        if PAGES in chosen.vary and _has(workload, PAGES):
            settings[PAGES] = int(switches[PAGES][number])
        drawn.append((layout, settings))
    return drawn


def levels(layout: Layout, params: Params) -> dict[str, int]:
    """The levels of one process's factors, including those of the buffer if the workload has one."""
    everywhere = {ASLR: int(layout.aslr), ENVIRONMENT: layout.environment, STACK: layout.stack}
    return {**everywhere, **{name: params[name] for name in (OFFSET, PAGES) if name in params}}


def _has(workload: Workload, name: str) -> bool:
    return any(parameter.name == name for parameter in workload.parameters)


def _balanced(random: Random, count: int) -> list[bool]:
    """`count` booleans in random order, half of them (rounded up) True."""
    levels = [number % 2 == 0 for number in range(count)]
    random.shuffle(levels)
    return levels

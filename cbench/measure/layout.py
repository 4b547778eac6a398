"""Define the memory layout of a measurement's processes: fixed, or drawn for each process.

It changes a program's speed without being part of it: the size of the environment and so the place of the stack
(Mytkowicz and others, "Producing Wrong Data Without Doing Anything Obviously Wrong!", ASPLOS 2009), where the kernel
puts the mappings, and which physical pages a buffer has.
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
"""The alignment of drawn sizes: a stack is aligned to 16 bytes, a buffer to a cache line."""


@dataclass(frozen=True, slots=True)
class LayoutPlan:
    """`vary`: the factors that are drawn for each process, with `seed`; the others are held at `base`.

    `every`: all factors were requested, so those that a workload lacks are not an error.
    """

    processes: int = 1
    vary: frozenset[str] = frozenset()
    seed: int = 1
    base: Layout = PLAIN
    every: bool = False


SINGLE = LayoutPlan()


def plan(processes: int, vary: str, seed: int, base: Layout) -> LayoutPlan:
    """UsageError for invalid factors; `vary`: names with commas, "all" or ""."""
    if not 1 <= processes <= MOST_PROCESSES:
        raise UsageError(f"--processes {processes}: from 1 to {MOST_PROCESSES:,}")
    names = FACTORS if vary == "all" else tuple(part.strip() for part in vary.split(",") if part.strip())
    for name in names:
        if name not in FACTORS:
            raise UsageError(f"--vary {name!r}: unknown; use all or {', '.join(FACTORS)}")
    if names and processes == 1:
        raise UsageError("--vary draws a layout for each process: request several processes with --processes N")
    for option, value in (("--environment", base.environment), ("--stack", base.stack)):
        if not 0 <= value <= MOST_BYTES:
            raise UsageError(f"{option} {value}: from 0 to {MOST_BYTES:,} bytes")
    return LayoutPlan(processes, frozenset(names), seed, base, vary == "all")


def check(chosen: LayoutPlan, workloads: Iterable[Workload]) -> None:
    """UsageError if a factor named for variation exists in no workload."""
    if chosen.every:
        return
    listed = tuple(workloads)
    for name in sorted(chosen.vary & {OFFSET, PAGES}):
        if not any(_has(workload, name) for workload in listed):
            names = ", ".join(workload.name for workload in listed)
            raise UsageError(
                f"--vary {name}: {names} has no such parameter (see `cbench list`); omit it, or write --vary all "
                "for the available ones"
            )


def draw(chosen: LayoutPlan, workload: Workload, params: Params) -> list[tuple[Layout, Params]]:
    """One layout and one set of parameters for each process. The same plan and workload give the same draw."""
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
    """The factors' levels of one process, those of the buffer only where the workload has one."""
    everywhere = {ASLR: int(layout.aslr), ENVIRONMENT: layout.environment, STACK: layout.stack}
    return {**everywhere, **{name: params[name] for name in (OFFSET, PAGES) if name in params}}


def _has(workload: Workload, name: str) -> bool:
    return any(parameter.name == name for parameter in workload.parameters)


def _balanced(random: Random, count: int) -> list[bool]:
    """Equally many of both values, in random order."""
    levels = [number % 2 == 0 for number in range(count)]
    random.shuffle(levels)
    return levels

"""Define the functions of the public API, which `import cbench` makes available."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cbench.formats.reader import TestSample
from cbench.measure.result import RunResult
from cbench.model import PLAIN, Layout, Workload
from cbench.store.records import StoredSeries

__all__ = ["list_workloads", "measure", "read_results"]

AUTO = "auto"


def measure(
    workload: str | Sequence[str],
    *,
    trials: int | None = None,
    cpu: int | Sequence[int] | None = None,
    counter: str = AUTO,
    params: Mapping[str, int] | None = None,
    warmup: int | None = None,
    events: Sequence[str] | None = None,
    until_clean: int | None = None,
    processes: int = 1,
    vary: Sequence[str] = (),
    seed: int = 1,
    layout: Layout = PLAIN,
    subtract_overhead: bool = False,
    quick: bool = False,
    timeout: float = 60,
    trace: bool = True,
    output: str | os.PathLike[str] | None = None,
) -> RunResult:
    """Measure workloads as `cbench run` does; the options are those of the command.

    `workload`: a name from list_workloads(), FILE.c:FUNCTION or LIB.so:FUNCTION, or several of these. Options that are
    None use the command's default. `output`: a file that stores every trial when it is measured. Raises QuietError,
    with a one-line message, if a workload cannot be measured.
    """
    from cbench.run import run

    cpus = [] if cpu is None else [str(cpu)] if isinstance(cpu, int) else [str(each) for each in cpu]
    options = run.RunOptions(
        workloads=[workload] if isinstance(workload, str) else workload,
        trials=trials,
        cpus=cpus,
        warmup=AUTO if warmup is None else str(warmup),
        counter=counter,
        params=[f"{name}={value}" for name, value in (params or {}).items()],
        quick=quick,
        timeout=timeout,
        trace=trace,
        events=AUTO if events is None else ",".join(events) or "none",
        until_clean=until_clean,
        processes=processes,
        vary=",".join(vary),
        seed=seed,
        base=layout,
        subtract=subtract_overhead,
        output=None if output is None else Path(output),
        command=sys.argv,
    )
    return run.measure(options, tell=lambda _line: None)


def read_results(path: str | os.PathLike[str]) -> tuple[StoredSeries, ...] | tuple[TestSample, ...]:
    """Read a file of results.

    A store of `cbench run --output` yields the series of trials, in chronological order. Another benchmark program's
    file, or a directory of such files, yields a TestSample for each test: its values, a tuple per process, in its
    `unit`. Raises UsageError, with the file and the place of the error, if the file cannot be read.
    """
    from cbench.store.kind import is_store

    if os.path.exists(path) and not is_store(Path(path)):
        from cbench.formats import registry

        return registry.read(Path(path))
    from cbench.store.store import Store

    with Store.open(path) as store:
        return tuple(store.series())


def list_workloads() -> tuple[Workload, ...]:
    """The built-in workloads."""
    from cbench.workloads.registry import WORKLOADS

    return WORKLOADS

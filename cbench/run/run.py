"""What the commands do, between the command line and the tables."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbench.machine import describe
from cbench.machine.cpus import choose_cpus
from cbench.measure import counters, layout, measurement, protocol
from cbench.model import PLAIN, Layout, Workload
from cbench.run import catalogue, table
from cbench.run import result as report
from cbench.store import writer
from cbench.store.store import Store
from cbench.workloads import registry as workloads
from quiet.errors import QuietError
from quiet.settings.journal import isolated_cpus

TRIALS = 1000
QUICK_TRIALS = 200


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of `cbench run` as they were typed; `trials` None: the default."""

    workloads: list[str]
    trials: int | None
    cpus: list[str]
    warmup: str
    counter: str
    params: list[str]
    quick: bool
    timeout: float
    trace: bool = True
    events: str = counters.AUTO
    until_clean: int | None = None
    processes: int = 1
    vary: str = ""
    seed: int = 1
    base: Layout = PLAIN
    subtract: bool = False
    output: Path | None = None
    in_kernel: bool = False
    stop_machine: bool = False
    command: list[str] = field(default_factory=list)


def tell(line: str) -> None:
    """A message for the user: stderr, one line."""
    sys.stderr.write(f"cbench: {line}\n")


def measure(request: RunRequest) -> dict[str, Any]:
    """The report of `cbench run`; QuietError for whatever stands in the way."""
    options = _options(request)
    isolated = isolated_cpus()
    cpus = choose_cpus(request.cpus, isolated)
    settings = workloads.parse_settings(request.params)
    with tempfile.TemporaryDirectory(prefix="cbench-") as cache:
        chosen = measurement.find(request.workloads, Path(cache), tell)
        workloads.check_settings(chosen, settings)
        params = [workloads.parameters(workload, settings, request.quick) for workload in chosen]
        for workload, values in zip(chosen, params, strict=True):
            measurement.check_memory(workload, values)
        described = describe.describe(cpus, isolated)
        with _kept(request, described) as keep, table.TrialBar() as bar:
            results = measurement.measure(
                chosen, params, cpus, isolated=isolated, options=options, show=bar.show, keep=keep
            )
    made: dict[str, Any] = report.run_dict(
        results, {**described, "missing": describe.missing(results)}, request.subtract
    )
    for line in [*describe.missing(results), *shortcomings(made["results"])]:
        tell(line)
    return made


def _options(request: RunRequest) -> measurement.MeasureOptions:
    trials = request.trials
    if trials is None and request.until_clean is None:
        trials = QUICK_TRIALS if request.quick else TRIALS
    return measurement.options(
        trials,
        request.warmup,
        request.counter,
        request.timeout,
        request.trace,
        events=request.events,
        until_clean=request.until_clean,
        plan=layout.plan(request.processes, request.vary, request.seed, request.base),
        in_kernel=request.in_kernel,
        stop_machine=request.stop_machine,
        asked=request.trials is not None or request.until_clean is not None,
    )


@contextmanager
def _kept(request: RunRequest, described: dict[str, object]) -> Iterator[measurement.Keep | None]:
    """What keeps trials in the file that was asked for."""
    if request.output is None:
        yield None
        return
    with Store.create(request.output, host=described, command=request.command) as store:

        def kept() -> str:
            return f"{store.kept:,} trials of this run are kept in {request.output}"

        def keep(workload: Workload, cpu: int, process: int, job: protocol.Job) -> writer.Keeping:
            return writer.Keeping(store, workload, cpu, process, job)

        try:
            yield keep
        except QuietError as error:
            if store.kept and " kept in " not in str(error):
                raise type(error)(f"{error}; {kept()}") from None
            raise
        except (KeyboardInterrupt, SystemExit):
            tell(kept())
            raise


def shortcomings(results: Sequence[Any]) -> list[str]:
    """Why the results are not what was asked for, a line each; none: exit code 0."""
    lines: list[str] = []
    for result in results:
        where = f"{result['workload']} on CPU {result['cpu']}"
        clean = result["clean_trials"]
        if clean["reached"] is False:
            count, process = min((count, number) for number, count in enumerate(clean["each"]))
            total = result["processes"]["each"][process]["trials"]
            one = f", process {process + 1}" if len(clean["each"]) > 1 else ""
            lines.append(
                f"{where}{one}: only {count:,} of {total:,} trials were clean ({clean['means']}), "
                f"{clean['wanted']:,} were wanted: allow more with --trials, or make the host quieter"
            )
        if result["outputs"] > 1:
            lines.append(
                f"{where}: non-deterministic: it returned {result['outputs']:,} different results in "
                f"{len(result['trials']):,} trials, so they did different work"
            )
    return lines


def show_measured(made: dict[str, Any]) -> None:
    table.results(made)


def listing() -> dict[str, Any]:
    """The object of `cbench list --json`."""
    return catalogue.content()


def show_listing(content: dict[str, Any]) -> None:
    table.catalogue(content)

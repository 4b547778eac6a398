"""Measure workloads with the options of `cbench run`, and keep the trials in a file if one is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cbench.console import TrialBar, tell
from cbench.machine import describe
from cbench.machine.cpus import choose_cpus
from cbench.machine.events import AUTO
from cbench.measure import layout, measurement, protocol
from cbench.measure.options import MeasureOptions, measure_options
from cbench.measure.result import RunResult, run_result
from cbench.measure.shortcomings import shortcomings
from cbench.model import PLAIN, Layout, Ready, Session, Settling, Trial, Workload
from cbench.store.store import Store
from cbench.study.process.scratch import scratch
from cbench.workloads import registry, selection
from quiet import QuietError, isolated_cpus, isolated_turn

TRIALS = 1000
QUICK_TRIALS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `cbench run`. Raises UsageError for invalid options.

    `trials`: None for the default. `until_clean`: the requested number of clean trials, None for no request. `output`:
    the file that stores the trials, None to store none. `how`: the MeasureOptions derived from these options.
    `command`: stored with the trials.
    """

    workloads: Sequence[str]
    trials: int | None = None
    cpus: Sequence[str] = ()
    warmup: str = "auto"
    counter: str = AUTO
    params: Sequence[str] = ()
    quick: bool = False
    timeout: float = 60
    trace: bool = True
    events: str = AUTO
    until_clean: int | None = None
    processes: int = 1
    vary: str = ""
    seed: int = 1
    base: Layout = PLAIN
    subtract: bool = False
    output: Path | None = None
    in_kernel: bool = False
    stop_machine: bool = False
    command: Sequence[str] = ()
    how: MeasureOptions = field(init=False)

    def __post_init__(self) -> None:
        number_given = self.trials is not None or self.until_clean is not None
        how = measure_options(
            self.trials if number_given else QUICK_TRIALS if self.quick else TRIALS,
            self.warmup,
            self.counter,
            self.timeout,
            self.trace,
            events_text=self.events,
            until_clean=self.until_clean,
            plan=layout.plan(self.processes, self.vary, self.seed, self.base),
            in_kernel=self.in_kernel,
            stop_machine=self.stop_machine,
            number_given=number_given,
        )
        object.__setattr__(self, "how", how)


def measure(options: RunOptions, tell: Callable[[str], None] = tell) -> RunResult:
    """Measure for `cbench run`. `tell` receives messages for the user. Raises QuietError if a workload cannot be
    measured.
    """
    isolated = isolated_cpus()
    cpus = choose_cpus(options.cpus, isolated)
    settings = registry.parse_settings(options.params)
    with scratch() as cache:
        chosen, params = selection.select(options.workloads, settings, options.quick, cache, tell)
        host = describe.describe(cpus, isolated)
        name = " ".join(options.command) or "cbench run"
        with isolated_turn(frozenset(cpus), name, tell), _kept(options, host, tell) as keep, TrialBar() as bar:
            results = measurement.measure(
                chosen, params, cpus, isolated=isolated, options=options.how, show=bar.show, keep=keep
            )
    missing = describe.missing(results)
    result = run_result(results, replace(host, missing=missing), options.subtract)
    for line in [*missing, *shortcomings(result.results)]:
        tell(line)
    return result


@contextmanager
def _kept(
    options: RunOptions, host: describe.HostFacts, tell: Callable[[str], None]
) -> Iterator[measurement.Keep | None]:
    """A context with a function that makes keepers for the requested file; None if no file was requested."""
    if options.output is None:
        yield None
        return
    with Store.create(options.output, host=describe.to_store(host), command=options.command) as store:

        def kept() -> str:
            return f"{store.kept:,} trials of this run are kept in {options.output}"

        def keep(workload: Workload, cpu: int, process: int, job: protocol.Job) -> StoreKeeper:
            return StoreKeeper(store, workload, cpu, process, job)

        try:
            yield keep
        except QuietError as error:
            store.drop_if_empty()
            if store.kept and " kept in " not in str(error):
                raise type(error)(f"{error}; {kept()}") from None
            raise
        except (KeyboardInterrupt, SystemExit):
            store.drop_if_empty()
            tell(kept() if store.kept else "no trial was measured")
            raise


class StoreKeeper:
    """A Keeper that writes one process's trials to an open store, chunk by chunk while the process still measures."""

    def __init__(self, store: Store, workload: Workload, cpu: int, process: int, job: protocol.Job) -> None:
        self._store = store
        self._facts = {
            "workload": workload.name,
            "params": dict(job.params),
            "cpu": cpu,
            "process": process,
            "layout": asdict(job.layout),
        }
        self._series: int | None = None

    def begin(self, ready: Ready, settling: Settling) -> None:
        self._series = self._store.begin({**self._facts, **asdict(ready), "settling": asdict(settling)})

    def add(self, trials: Sequence[Trial]) -> None:
        assert self._series is not None
        self._store.add(self._series, trials)

    def finish(self, session: Session) -> None:
        assert self._series is not None
        self._store.finish(
            self._series,
            {
                "counter": asdict(session.counter),
                "settling": asdict(session.settling),
                "stolen_ms": session.stolen_ms,
                "causes": asdict(session.causes),
                "locked": session.locked,
                "addresses": session.addresses,
                "pages": session.pages,
            },
        )

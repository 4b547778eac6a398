"""Implement the lifecycle of a study: `cbench order init`, `run`, `resume`, `status` and `stop`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

from cbench.console import StoppedError, shell_path, tell
from cbench.store.database import no_directory, reading
from cbench.study import auto_resume, config, detached, lock, orders
from cbench.study.detached import DetachedJob
from cbench.study.example import EXAMPLE
from cbench.study.hooks import TrialHooks
from cbench.study.host_check import counter_of, described, glance, inside, look
from cbench.study.model import CALLED, Study, StudyCounter
from cbench.study.process.scratch import scratch
from cbench.study.records import Header, RunLeftOut, StoredFacts, StoredRun, StudyStatus, TestFailure
from cbench.study.resets.reboot import RebootReset
from cbench.study.runner import Runner, StudyProgress
from cbench.study.store import StudyStore
from cbench.study.suite.discover import discover
from quiet import Incomplete, QuietError, Reader, Refused, UsageError

ORDER = "order"
PATIENCE_S, PAUSE_S = 3.0, 0.1
Show = Callable[[StudyProgress], None]


def init(path: str) -> None:
    """Write the commented example of a study. Raises UsageError if the file exists or cannot be written."""
    write_example(path, EXAMPLE, f"cbench order plan {path}, then: cbench order run {path}")


def write_example(path: str, example: str, next_command: str) -> None:
    """Write the example and print the next command. Raises UsageError if the file exists or cannot be written."""
    try:
        with open(path, "x") as file:
            file.write(example)
    except FileExistsError:
        raise UsageError(f"{path}: already exists; choose another name") from None
    except FileNotFoundError:
        raise no_directory(Path(path)) from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    tell(f"{path} written; next: {next_command}")


class StartStudy:
    """A study that is about to begin. Raises UsageError for an error in its file, or if the store would overwrite this
    file.

    `output`: the store, None for the file's path with the suffix .db. `host`: the host name that determines the orders
    together with the seed; None for this host's own name, "" if the seed alone determines them.
    """

    def __init__(self, file: str, output: str | None, host: str | None = None) -> None:
        self._host = os.uname().nodename if host is None else host
        self._path = Path(file)
        self._study = config.load(self._path)
        self._target = Path(output) if output is not None else self._path.with_suffix(".db")
        if self._target.exists() and self._target.samefile(self._path):
            raise UsageError(f"{self._target}: is the study's file; choose another name for its store (-o)")
        inside(self._study, ["run", file, "--output", str(self._target), "--host", self._host])

    def run(self, show: Show, again: str | None = None) -> StudyStatus:
        """Store the study's plan and run it. `again`: see go_on(). Raises QuietError if the study cannot be run."""
        target = self._target
        study, plan = planned(self._study, str(self._path), self._host)
        names = tuple(test.name for test in study.tests)
        source = self._path.read_bytes().decode()
        counter = counter_of(study, study.counter)
        known = described(counter) | {"file": str(self._path.absolute()), "hostname": self._host}
        header = Header(ORDER, study.name, study.seed, source, study.folder, names, known)
        with lock.alone(target, create=True), new_store(target, header, plan) as store:
            return go_on(study, store, counter, show, again=again, new=True)


def planned(study: Study, file: str, host: str) -> tuple[Study, list[orders.PlannedRun]]:
    """The study, with the tests that its suite lists, and its runs. `host`: the name that determines the orders
    together with the seed, "" for the seed alone. Raises QuietError if the study cannot be run.
    """
    check(study, file)
    if study.suite is not None:
        environment = {**os.environ, **study.environment}
        study = config.with_tests(study, discover(study.suite, study.folder, environment, file))
        if study.design == orders.WILLIAMS and (wrong := config.no_square(study.repetitions, len(study.tests))):
            raise UsageError(f"{file}: study.repetitions: {wrong}")
    seed = orders.seed_on(host, study.seed)
    runs = orders.plan(study.design, len(study.tests), study.repetitions, seed)
    if study.suite is not None and study.suite.isolated == "both":
        runs = orders.with_isolated(runs, seed)
    return study, runs


@contextmanager
def new_store(path: Path, header: Header, plan: Sequence[orders.PlannedRun]) -> Iterator[StudyStore]:
    """A context with a new store. The store is removed if a QuietError ends the context before a run has begun, except
    after StoppedError and Incomplete, because a resume then needs the store.
    """
    empty = False
    try:
        with StudyStore.create(path, header, plan) as store:
            try:
                yield store
            except QuietError as error:
                empty = not isinstance(error, StoppedError | Incomplete) and _empty(store)
                raise
    finally:
        if empty:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)


def detach(file: str, output: str | None) -> DetachedJob:
    """Check a study's file and start the study detached. Raises QuietError if either fails."""
    study = config.load(Path(file))
    check(study, file)
    return detached.start_new(Path(output) if output is not None else Path(file).with_suffix(".db"), ORDER)


def detach_again(data: str, kind: str = ORDER) -> DetachedJob:
    """Resume a study as a detached job. Raises QuietError if that fails."""
    with StudyStore.open(Path(data), kind=kind):
        pass
    return detached.start_again(Path(data))


def stop(data: str, kind: str = ORDER) -> StudyStatus:
    """Stop a detached study; returns its progress. Raises QuietError if it cannot be stopped."""
    with StudyStore.open(Path(data), kind=kind):
        pass
    detached.stop(Path(data))
    return status(data, kind)


class ResumeStudy:
    """A study to resume. Raises UsageError if there is none, and Refused if another process runs it."""

    def __init__(self, data: str) -> None:
        self._data = data
        with lock.alone(Path(data)), StudyStore.open(Path(data), writing=True, kind=ORDER) as store:
            header = store.header()
        self._study = config.parse(header.source, f"{data} (its study file)", header.folder)
        if self._study.suite is not None:
            self._study = config.with_tests(self._study, header.tests)
        if tuple(test.name for test in self._study.tests) != header.tests:
            raise QuietError(f"{data}: damaged: the tests in its study file differ from its list of tests")
        inside(self._study, ["resume", data])

    def run(self, show: Show, again: str | None = None) -> StudyStatus:
        """Resume at the next trial. `again`: see go_on(). Raises QuietError if the study cannot be run."""
        path = Path(self._data)
        with lock.alone(path), StudyStore.open(path, writing=True) as store:
            header = store.header()
            if not all(run.over for run in store.runs()):
                check(self._study, f"{self._data} (its study file)")
            say_if_changed(header)
            counter = counter_of(self._study, header.counter or self._study.counter)
            return go_on(self._study, store, counter, show, again=again)


def status(data: str, kind: str = ORDER) -> StudyStatus:
    """The progress of a study, even while another process runs it. Raises QuietError for an unusable store."""
    path = Path(data)
    limit = time.monotonic() + PATIENCE_S
    while True:
        running = lock.held(path)
        try:
            with StudyStore.open(path, kind=kind) as store, reading(path):
                return _status(store, running)
        except UsageError:  # the store is being created
            if not running or time.monotonic() > limit:
                raise
        time.sleep(PAUSE_S)


def _status(store: StudyStore, running: bool) -> StudyStatus:
    header, runs, counts = store.header(), store.runs(), store.counts()
    of = sum(len(run.order) for run in runs)
    lost = sum(len(run.order) - run.done for run in runs if run.over)
    left = of - counts.done - lost
    return StudyStatus(
        name=header.name,
        data=str(store.path),
        runs=len(runs),
        runs_over=sum(run.over for run in runs),
        runs_left_out=sum(run.failure is not None for run in runs),
        runs_resumed=sum(run.resumed > 0 for run in runs),
        trials=of,
        trials_done=counts.done,
        trials_failed=counts.failed,
        failures=tuple(TestFailure(header.tests[test], reason) for test, reason in store.failures()),
        left_out=tuple(RunLeftOut(run.number, run.failure) for run in runs if run.failure),
        running=running,
        finished=header.ended_ns is not None,
        last_ended_s_ago=None if counts.last_ns is None else (time.time_ns() - counts.last_ns) / 1e9,
        left_s=_left_s(runs, left, counts.mean_ns),
        trial_s_mean=None if counts.mean_ns is None else counts.mean_ns / 1e9,
    )


def _empty(store: StudyStore) -> bool:
    """Whether no run has begun or been skipped."""
    return not any(run.over or run.begun_ns for run in store.runs())


def expected_s(path: Path, tests: Sequence[str], trials: int) -> float | None:
    """The expected duration of so many trials in seconds, from a store of a study with the same tests; None if there is
    no such store, or if none of its trials has ended.
    """
    try:
        with StudyStore.open(path, kind=ORDER) as store, reading(path):
            same = store.header().tests == tuple(tests)
            return _left_s(store.runs(), trials, store.counts().mean_ns) if same else None
    except QuietError:
        return None


def _left_s(runs: list[StoredRun], left: int, mean_ns: float | None) -> float | None:
    """Estimate the remaining seconds from the median time per trial between the ends of successive runs, which includes
    resets and is insensitive to long interruptions. With fewer than two such runs, use the mean duration of a trial;
    None if no trial has ended.
    """
    ends = sorted((run.ended_ns, len(run.order)) for run in runs if run.ended_ns is not None and run.failure is None)
    steps = [(later - earlier) / trials for (earlier, _), (later, trials) in pairwise(ends)]
    if steps:
        return median(steps) * left / 1e9
    return None if mean_ns is None else mean_ns * left / 1e9


def check(study: Study, file: str, kind: str = ORDER) -> None:
    """Raise QuietError for a problem that would make every trial of a test, or every reset, fail."""
    if not Path(study.folder).is_dir():
        raise UsageError(f"{study.folder}: the {CALLED[kind]}'s directory, in which its commands run, does not exist")
    for test in study.tests:
        place = f"{file}: {'test' if kind == ORDER else 'treatment'} {test.name!r}"
        wanted = {**os.environ, **study.environment}.get("PATH")
        for probe in test.probes():
            if problem := probe.obstacle(wanted):
                raise UsageError(f"{place}: {problem}")
    if problem := study.reset.obstacle({**os.environ, **study.environment}, Reader()):
        raise Refused(f"{file}: a reset of kind {study.reset.kind!r} cannot work here: {problem}")
    if isinstance(study.reset, RebootReset) and not study.reset.command and auto_resume.obstacle():
        raise Refused(
            f"{file}: reset.kind 'reboot': {auto_resume.obstacle()}; alternatively, set reset.command to a command "
            f"that reboots the host, and run `cbench {kind} resume` after each boot"
        )


def _after_each_boot(kind: str, data: Path) -> None:
    """Make the study resume automatically after each boot, or print that it will not. Raises Refused if the unit cannot
    be installed.
    """
    if auto_resume.obstacle():
        tell(f"after each reboot, run: cbench {kind} resume {data} ({auto_resume.obstacle()})")
        return
    unit = auto_resume.install(data, os.environ, kind=kind)
    tell(f"after each reboot the {CALLED[kind]} resumes by itself ({unit}); see: cbench {kind} status {data}")


def say_if_changed(header: Header) -> None:
    file = Path(header.file)
    try:
        same = not file.is_file() or file.read_bytes() == header.source.encode()
    except OSError:
        same = True
    if not same:
        tell(f"{file} has changed: the {CALLED[header.kind]} resumes with the original file, which its store contains")


def go_on(
    study: Study,
    store: StudyStore,
    counter: StudyCounter | None,
    show: Show,
    hooks: TrialHooks | None = None,
    kind: str = ORDER,
    again: str | None = None,
    new: bool = False,
) -> StudyStatus:
    """Run the remaining trials and return the progress. Raises QuietError if the study cannot continue, or if every
    run was left out or every trial failed.

    `kind`: the cbench command that resumes the study; `again`: the whole command line that resumes it, if different;
    `new`: whether the caller removes the store if no run begins.
    """
    kept = f"finished trials are kept; resume with: {again or f'cbench {kind} resume {shell_path(store.path)}'}"

    def known(run: StoredRun) -> StoredFacts:
        return look(tell) if hooks is None or hooks.first(run) else glance()

    if isinstance(study.reset, RebootReset):
        _after_each_boot(kind, store.path)
    with scratch() as cache:
        try:
            workloads = None
            if counter is not None:
                from cbench.study.workload import Workloads

                workloads = Workloads(study, counter.name, cache, tell, kind)
            Runner(study, store, known, tell, show, workloads, hooks).run()
        except KeyboardInterrupt:
            raise StoppedError(f"interrupted; {kept}") from None
        except SystemExit:
            tell(f"ended by a signal; {kept}")
            raise
        except QuietError as error:
            if new and _empty(store) and not isinstance(error, Incomplete):
                kept = f"nothing was measured and {store.path} was removed; `cbench {kind} run` starts again"
            raise type(error)(f"{error}; {kept}") from None
        finally:
            if isinstance(study.reset, RebootReset):
                auto_resume.remove(store.path)
    reached = _status(store, running=False)
    if reached.runs_left_out == reached.runs:
        raise QuietError(f"{store.path}: every run was left out, so nothing was measured: {reached.left_out[0].reason}")
    if reached.trials_failed == reached.trials_done:
        number, reason = store.first_failure()
        raise QuietError(
            f"{store.path}: every trial failed, so nothing was measured: {study.tests[number].name}: {reason}"
        )
    return reached

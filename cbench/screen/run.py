"""Implement `cbench screen plan`, `run`, `resume` and `status`."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from cbench.console import StoppedError, shell_path, tell
from cbench.screen.config import file, treatments
from cbench.screen.config.model import BUILT, SCREEN, Level, Screen, ScreenFactor, Treatment
from cbench.screen.config.plan import Planned, ScreenPlan
from cbench.screen.config.treatments import runs
from cbench.screen.data.load_store import plan_of
from cbench.screen.execute import pending_restores, quiet_levels
from cbench.screen.execute.builds import Builds
from cbench.screen.execute.host_levels import HostLevels
from cbench.screen.execute.levels import Levels
from cbench.store.database import reading
from cbench.study import detached, lock, orders
from cbench.study.detached import DetachedJob
from cbench.study.host_check import counter_of, described, inside
from cbench.study.lifecycle import Show, check, go_on, new_store, say_if_changed
from cbench.study.lifecycle import status as study_status
from cbench.study.model import Study, StudyCounter
from cbench.study.orders import ALL_RANDOM
from cbench.study.process import process_tags
from cbench.study.process.process_attributes import inherited
from cbench.study.process.process_tags import ProcessTags
from cbench.study.records import Header, StudyStatus
from cbench.study.store import StudyStore
from quiet import QuietError, Reader, Refused, UsageError, applied_state, parse_cpus

LEVEL = "level"


def plan(path: str) -> ScreenPlan:
    """Plan an experiment: its runs, and the effects that they can test. Raises UsageError if the file is invalid.

    If the store next to the file has trials, the plan also has the expected duration (for the same tests), detectable
    effects in the response's unit, and remarks on coarse clocks.
    """
    planned = Planned(file.load(Path(path)))
    planned.check()
    data = Path(path).with_suffix(".db")
    spreads, coarse = _noise(data) if data.is_file() else ({}, [])
    made = planned.result(_seconds(data, planned), spreads)
    return replace(made, words=(*made.words, *coarse))


def _noise(data: Path) -> tuple[dict[str, float], list[str]]:
    """For each response, the median over treatments of the standard deviation of a treatment's values, on the workload
    with the largest median; and sentences about clocks with steps that are coarse relative to the values' range. Both
    are empty if numpy is not installed, the store is unusable, or there are no values.
    """
    try:
        import numpy as np

        from cbench.screen.data import read_store
        from cbench.screen.stats.resolution import coarse, coarse_words

        series = read_store.read(data).series
    except (ImportError, QuietError):
        return {}, []
    spreads, words = dict[str, float](), list[str]()
    for each in series:
        values = [each.of(number) for number in np.unique(each.treatment).tolist()]
        known = [float(mine.std(ddof=1)) for mine in values if mine.size > 1]
        if known:
            spreads[each.response] = max(median(known), spreads.get(each.response, 0.0))  # of the noisiest workload
        if (clock := coarse(values)) is not None:
            words.append(coarse_words(each.name, clock, each.unit))
    return spreads, words


def _seconds(data: Path, planned: Planned) -> dict[int, float]:
    """The median time in seconds from the beginning of a trial to the beginning of the next one, by test number, in an
    earlier run of this experiment. Empty if the store is unusable.
    """
    names = {test.name: test.number for test in planned.tests}
    try:
        with StudyStore.open(data, kind=SCREEN) as store:
            tests, trials = store.header().tests, store.trials()
    except QuietError:
        return {}
    durations: dict[int, list[int]] = {}
    for (run, _, test, _, begun, _), (later, _, _, _, next_begun, _) in pairwise(trials):
        if run == later and tests[test] in names:
            durations.setdefault(names[tests[test]], []).append(next_begun - begun)
    return {number: median(each) / 1e9 for number, each in durations.items()}


class StartScreen:
    """An experiment that is about to begin. Raises UsageError for an error in its file, or if the store would overwrite
    this file.

    `output`: the store, None for the file's path with the suffix .db; `host`: the host name that determines the orders
    together with the seed, "" if the seed alone determines them.
    """

    def __init__(self, path: str, output: str | None, host: str = "") -> None:
        self._path, self._host = Path(path), host
        self._screen = file.load(self._path)
        self._target = Path(output) if output is not None else self._path.with_suffix(".db")
        if self._target.exists() and self._target.samefile(self._path):
            raise UsageError(f"{self._target}: is the experiment's file; choose another name for its store (-o)")
        self._drawn = replace(self._screen, seed=orders.seed_on(host, self._screen.seed))
        self._planned = Planned(self._drawn)
        self._planned.check()
        self._study = study_of(self._screen, self._planned.treatments)
        inside(self._study, ["run", path, "--output", str(self._target), "--host", host], SCREEN)

    def clocks(self) -> list[str]:
        """Sentences about responses whose stored values have coarse steps; [] if the store cannot be read."""
        return _noise(self._target)[1]

    def run(self, show: Show) -> StudyStatus:
        """Store the experiment's plan and run it. Raises QuietError if it cannot be run."""
        screen, planned, target, study = self._screen, self._planned, self._target, self._study
        check(study, str(self._path), SCREEN)
        _preflight(screen, str(self._path))
        for words in planned.words():
            tell(words)
        counter = counter_of(study, screen.counter)
        known = described(counter) | {"file": str(self._path.absolute()), "screen": planned.stored()}
        known["hostname"] = self._host or os.uname().nodename
        names = tuple(test.name for test in planned.tests)
        source = self._path.read_bytes().decode()
        header = Header(SCREEN, screen.name, screen.seed, source, screen.folder, names, known)
        every = runs(self._drawn, planned.treatments)
        with lock.alone(target, create=True, kind=SCREEN), new_store(target, header, every) as store:
            return _go_on(screen, store, counter, show, new=True)


def detach(path: str, output: str | None) -> DetachedJob:
    """Check the file and start the experiment detached. Raises QuietError if either fails."""
    screen = file.load(Path(path))
    planned = Planned(screen)
    planned.check()
    check(study_of(screen, planned.treatments), path, SCREEN)
    _preflight(screen, path)
    return detached.start_new(Path(output) if output is not None else Path(path).with_suffix(".db"), SCREEN)


class ResumeScreen:
    """An experiment to resume. Raises UsageError if there is none, and Refused if another process runs it."""

    def __init__(self, data: str) -> None:
        self._path = Path(data)
        with lock.alone(self._path, kind=SCREEN), StudyStore.open(self._path, writing=True, kind=SCREEN) as store:
            header = store.header()
        self._screen = file.parse(header.source, file_of(self._path), header.folder)
        with reading(data):
            study = study_of(self._screen, plan_of(header, data)[0])
        inside(study, ["resume", data], SCREEN)

    def clocks(self) -> list[str]:
        """Sentences about responses whose stored values have coarse steps; [] if the store cannot be read."""
        return _noise(self._path)[1]

    def run(self, show: Show) -> StudyStatus:
        """Resume at the next trial. Raises QuietError if the experiment cannot be run."""
        path, screen = self._path, self._screen
        with lock.alone(path, kind=SCREEN), StudyStore.open(path, writing=True, kind=SCREEN) as store:
            header = store.header()
            study = study_of(screen, plan_of(header, str(path))[0])
            if not all(run.over for run in store.runs()):
                check(study, file_of(path), SCREEN)
            say_if_changed(header)
            counter = counter_of(study, header.counter or screen.counter)
            return _go_on(screen, store, counter, show, new=False)


def status(data: str) -> StudyStatus:
    """The progress of an experiment, even while another process runs it, and the levels that are set on the host.
    Raises QuietError for an unusable store.
    """
    return replace(study_status(data, SCREEN), set=tuple(_set_now(Path(data))))


def _set_now(data: Path) -> list[str]:
    """The levels that are set now, by commands (according to their record) and by quiet. If they cannot be read, the
    only entry is the error message.
    """
    with StudyStore.open(data, kind=SCREEN) as store:
        source = f"{quiet_levels.SOURCE}{store.identity()}"
    try:
        names = [each.name for each in pending_restores.read(pending_restores.place(data))]
        return [*names, *([quiet_levels.WHAT] if quiet_levels.ours(Reader(), source) else [])]
    except QuietError as error:
        return [str(error)]


def _go_on(screen: Screen, store: StudyStore, counter: StudyCounter | None, show: Show, *, new: bool) -> StudyStatus:
    plan = plan_of(store.header(), str(store.path))
    every = store.runs()
    identity = store.identity()
    tags = ProcessTags(identity, len(every), tuple(test.name for test in plan[1]))
    environment = {**os.environ, **screen.environment}
    builds = Builds(screen, plan[0], store.path, {**environment, **tags.of_step(process_tags.SETUP)})
    if not all(run.over for run in every):
        tags.end(lambda tag: tag.step == process_tags.SETUP and tag.run is None)  # an unfinished build
        try:
            builds.make(new, tell)
        except KeyboardInterrupt:
            again = f"cbench screen resume {shell_path(store.path)}"
            raise StoppedError(f"interrupted during a build; resume with: {again}") from None
    of_level = {**environment, **tags.of_step(LEVEL)}
    host = HostLevels(screen, store.path, identity, of_level)
    levels = Levels(screen, plan, every, host, builds, of_level, tell)
    return go_on(study_of(screen, plan[0], builds), store, counter, show, levels, SCREEN, new=new)


def _preflight(screen: Screen, label: str) -> None:
    """Check that every level can be set here. Raises Refused, with the level and the reason, if one cannot."""
    reader = Reader()
    for factor in screen.factors:
        for level in factor.levels:
            try:
                _check_level(reader, screen, factor, level)
            except Refused as error:
                raise Refused(f"{label}: {factor.name}={level.name} cannot be set here: {error}") from None


def _check_level(reader: Reader, screen: Screen, factor: ScreenFactor, level: Level) -> None:
    if level.by_quiet:
        record = applied_state(reader)
        if record is not None:
            raise Refused(f"'{record.profile}' is applied to this host; run `quiet restore` first")
        if why := quiet_levels.obstacle(reader, level, screen.cpus or None, factor.levels):
            raise Refused(why)
        if os.geteuid() != 0:
            raise Refused("this level changes the host, which needs root: run the experiment with sudo")
    with inherited(parse_cpus(level.cpus) if level.cpus else None, level.aslr):
        pass


def study_of(screen: Screen, planned: tuple[Treatment, ...], builds: Builds | None = None) -> Study:
    """The experiment as a study. `builds`: the builds whose directories contain the built workloads; None before they
    exist.
    """

    def folder_of(treatment: Treatment) -> str:
        built = builds.of(treatment) if builds is not None else None
        return str(built.folder) if built is not None else BUILT

    return Study(
        name=screen.name,
        tests=treatments.study_tests(screen, planned, folder_of),
        repetitions=screen.iterations,
        design=ALL_RANDOM,
        seed=screen.seed,
        alpha=screen.alpha,
        reset=screen.reset,
        failures="trial",
        counter=screen.counter,
        profile=screen.profile,
        cpus=screen.cpus if screen.profile else "",
        setup=screen.setup,
        teardown=screen.teardown,
        environment=screen.environment,
        folder=screen.folder,
    )


def file_of(data: Path) -> str:
    """The name of a stored experiment's file in messages."""
    return f"{data} (its experiment)"

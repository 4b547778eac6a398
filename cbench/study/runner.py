"""Run the remaining trials of a study, run by run.

Each trial is stored before the next begins. If a run is one process of a suite, its trials are stored together at its
end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from cbench.stats.random_draws import Stream
from cbench.study import trial
from cbench.study.hooks import Held, TrialHooks
from cbench.study.model import Study
from cbench.study.orders import ISOLATED
from cbench.study.process import process_tags
from cbench.study.process.process_tags import ProcessTag, ProcessTags
from cbench.study.process.run_command import MOST_OUTPUT, CommandError, run_checked
from cbench.study.records import Ended, StoredFacts, StoredRun
from cbench.study.resets import reboot
from cbench.study.resets.reboot import RebootReset
from cbench.study.resets.reset import NoReset, ResetContext, ResetError
from cbench.study.store import StudyStore
from cbench.study.suite.measure import measure
from cbench.study.suite.suite import Suite
from quiet import QuietError

if TYPE_CHECKING:
    from cbench.study.workload import Workloads

MOST_ASKED = 2
MOST_SEED = 2**31 - 1
MOST_TOLD = 20
"""The maximum number of failures that are printed individually; all failures are stored."""


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """The progress of a study. `done` and `of`: the numbers of finished and of all trials; `run`: the current run, from
    0; `runs`: the number of runs; `test`: the name of the current test, or another step as text. `left_s`: estimated
    remaining time in seconds, None before this process has finished a trial.
    """

    done: int
    of: int
    run: int
    runs: int
    test: str
    left_s: float | None


class Runner:
    """Runs the remaining trials of a study."""

    def __init__(
        self,
        study: Study,
        store: StudyStore,
        look: Callable[[StoredRun], StoredFacts],
        tell: Callable[[str], None],
        show: Callable[[StudyProgress], None],
        workloads: Workloads | None = None,
        hooks: TrialHooks | None = None,
    ) -> None:
        """`look` reads the host's facts at the beginning of each run; `tell` receives messages, and `show` progress.

        `hooks`: the hooks that set levels around trials; None in a study of orders.
        """
        self._study, self._store = study, store
        self._look, self._tell, self._show = look, tell, show
        self._workloads = workloads
        self._hooks = hooks or TrialHooks()
        self._environment = {**os.environ, **study.environment}
        self._runs = store.runs()
        self._tags = ProcessTags(store.identity(), len(self._runs), tuple(test.name for test in study.tests))
        self._context = ResetContext(study.folder, self._environment, self._tags)
        study.reset.prepare()
        self._done = 0
        self._of = 0
        self._begun = 0.0
        self._before = 0
        self._failures = 0
        self._cut: set[str] = set()

    def run(self) -> None:
        """Run the remaining trials. Raises QuietError if the study cannot continue; finished trials are kept."""
        self._of = sum(len(each.order) for each in self._runs)
        self._done = self._before = sum(len(each.order) if each.over else each.done for each in self._runs)
        self._begun = time.monotonic()
        self._end_strays()
        if isinstance(self._study.reset, RebootReset):
            self._study.reset.came_up(self._context)  # the setup may need services that are still starting
        self._hooks.start()
        if not all(each.over for each in self._runs):
            try:
                self._commands(process_tags.SETUP, self._study.setup)
                for each in self._runs:
                    if not each.over:
                        self._one(each)
            finally:
                try:
                    self._hooks.end()
                finally:
                    self._commands(process_tags.TEARDOWN, self._study.teardown, strict=False)
        if self._runs:
            self._progress(self._runs[-1], "finished")
        self._store.finish()

    def _end_strays(self) -> None:
        """Kill commands of an earlier, killed runner that are still running, before they are started again."""
        runs = {each.number: each for each in self._runs}

        def cut_short(tag: ProcessTag) -> bool:
            run = runs.get(tag.run) if tag.run is not None else None
            if run is None:  # the setup runs again
                return True
            if tag.position is None:
                return run.begun_ns is None and not run.over
            return tag.position >= run.done and not run.over

        if ended := self._tags.end(cut_short):
            self._tell(f"killed {ended:,} leftover {'process' if ended == 1 else 'processes'} of this study")

    def _one(self, run: StoredRun) -> None:
        if run.begun_ns is None:
            if not self._ready(run):
                return
        else:
            self._store.resume_run(
                run.number, run.done, {"boot_id": reboot.boot_id(), **self._look(run), **self._begun_at(run)}
            )
        suite = self._study.suite
        if suite is not None and not (suite.isolated == "yes" or run.kind == ISOLATED):
            self._whole(suite, run)
            return
        for position in range(run.done, len(run.order)):
            number = run.order[position]
            self._progress(run, self._study.tests[number].name)
            with self._hooks.trial(number, run.number, position) as held:
                ended = self._trial(number, run.number, position, held)
                self._store.add(ended)  # before levels are restored, because an error in restoring ends the study
            self._count(ended)
        self._store.end_run(run.number)

    def _whole(self, suite: Suite, run: StoredRun) -> None:
        """Execute a run that is one process. If it is interrupted, none of its trials is stored."""
        if run.done:  # by a version that recorded the end of the run separately
            self._store.end_run(run.number)
            return
        self._progress(run, suite.harness)
        trials = self._process(suite, run.order, run.number, 0, "")
        self._store.add_run(run.number, trials)
        for ended in trials:
            self._count(ended)

    def _count(self, ended: Ended) -> None:
        self._done += 1
        self._say_what_was_cut(ended)
        if ended.failure:
            self._failed(f"run {ended.run + 1}, {self._study.tests[ended.test].name}: {ended.failure}")

    def _begun_at(self, run: StoredRun) -> StoredFacts:
        levels = self._hooks.begin(run)
        return {"levels": levels} if levels else {}

    def _trial(self, number: int, run: int, position: int, held: Held) -> Ended:
        test = self._study.tests[number]
        if test.workload and self._workloads is not None:
            return self._workloads.trial(test, number, run, position, held)
        if self._study.suite is not None:
            return self._process(self._study.suite, (number,), run, position, test.name)[0]
        environment = {**self._environment, **self._tags.of_trial(run, position, test.name)}
        start = partial(trial.command, test, number, run, position, study_folder=self._study.folder, held=held)
        return self._supervised(run, position, lambda: [start(environment=environment)])[0]

    def _process(self, suite: Suite, order: tuple[int, ...], run: int, position: int, test: str) -> list[Ended]:
        """Run one process of a suite and return its trials."""
        names = [each.name for each in self._study.tests]
        start = partial(
            measure,
            *(suite, names, order, run, position),
            seed=1 + Stream(self._study.seed, f"process {run}").below(MOST_SEED),
            study_folder=self._study.folder,
            environment={**self._environment, **self._tags.of_trial(run, position, test)},
        )
        return self._supervised(run, position, start)

    def _supervised(self, run: int, position: int, start: Callable[[], list[Ended]]) -> list[Ended]:
        """Run one process by calling `start` and return its trials. If it is interrupted or times out, processes that
        left its session are also ended.
        """
        late = True
        try:
            trials = start()
            late = trials[0].code is None
        finally:
            if late:
                self._tags.end(lambda tag: (tag.run, tag.position) == (run, position))
        return trials

    def _say_what_was_cut(self, ended: Ended) -> None:
        """Report output that was not kept, once for each test."""
        name = self._study.tests[ended.test].name
        if "output_cut" in ended.facts and name not in self._cut:
            self._cut.add(name)
            self._tell(f"{name}: prints too much: only the last {MOST_OUTPUT >> 20} MiB of each stream is kept")

    def _failed(self, line: str) -> None:
        self._failures += 1
        if self._failures <= MOST_TOLD:
            self._tell(line)
        if self._failures == MOST_TOLD:
            self._tell("further failures are stored but not printed")

    def _ready(self, run: StoredRun) -> bool:
        """Reset the host if this run requires it, wait `settle_s`, and record the beginning of the run.

        Returns False if the reset fails; the run is then recorded as left out.
        """
        try:
            resets = self._hooks.resets(run)
            if resets and not isinstance(self._study.reset, NoReset):
                self._progress(run, f"reset ({self._study.reset.kind})")
            facts = self._reset(run) if resets else {}
        except (ResetError, CommandError) as error:
            self._store.end_run(run.number, f"not reset: {error}")
            self._done += len(run.order)
            self._tell(f"run {run.number + 1} is left out: not reset: {error}")
            return False
        if resets:
            time.sleep(self._study.reset.settle_s)
        levels = self._begun_at(run)
        self._store.begin_run(run.number, facts, self._look(run) | levels)
        return True

    def _reset(self, run: StoredRun) -> StoredFacts:
        reset, context = self._study.reset, self._context
        if variables := self._hooks.asked(run):
            context = replace(context, environment={**self._environment, **variables})
        if not isinstance(reset, RebootReset):
            return reset.perform(run.number, context)
        before, times = self._store.asked_to_boot(run.number)
        now = reboot.boot_id()
        if before in (
            "",
            now,
        ):  # the same boot: no reboot was requested, or the requesting process was killed before the reboot
            if times == MOST_ASKED:
                raise ResetError(f"requested {times} reboots, but the host is still in the same boot ({now})")
            self._store.ask_to_boot(run.number, now, times + 1)
            self._tell(f"run {run.number + 1}: the host reboots")
            return reset.perform(run.number, context)
        facts: StoredFacts = {"boot_id_before": before, "boot_id": now, "came_up": reset.came_up(context)}
        if reset.check:
            reset.execute(reset.check, self._context)
        return facts

    def _commands(self, what: str, commands: tuple[str, ...], strict: bool = True) -> None:
        environment: Mapping[str, str] = {**self._environment, **self._tags.of_step(what)}
        for command in commands:
            try:
                run_checked(command, self._study.folder, environment, self._study.reset.timeout_s)
            except CommandError as error:
                if strict:
                    raise QuietError(f"{what}: {error}") from None
                self._tell(f"{what}: {error}")

    def _progress(self, run: StoredRun, test: str) -> None:
        measured = self._done - self._before
        each = (time.monotonic() - self._begun) / measured if measured else None
        left = None if each is None else each * (self._of - self._done)
        self._show(StudyProgress(self._done, self._of, run.number, len(self._runs), test, left))

"""Set the levels of each trial of an experiment and restore them, as the hooks of its study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from cbench.screen.config.model import Controlled, Level, Screen, ScreenTest, Treatment
from cbench.screen.config.treatments import batch_number
from cbench.screen.execute.builds import VARIABLE, Builds
from cbench.screen.execute.host_levels import Confirmed, HostLevels
from cbench.study.hooks import Held, TrialHooks
from cbench.study.process.run_command import CommandError, run_checked
from cbench.study.records import StoredFacts, StoredRun
from cbench.study.resets.reset import ResetError
from quiet import parse_cpus

KERNEL, LEVEL = "CBENCH_KERNEL", "CBENCH_LEVEL_"
LOST = "the reset of its batch did not succeed"


class Levels(TrialHooks):
    """The hooks of an experiment, which set hard factors for a batch and all other factors for one trial. Levels are
    set in the same way each time, even if unchanged.
    """

    def __init__(
        self,
        screen: Screen,
        plan: tuple[Sequence[Treatment], Sequence[ScreenTest], Sequence[Mapping[str, str]]],
        runs: Sequence[StoredRun],
        host: HostLevels,
        builds: Builds,
        environment: Mapping[str, str],
        tell: Callable[[str], None],
    ) -> None:
        """Prepare the hooks. `plan`: the treatments, the tests, and the levels of the hard factors in each batch;
        `runs`: the runs in the store when this process begins; `tell`: receives messages.
        """
        self._screen, self._host, self._builds = screen, host, builds
        self._treatments, self._tests, self._batches = plan
        self._environment, self._tell = environment, tell
        self._hard = {factor.name for factor in screen.hard}
        self._begun = {batch_number(run) for run in runs if run.begun_ns is not None}
        self._tried = {batch_number(run) for run in runs if run.failure is not None} - self._begun
        self._seen: set[int] = set()
        self._batch: int | None = None
        self._confirmed = Confirmed({})

    def start(self) -> None:
        """Restore the levels left set by a killed process of this experiment. Raises Incomplete if one cannot be
        restored.
        """
        if left := self._host.left_behind():
            self._tell(f"restored the levels of an earlier, killed process: {', '.join(left)}")

    def resets(self, run: StoredRun) -> bool:
        """Whether to reset before this run: only before the first iteration of a batch. If so, all levels are restored
        first. Raises ResetError for later iterations of a batch whose reset failed, and Incomplete if a level
        cannot be restored.
        """
        batch = batch_number(run)
        if batch in self._begun:
            return False
        if batch in self._tried:
            raise ResetError(LOST)
        self._leave()
        self._tried.add(batch)
        return True

    def first(self, run: StoredRun) -> bool:
        """Whether this is the first run of its batch in this process. The host is verified once per batch, because
        iterations may be shorter than the check.
        """
        new = batch_number(run) not in self._seen
        self._seen.add(batch_number(run))
        return new

    def asked(self, run: StoredRun) -> Mapping[str, str]:
        """The batch's levels as environment variables of a reset command: CBENCH_LEVEL_FACTOR for each hard factor, and
        CBENCH_KERNEL for the kernel parameters. Empty without hard factors.
        """
        levels = self._batches[batch_number(run)]
        words = [word for factor, name in levels.items() for word in self._screen.level(factor, name).kernel or ()]
        variables = {f"{LEVEL}{factor.upper()}": name for factor, name in levels.items()}
        return {**variables, KERNEL: " ".join(words)} if levels else {}

    def begin(self, run: StoredRun) -> StoredFacts:
        """Set the batch's levels, or check that they are still set. Returns facts for the store, {} after a check.
        Raises Refused if a level cannot be set or is no longer set, and Incomplete if one cannot be restored.
        """
        batch = batch_number(run)
        levels = self._batches[batch]
        if self._batch != batch:
            self._leave()
            self._confirmed = self._host.set(levels)
            self._batch = batch
            self._begun.add(batch)
            controlled = {each.name: self._value(each) for each in self._screen.controlled}
            return {"confirmed": self._confirmed.texts, "controlled": controlled}
        self._confirmed = self._host.confirm(levels)
        return {}

    @contextmanager
    def trial(self, test: int, run: int, position: int) -> Iterator[Held]:
        """A context in which the levels that a trial needs are set. Raises Refused if setting fails, Incomplete if
        restoring fails.
        """
        treatment = self._treatments[self._tests[test].treatment]
        levels = {factor: self._screen.level(factor, name) for factor, name in treatment.levels.items()}
        easy = {factor: name for factor, name in treatment.levels.items() if factor not in self._hard}
        kept = self._host.mark
        try:
            yield self._held(treatment, levels, self._host.set(easy))
        finally:
            self._host.restore(kept)

    def end(self) -> None:
        """Restore all levels. Raises Incomplete if one cannot be restored."""
        self._leave()

    def _leave(self) -> None:
        self._batch = None
        self._host.restore()

    def _held(self, treatment: Treatment, levels: Mapping[str, Level], host: Confirmed) -> Held:
        environment: dict[str, str] = {}
        facts: dict[str, str] = {}
        applied = host.applied or self._confirmed.applied
        cpus = applied.isolated if applied else None
        aslr = False if applied and applied.fixed else None  # as in `quiet run`
        partition = cpus is not None
        for factor, level in levels.items():
            environment |= level.environment
            if level.environment:
                facts[factor] = " ".join(f"{name}={value}" for name, value in level.environment.items())
            if level.cpus:
                cpus, partition = parse_cpus(level.cpus), False
                facts[factor] = f"CPU {level.cpus}"
            if level.aslr is not None:
                aslr = level.aslr
                facts[factor] = f"addresses {'random' if aslr else 'fixed'}"
        stored: StoredFacts = {"confirmed": facts | host.texts} if facts or host.texts else {}
        if built := self._builds.of(treatment):
            environment[VARIABLE] = str(built.folder)
            stored["build"] = built.digest
        return Held(environment, cpus, aslr, partition, stored)

    def _value(self, each: Controlled) -> str:
        """The current value of a controlled variable, as text; "", after a message, if its command fails."""
        if not each.command:
            return each.value
        try:
            done = run_checked(each.command, self._screen.folder, self._environment, self._screen.reset.timeout_s)
        except CommandError as error:
            self._tell(f"controlled variable {each.name}: {error}")
            return ""
        return done.output.decode(errors="replace").strip()[:1000]

"""What an experiment will run, and what that can test: an object, and sentences, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from cbench.screen.config import treatments
from cbench.screen.config.model import PLACKETT_BURMAN, Abridgment, PlannedBatch, Screen, ScreenTest, Treatment
from cbench.screen.config.treatments import UNSAMPLED
from cbench.screen.design import batches, testability
from cbench.screen.design.factorial import Factor
from cbench.screen.design.testability import ALIASED, TOGETHER, Assessment
from cbench.study.resets.reboot import RebootReset
from quiet import UsageError

SHOWN = 50


@dataclass(frozen=True, slots=True)
class PlannedFactor:
    levels: tuple[str, ...]
    hard: bool


@dataclass(frozen=True, slots=True)
class PlannedEffect:
    """Whether an effect can be tested; see Judged."""

    name: str
    testable: bool
    why: str
    aliases: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class PlannedResponse:
    unit: str
    workloads: tuple[str, ...]
    effects: tuple[PlannedEffect, ...]


@dataclass(frozen=True, slots=True)
class StoredTreatment:
    """`unobtainable`: responses that cannot be had of it, each with the reason."""

    numbers: tuple[int, ...]
    levels: Mapping[str, str]
    questionable: str | None
    unobtainable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlannedTreatment(StoredTreatment):
    name: str


@dataclass(frozen=True, slots=True)
class PlannedAbridgment:
    name: str
    treatments: int
    balanced: bool
    orthogonal: bool
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScreenPlan:
    """What `cbench screen plan --json` prints. `left_s`: how long it takes, None where that is not known."""

    name: str
    design: str
    factors: Mapping[str, PlannedFactor]
    responses: Mapping[str, PlannedResponse]
    workloads: tuple[str, ...]
    treatments: tuple[PlannedTreatment, ...]
    batches: tuple[Mapping[str, str], ...]
    reset: str
    iterations: int
    trials: int
    left_s: float | None
    effects: tuple[PlannedEffect, ...]
    balanced: bool
    orthogonal: bool
    words: tuple[str, ...]
    abridgments: tuple[PlannedAbridgment, ...]


@dataclass(frozen=True, slots=True)
class StoredTest:
    treatment: int
    workload: str


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """What a store keeps of a plan, in the header's host facts under "screen"."""

    treatments: tuple[StoredTreatment, ...]
    tests: tuple[StoredTest, ...]
    batches: tuple[Mapping[str, str], ...]


class Planned:
    """Treatments, tests and batches of an experiment. Raises UsageError where there are none."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.treatments: tuple[Treatment, ...] = treatments.treatments(screen)
        self.tests: tuple[ScreenTest, ...] = treatments.tests(screen, self.treatments)
        self._batches = treatments.batches(screen, self.treatments)
        self.batches: tuple[PlannedBatch, ...] = tuple(treatments.batch_of(screen, each) for each in self._batches)

    @property
    def trials(self) -> int:
        """Of the whole experiment."""
        each = sum(len(batch.treatments) for batch in self._batches)
        return each * len(self.screen.workloads) * self.screen.iterations

    def stored(self) -> StoredPlan:
        """What a store keeps of it."""
        return StoredPlan(
            treatments=tuple(
                StoredTreatment(each.numbers, each.levels, each.questionable, each.unobtainable)
                for each in self.treatments
            ),
            tests=tuple(StoredTest(each.treatment, each.workload) for each in self.tests),
            batches=tuple(each.levels for each in self.batches),
        )

    def judged(self) -> Assessment:
        """What all treatments together can test."""
        return self._foreseen.whole

    @cached_property
    def _foreseen(self) -> Foreseen:
        factors, numbers = treatments.factors(self.screen), [each.numbers for each in self.treatments]
        plots = Counter(batch.levels for batch in self._batches)
        return Foreseen(self.screen, factors, self.treatments, plots, testability.assess(factors, numbers, plots))

    def check(self, judged: Assessment) -> None:
        """Raises UsageError for an experiment that can test nothing, or a response that can."""
        if not any(each.ok for each in judged.effects):
            why = judged.effects[0].words if judged.effects else "there are no effects"
            raise UsageError(f"{self.screen.name}: this design can test nothing: {why}")
        self._foreseen.check()

    def result(self, judged: Assessment, seconds: Mapping[int, float] | None = None) -> ScreenPlan:
        """`seconds`: of a trial, by test, where they are known from one run."""
        screen = self.screen
        return ScreenPlan(
            name=screen.name,
            design=screen.design,
            factors={factor.name: PlannedFactor(factor.names, factor.hard) for factor in screen.factors},
            responses={
                each.name: PlannedResponse(each.metric.unit, each.workloads, self._foreseen.effects(each.name))
                for each in screen.responses
            },
            workloads=tuple(each.name for each in screen.workloads),
            treatments=tuple(
                PlannedTreatment(each.numbers, each.levels, each.questionable, each.unobtainable, each.name)
                for each in self.treatments
            ),
            batches=tuple(each.levels for each in self.batches),
            reset=screen.reset.kind,
            iterations=screen.iterations,
            trials=self.trials,
            left_s=self._left_s(seconds),
            effects=planned_effects(judged),
            balanced=judged.balanced,
            orthogonal=judged.orthogonal,
            words=self.words(judged),
            abridgments=tuple(self._abridged(each) for each in screen.abridgments),
        )

    def words(self, judged: Assessment) -> tuple[str, ...]:
        """Everything that is worth a sentence before it runs."""
        return (*self._of_design(judged), *self._boots(), *self._foreseen.words())

    def _of_design(self, judged: Assessment) -> tuple[str, ...]:
        chosen = treatments.fraction(self.screen)
        if chosen is None:
            return judged.words
        words = tuple(chosen.words())
        return (*words, *_interactions(judged)) if self.screen.design == PLACKETT_BURMAN else words

    def _boots(self) -> list[str]:
        """How well the batches of one hard factor are mixed, where each level has several."""
        hard = self.screen.hard
        if len(hard) != 1 or self.screen.batches < 2:
            return []
        sequence = [each.levels[0] for each in self._batches]
        what = "boots" if self.screen.reset.kind == RebootReset.kind else "batches"
        return [f"{hard[0].name}: {batches.sequence_words(sequence, hard[0].names, what)}"]

    def _left_s(self, seconds: Mapping[int, float] | None) -> float | None:
        """By what was measured of each test, without resets; None where one of them is not known."""
        if not seconds or any(each.number not in seconds for each in self.tests):
            return None
        width = len(self.screen.workloads)
        each_batch = [
            sum(seconds[number * width + place] for number in batch.treatments for place in range(width))
            for batch in self._batches
        ]
        return sum(each_batch) * self.screen.iterations

    def _abridged(self, one: Abridgment) -> PlannedAbridgment:
        kept = [each.numbers for each in self.treatments if one.keeps(each.levels)]
        judged = testability.assess(treatments.factors(self.screen), kept)
        return PlannedAbridgment(one.name, len(kept), judged.balanced, judged.orthogonal, judged.words)


def lines(made: ScreenPlan, most: int = SHOWN) -> list[str]:
    """The same for people."""
    found = [_first(made), *made.words]
    for each in made.treatments[:most]:
        notes = [f"questionable: {each.questionable}"] if each.questionable else []
        notes += [f"no {response}: {reason}" for response, reason in each.unobtainable.items()]
        found.append(f"  {each.name}{'; ' if notes else ''}{'; '.join(notes)}")
    if (more := len(made.treatments) - most) > 0:
        found.append(f"  and {more:,} more")
    if len(made.batches) > 1:
        names = [" ".join(f"{factor}={level}" for factor, level in each.items()) for each in made.batches]
        listed = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
        found.append(f"batches: {listed}" if any(names) else f"batches: {len(names)}")
    for one in made.abridgments:
        balance = "balanced" if one.balanced else "not balanced"
        found.append(f"abridgment {one.name}: {one.treatments} treatments, {balance}")
        found += [f"  {words}" for words in one.words]
    if made.left_s is not None:
        found.append(f"will take about {timedelta(seconds=round(made.left_s))}, by the trials of an earlier run")
    return found


def _interactions(judged: Assessment) -> list[str]:
    """How many of the two-factor interactions can be tested, where not all of them can."""
    every = [each for each in judged.effects if len(each.factors) > 1]
    can = sum(each.ok for each in every)
    if can == len(every):
        return []
    return [f"{can} of {len(every)} interactions can be tested" if can else "no interaction can be tested"]


def _first(made: ScreenPlan) -> str:
    batches, before = len(made.batches), made.reset
    parts = [f"{len(made.treatments):,} treatments"]
    if len(made.workloads) > 1:
        parts.append(f"{len(made.workloads)} workloads")
    parts.append(f"{made.iterations:,} iterations")
    if batches > 1:
        parts.append(
            f"{batches} batches, each after a {before}" if before == RebootReset.kind else f"{batches} batches"
        )
    return f"{made.name}: {' x '.join(parts)}: {made.trials:,} trials"


Plots = Mapping[tuple[int, ...], int]
"""Batches of each combination of the hard factors' levels."""


class Foreseen:
    """The assessments of one plan: of all its treatments, and by response of those that it can be had of."""

    def __init__(
        self,
        screen: Screen,
        factors: Sequence[Factor],
        treatments: Sequence[Treatment],
        plots: Plots,
        whole: Assessment,
    ) -> None:
        self._screen, self._plots = screen, plots
        self._hard = [number for number, factor in enumerate(screen.factors) if factor.hard]
        self._treatments = treatments
        known: dict[frozenset[int], Assessment] = {frozenset(each.number for each in treatments): whole}
        self.whole = whole
        self.of: dict[str, Assessment] = {}
        for response in screen.responses:
            mine = [each for each in treatments if response.name not in each.unobtainable]
            key = frozenset(each.number for each in mine)
            if key not in known and mine:
                known[key] = testability.assess(factors, [each.numbers for each in mine], plots)
            if key in known:
                self.of[response.name] = known[key]

    def check(self) -> None:
        """Raises UsageError for a response that can test nothing, unless that is for want of a profiler."""
        for response in self._screen.responses:
            judged, place = self.of.get(response.name), f"{self._screen.name}: the response {response.name}"
            if judged is None:
                raise UsageError(f"{place} cannot be had of any treatment")
            said = {each.unobtainable.get(response.name) for each in self._treatments} - {None}
            if said != {UNSAMPLED} and not any(each.ok for each in judged.effects):
                raise UsageError(f"{place} can test nothing: {judged.effects[0].words}")

    def words(self) -> list[str]:
        """What is so of some responses only, and whether there are enough iterations."""
        found = []
        for name, judged in self.of.items():
            if judged is not self.whole:
                found.append(f"{name} is had of {judged.treatments:,} of {self.whole.treatments:,} treatments")
                found += [f"{name}: {each}" for each in _sentences(judged) if each not in self.whole.words]
        return found + self._too_few()

    def effects(self, name: str) -> tuple[PlannedEffect, ...]:
        """Of a response."""
        return planned_effects(self.of[name])

    def _too_few(self) -> list[str]:
        screen = self._screen
        tests, blocks = 0, []
        for workload in screen.workloads:
            for response in screen.responses:
                if workload.name not in response.workloads:
                    continue
                able = [each for each in self.of[response.name].effects if each.ok]
                tests += len(able)
                if any(not set(each.factors) & set(self._hard) for each in able):
                    name = f"{workload.name}:{response.name}" if len(screen.workloads) > 1 else response.name
                    blocks.append((self._batches(response.name) * screen.iterations, name))
        return testability.too_few_words(tests, screen.alpha, blocks)

    def _batches(self, response: str) -> int:
        """Those in which a response can be had."""
        mine = [each for each in self._treatments if response not in each.unobtainable]
        there = {tuple(each.numbers[at] for at in self._hard) for each in mine}
        return sum(count for levels, count in self._plots.items() if levels in there)


def _sentences(judged: Assessment) -> list[str]:
    """Everything about some of the treatments, with each main effect that cannot be told from others."""
    told = [names.split(", ") for each in judged.words for names, found, _ in [each.partition(TOGETHER)] if found]
    mains = [each for each in judged.effects if each.why == ALIASED and len(each.factors) == 1]
    return [*(each.words for each in mains if not any(each.name in names for names in told)), *judged.words]


def planned_effects(judged: Assessment) -> tuple[PlannedEffect, ...]:
    return tuple(PlannedEffect(each.name, each.ok, each.why, each.aliases, each.words) for each in judged.effects)

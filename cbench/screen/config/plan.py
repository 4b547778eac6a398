"""Plan an experiment before anything runs: its trials, and the effects that they can test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from cbench.screen.config import treatments
from cbench.screen.config.model import PLACKETT_BURMAN, Abridgment, Screen, ScreenTest, Treatment
from cbench.screen.config.treatments import UNSAMPLED
from cbench.screen.design import batches, testability
from cbench.screen.design.detectable import DetectableEffect, detectable, detectable_words, too_few_words
from cbench.screen.design.testability import ALIASED, TOGETHER, Assessment
from cbench.study.records import StoredFacts
from cbench.study.resets.reboot import RebootReset
from quiet import UsageError

SHOWN = 50


@dataclass(frozen=True, slots=True)
class PlannedFactor:
    levels: tuple[str, ...]
    hard: bool


@dataclass(frozen=True, slots=True)
class PlannedEffect:
    """Whether an effect can be tested; the fields are those of testability.Judged (`testable`: its `ok`)."""

    name: str
    testable: bool
    why: str
    aliases: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class PlannedResponse:
    """A response in the plan. `detectable`: None if effects are tested against the variation between batches, which is
    unknown beforehand.
    """

    unit: str
    workloads: tuple[str, ...]
    effects: tuple[PlannedEffect, ...]
    detectable: DetectableEffect | None = None


@dataclass(frozen=True, slots=True)
class PlannedTreatment:
    """A treatment in the plan. `questionable`: the reason, "" if it is not questionable; `unobtainable`: the responses
    that it cannot measure, each with the reason.
    """

    numbers: tuple[int, ...]
    levels: Mapping[str, str]
    questionable: str | None
    unobtainable: Mapping[str, str]
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
    """The JSON object of `cbench screen plan --json`. `left_s`: the expected duration in seconds, None if unknown."""

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


class Planned:
    """Treatments, tests and batches of an experiment, and the effects that they can test: overall, and for each
    response with the treatments that measure it. Raises UsageError if the design does not exist, if no treatments
    remain, or if the sequence of batches is invalid.
    """

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.treatments: tuple[Treatment, ...] = treatments.treatments(screen)
        self.tests: tuple[ScreenTest, ...] = treatments.tests(screen, self.treatments)
        self._batches = treatments.batches(screen, self.treatments)
        self._batch_levels = tuple(treatments.levels_of(screen, each) for each in self._batches)
        self._hard = [number for number, factor in enumerate(screen.factors) if factor.hard]

    @property
    def trials(self) -> int:
        """The number of trials in the whole experiment."""
        each = sum(len(batch.treatments) for batch in self._batches)
        return each * len(self.screen.workloads) * self.screen.iterations

    def stored(self) -> StoredFacts:
        """The plan as facts for the store, which keeps them in the header's host facts under "screen".
        load_store.plan_of() reads them.
        """
        return {
            "treatments": [
                {
                    "numbers": [*each.numbers],
                    "levels": {**each.levels},
                    "questionable": each.questionable,
                    "unobtainable": {**each.unobtainable},
                }
                for each in self.treatments
            ],
            "tests": [{"treatment": each.treatment, "workload": each.workload} for each in self.tests],
            "batches": [{**levels} for levels in self._batch_levels],
        }

    @cached_property
    def _plots(self) -> Counter[tuple[int, ...]]:
        """The number of batches of each combination of the hard factors' levels."""
        return Counter(batch.levels for batch in self._batches)

    @cached_property
    def _whole(self) -> Assessment:
        numbers = [each.numbers for each in self.treatments]
        return testability.assess(treatments.factors(self.screen), numbers, self._plots)

    @cached_property
    def _by_response(self) -> dict[str, Assessment]:
        known = {tuple(each.numbers for each in self.treatments): self._whole}
        assessed = {}
        for response in self.screen.responses:
            mine = self._of(response.name)
            if mine not in known and mine:
                known[mine] = testability.assess(treatments.factors(self.screen), mine, self._plots)
            if mine:
                assessed[response.name] = known[mine]
        return assessed

    def _of(self, response: str) -> tuple[tuple[int, ...], ...]:
        """The treatments (as level numbers) that measure a response."""
        return tuple(each.numbers for each in self.treatments if response not in each.unobtainable)

    def check(self) -> None:
        """Raise UsageError if the experiment cannot test any effect, if no treatment measures a response, or if no
        effect on a response can be tested. The last check is omitted for a response that treatments lack only because
        no profiler runs.
        """
        name = self.screen.name
        if not any(each.ok for each in self._whole.effects):
            why = self._whole.effects[0].words if self._whole.effects else "there are no effects"
            raise UsageError(f"{name}: this design cannot test any effect: {why}")
        for response in self.screen.responses:
            judged = self._by_response.get(response.name)
            if judged is None:
                raise UsageError(f"{name}: the response {response.name} is not available for any treatment")
            reasons = {each.unobtainable.get(response.name) for each in self.treatments} - {None}
            if reasons != {UNSAMPLED} and not any(each.ok for each in judged.effects):
                raise UsageError(f"{name}: no effect on {response.name} can be tested: {judged.effects[0].words}")

    def result(
        self, seconds: Mapping[int, float] | None = None, spreads: Mapping[str, float] | None = None
    ) -> ScreenPlan:
        """The plan as a result. From an earlier run, if known: `seconds`, the duration of a trial by test; `spreads`,
        the standard deviation of one treatment's values by response.
        """
        screen, spreads = self.screen, spreads or {}
        found = {each.name: self._detectable(each.name, spreads.get(each.name)) for each in screen.responses}
        words = [detectable_words(name, each, spreads_unit(screen, name)) for name, each in found.items() if each]
        return ScreenPlan(
            name=screen.name,
            design=screen.design,
            factors={factor.name: PlannedFactor(factor.names, factor.hard) for factor in screen.factors},
            responses={
                each.name: PlannedResponse(
                    each.metric.unit,
                    each.workloads,
                    _planned_effects(self._by_response[each.name]),
                    found[each.name],
                )
                for each in screen.responses
            },
            workloads=tuple(each.name for each in screen.workloads),
            treatments=tuple(
                PlannedTreatment(each.numbers, each.levels, each.questionable, each.unobtainable, each.name)
                for each in self.treatments
            ),
            batches=self._batch_levels,
            reset=screen.reset.kind,
            iterations=screen.iterations,
            trials=self.trials,
            left_s=self._left_s(seconds),
            effects=_planned_effects(self._whole),
            balanced=self._whole.balanced,
            orthogonal=self._whole.orthogonal,
            words=(*self.words(), *words),
            abridgments=tuple(self._abridged(each) for each in screen.abridgments),
        )

    def words(self) -> tuple[str, ...]:
        """All remarks on the plan before the experiment runs."""
        return (*self._of_design(), *self._boots(), *self._of_responses(), *self._too_few())

    def _of_design(self) -> tuple[str, ...]:
        chosen = treatments.fraction(self.screen)
        if chosen is None:
            return self._whole.words
        words = tuple(chosen.words())
        return (*words, *_interactions(self._whole)) if self.screen.design == PLACKETT_BURMAN else words

    def _boots(self) -> list[str]:
        """A sentence on the order of the batches of a single hard factor, if each level has several batches."""
        hard = self.screen.hard
        if len(hard) != 1 or self.screen.batches < 2:
            return []
        sequence = [each.levels[0] for each in self._batches]
        what = "boots" if self.screen.reset.kind == RebootReset.kind else "batches"
        return [f"{hard[0].name}: {batches.sequence_words(sequence, hard[0].names, what)}"]

    def _of_responses(self) -> list[str]:
        """Remarks on individual responses."""
        words = []
        for name, judged in self._by_response.items():
            if judged is not self._whole:
                words.append(f"{name} is available for {judged.treatments:,} of {self._whole.treatments:,} treatments")
                words += [f"{name}: {each}" for each in _sentences(judged) if each not in self._whole.words]
        return words

    def _too_few(self) -> list[str]:
        """Sentences about responses with too few iterations for signed ranks, if any."""
        screen = self.screen
        tests, blocks = 0, []
        for workload in screen.workloads:
            for response in screen.responses:
                if workload.name not in response.workloads:
                    continue
                able = [each for each in self._by_response[response.name].effects if each.ok]
                tests += len(able)
                if any(not set(each.factors) & set(self._hard) for each in able):
                    name = f"{workload.name}:{response.name}" if len(screen.workloads) > 1 else response.name
                    there = {tuple(each[at] for at in self._hard) for each in self._of(response.name)}
                    iterations = sum(self._plots[levels] for levels in there) * screen.iterations
                    blocks.append((len(self._of(response.name)) // len(there), iterations, name))
        return too_few_words(tests, screen.alpha, blocks)

    def _tests(self) -> int:
        """The number of effects, over all responses, that share alpha."""
        able = {name: sum(each.ok for each in judged.effects) for name, judged in self._by_response.items()}
        return sum(able[each.name] * len(each.workloads) for each in self.screen.responses if each.name in able)

    def _detectable(self, response: str, spread: float | None) -> DetectableEffect | None:
        if self._hard or self.screen.batches > 1 or response not in self._by_response:
            return None
        many = len(self._of(response))
        return detectable(many, self.screen.iterations, max(1, self._tests()), self.screen.alpha, spread)

    def _left_s(self, seconds: Mapping[int, float] | None) -> float | None:
        """The expected duration in seconds, from the measured times of each test, without resets; None if a time is
        unknown.
        """
        if not seconds or any(each.number not in seconds for each in self.tests):
            return None
        width = len(self.screen.workloads)
        each_batch = [
            sum(seconds[number * width + place] for number in batch.treatments for place in range(width))
            for batch in self._batches
        ]
        return sum(each_batch) * self.screen.iterations

    def _abridged(self, abridgment: Abridgment) -> PlannedAbridgment:
        kept = [each.numbers for each in self.treatments if abridgment.keeps(each.levels)]
        judged = testability.assess(treatments.factors(self.screen), kept)
        return PlannedAbridgment(abridgment.name, len(kept), judged.balanced, judged.orthogonal, judged.words)


def spreads_unit(screen: Screen, response: str) -> str:
    """The unit of a response, "" if only the response's instrument determines it."""
    return next(each.metric.unit for each in screen.responses if each.name == response)


def lines(plan: ScreenPlan, most: int = SHOWN) -> list[str]:
    """The plan as text. `most`: the maximum number of treatments and of batches to list."""
    shown = [_first(plan), *plan.words]
    for each in plan.treatments[:most]:
        notes = [f"questionable: {each.questionable}"] if each.questionable else []
        notes += [f"no {response}: {reason}" for response, reason in each.unobtainable.items()]
        shown.append(f"  {each.name}{'; ' if notes else ''}{'; '.join(notes)}")
    if (more := len(plan.treatments) - most) > 0:
        shown.append(f"  and {more:,} more")
    if len(plan.batches) > 1:
        names = [" ".join(f"{factor}={level}" for factor, level in each.items()) for each in plan.batches]
        listed = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
        shown.append(f"batches: {listed}" if any(names) else f"batches: {len(names)}")
    for abridgment in plan.abridgments:
        balance = "balanced" if abridgment.balanced else "not balanced"
        shown.append(f"abridgment {abridgment.name}: {abridgment.treatments} treatments, {balance}")
        shown += [f"  {words}" for words in abridgment.words]
    if plan.left_s is not None:
        shown.append(
            f"duration: about {timedelta(seconds=round(plan.left_s))}, estimated from the trials of an earlier run"
        )
    return shown


def _interactions(judged: Assessment) -> list[str]:
    """A sentence on the number of two-factor interactions that can be tested, if not all of them can."""
    every = [each for each in judged.effects if len(each.factors) > 1]
    can = sum(each.ok for each in every)
    if can == len(every):
        return []
    return [f"{can} of {len(every)} interactions can be tested" if can else "no interaction can be tested"]


def _first(plan: ScreenPlan) -> str:
    batches, before = len(plan.batches), plan.reset
    parts = [f"{len(plan.treatments):,} treatments"]
    if len(plan.workloads) > 1:
        parts.append(f"{len(plan.workloads)} workloads")
    parts.append(f"{plan.iterations:,} iterations")
    if batches > 1:
        parts.append(
            f"{batches} batches, each after a {before}" if before == RebootReset.kind else f"{batches} batches"
        )
    return f"{plan.name}: {' x '.join(parts)}: {plan.trials:,} trials"


def _sentences(judged: Assessment) -> list[str]:
    """The sentences of an assessment, preceded by sentences on aliased main effects that no other sentence names."""
    aliased = [
        names.split(", ") for each in judged.words for names, together, _ in [each.partition(TOGETHER)] if together
    ]
    mains = [each for each in judged.effects if each.why == ALIASED and len(each.factors) == 1]
    return [*(each.words for each in mains if not any(each.name in names for names in aliased)), *judged.words]


def _planned_effects(judged: Assessment) -> tuple[PlannedEffect, ...]:
    return tuple(PlannedEffect(each.name, each.ok, each.why, each.aliases, each.words) for each in judged.effects)

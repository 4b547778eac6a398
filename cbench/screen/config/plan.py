"""What an experiment will run, and what that can test: an object, and sentences, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any

from cbench.screen.config import treatments
from cbench.screen.config.model import PLACKETT_BURMAN, PlannedBatch, Screen, ScreenTest, Treatment
from cbench.screen.config.treatments import UNSAMPLED
from cbench.screen.design import batches, testability
from cbench.screen.design.factorial import Factor
from cbench.screen.design.testability import ALIASED, TOGETHER, Assessment
from cbench.study.model import REBOOT
from quiet.errors import UsageError

SHOWN = 50


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

    def stored(self) -> dict[str, Any]:
        """What a store keeps of it, in the header's host facts."""
        return {
            "treatments": [
                {
                    "numbers": list(each.numbers),
                    "levels": dict(each.levels),
                    "questionable": each.questionable,
                    "unobtainable": dict(each.unobtainable),
                }
                for each in self.treatments
            ],
            "tests": [{"treatment": each.treatment, "workload": each.workload} for each in self.tests],
            "batches": [dict(each.levels) for each in self.batches],
        }

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

    def shape(self, judged: Assessment, seconds: Mapping[int, float] | None = None) -> dict[str, Any]:
        """For `--json`. `seconds`: of a trial, by test, where they are known from one run."""
        screen = self.screen
        return {
            "name": screen.name,
            "design": screen.design,
            "factors": {factor.name: {"levels": list(factor.names), "hard": factor.hard} for factor in screen.factors},
            "responses": {
                each.name: {
                    "unit": each.metric.unit,
                    "workloads": list(each.workloads),
                    "effects": self._foreseen.effects(each.name),
                }
                for each in screen.responses
            },
            "workloads": [each.name for each in screen.workloads],
            "treatments": [{"name": each.name, **shape} for each, shape in self._treatments()],
            "batches": [dict(each.levels) for each in self.batches],
            "reset": screen.reset.kind,
            "iterations": screen.iterations,
            "trials": self.trials,
            "left_s": self._left_s(seconds),
            "effects": shown(judged),
            "balanced": judged.balanced,
            "orthogonal": judged.orthogonal,
            "words": list(self.words(judged)),
            "abridgments": [self._abridged(each.name) for each in screen.abridgments],
        }

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
        what = "boots" if self.screen.reset.kind == REBOOT else "batches"
        return [f"{hard[0].name}: {batches.sequence_words(sequence, hard[0].names, what)}"]

    def _treatments(self) -> list[tuple[Treatment, dict[str, Any]]]:
        stored: Sequence[dict[str, Any]] = self.stored()["treatments"]
        return list(zip(self.treatments, stored, strict=True))

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

    def _abridged(self, name: str) -> dict[str, Any]:
        one = next(each for each in self.screen.abridgments if each.name == name)
        kept = [each for each in self.treatments if one.keeps(each.levels)]
        judged = testability.assess(treatments.factors(self.screen), [each.numbers for each in kept])
        return {
            "name": name,
            "treatments": len(kept),
            "balanced": judged.balanced,
            "orthogonal": judged.orthogonal,
            "words": list(judged.words),
        }


def lines(made: Mapping[str, Any], most: int = SHOWN) -> list[str]:
    """The same for people."""
    found = [_first(made), *made["words"]]
    for each in made["treatments"][:most]:
        notes = [f"questionable: {each['questionable']}"] if each["questionable"] else []
        notes += [f"no {response}: {reason}" for response, reason in each["unobtainable"].items()]
        found.append(f"  {each['name']}{'; ' if notes else ''}{'; '.join(notes)}")
    if (more := len(made["treatments"]) - most) > 0:
        found.append(f"  and {more:,} more")
    if len(made["batches"]) > 1:
        names = [" ".join(f"{factor}={level}" for factor, level in each.items()) for each in made["batches"]]
        listed = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
        found.append(f"batches: {listed}" if any(names) else f"batches: {len(names)}")
    for each in made["abridgments"]:
        balance = "balanced" if each["balanced"] else "not balanced"
        found.append(f"abridgment {each['name']}: {each['treatments']} treatments, {balance}")
        found += [f"  {words}" for words in each["words"]]
    if made["left_s"] is not None:
        found.append(f"will take about {timedelta(seconds=round(made['left_s']))}, by the trials of an earlier run")
    return found


def _interactions(judged: Assessment) -> list[str]:
    """How many of the two-factor interactions can be tested, where not all of them can."""
    every = [each for each in judged.effects if len(each.factors) > 1]
    can = sum(each.ok for each in every)
    if can == len(every):
        return []
    return [f"{can} of {len(every)} interactions can be tested" if can else "no interaction can be tested"]


def _first(made: Mapping[str, Any]) -> str:
    batches, before = len(made["batches"]), made["reset"]
    parts = [f"{len(made['treatments']):,} treatments"]
    if len(made["workloads"]) > 1:
        parts.append(f"{len(made['workloads'])} workloads")
    parts.append(f"{made['iterations']:,} iterations")
    if batches > 1:
        parts.append(f"{batches} batches, each after a {before}" if before == REBOOT else f"{batches} batches")
    return f"{made['name']}: {' x '.join(parts)}: {made['trials']:,} trials"


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

    def effects(self, name: str) -> list[dict[str, Any]]:
        """Of a response, for `--json`."""
        return shown(self.of[name])

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


def shown(judged: Assessment) -> list[dict[str, Any]]:
    """The effects of an assessment as plain objects."""
    return [
        {"name": each.name, "testable": each.ok, "why": each.why, "aliases": list(each.aliases), "words": each.words}
        for each in judged.effects
    ]

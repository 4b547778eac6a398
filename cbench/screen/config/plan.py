"""What an experiment will run, and what that can test: an object, and sentences, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any

from cbench.screen.config import treatments
from cbench.screen.config.foreseen import Foreseen, shown
from cbench.screen.config.model import PLACKETT_BURMAN, PlannedBatch, Screen, ScreenTest, Treatment
from cbench.screen.design import boots, testable
from cbench.study.resets.reboot import RebootReset
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

    def judged(self) -> testable.Assessment:
        """What all treatments together can test."""
        return self._foreseen.whole

    @cached_property
    def _foreseen(self) -> Foreseen:
        factors, numbers = treatments.factors(self.screen), [each.numbers for each in self.treatments]
        plots = Counter(batch.levels for batch in self._batches)
        return Foreseen(self.screen, factors, self.treatments, plots, testable.assess(factors, numbers, plots))

    def check(self, judged: testable.Assessment) -> None:
        """Raises UsageError for an experiment that can test nothing, or a response that can."""
        if not any(each.ok for each in judged.effects):
            why = judged.effects[0].words if judged.effects else "there are no effects"
            raise UsageError(f"{self.screen.name}: this design can test nothing: {why}")
        self._foreseen.check()

    def shape(self, judged: testable.Assessment, seconds: Mapping[int, float] | None = None) -> dict[str, Any]:
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

    def words(self, judged: testable.Assessment) -> tuple[str, ...]:
        """Everything that is worth a sentence before it runs."""
        return (*self._of_design(judged), *self._boots(), *self._foreseen.words())

    def _of_design(self, judged: testable.Assessment) -> tuple[str, ...]:
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
        return [f"{hard[0].name}: {boots.words(sequence, hard[0].names, what)}"]

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
        judged = testable.assess(treatments.factors(self.screen), [each.numbers for each in kept])
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


def _interactions(judged: testable.Assessment) -> list[str]:
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
        parts.append(
            f"{batches} batches, each after a {before}" if before == RebootReset.kind else f"{batches} batches"
        )
    return f"{made['name']}: {' x '.join(parts)}: {made['trials']:,} trials"

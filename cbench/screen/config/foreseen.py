"""What a plan can test of each response: they need not all be had of every treatment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cbench.screen.analysis import sample_size
from cbench.screen.config.model import Screen, Treatment
from cbench.screen.config.treatments import UNSAMPLED
from cbench.screen.design import testable
from cbench.screen.design.factorial import Factor
from cbench.screen.design.judged import ALIASED
from cbench.screen.design.testable import Assessment
from cbench.screen.design.testable_words import TOGETHER
from quiet.errors import UsageError

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
                known[key] = testable.assess(factors, [each.numbers for each in mine], plots)
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
        return sample_size.words(tests, screen.alpha, blocks)

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

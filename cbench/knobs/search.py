"""Search for the knobs that matter, and for the smallest profile that is as quiet as the full one. No I/O.

The search begins with the full profile and leaves out knobs. If the host stays quiet without a group, the group is
dropped permanently; otherwise the group is halved until one knob remains. This finds exactly the knobs that the
smallest profile needs: of two knobs that remove the same cause, the first can be dropped without effect, and the second
then matters.

On an otherwise quiet host, each cause is measured separately: the noise of a large cause does not hide a small cause,
and responses that do not add up (the longest gap) can also be screened. See docs/screen-knobs.md.

The search is a generator: it yields an application and receives its value. The search is deterministic, so a screening
resumes by sending the stored values.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from math import sqrt
from statistics import fmean, median

from cbench.knobs.design import (
    AGAIN,
    CONFLICTS,
    FULL,
    GROUP,
    NAMED,
    NONE,
    SEARCH,
    SINGLE,
    VERIFY,
    WRITTEN,
    Application,
    KnobFinding,
    LeftOut,
    NamedKnob,
    Needs,
    ProfileDifference,
    ScreenedKnob,
    SearchOptions,
    group_of,
    share_that_matters,
)
from cbench.knobs.judge import ALIKE, LOUDER, QuietLevel, center_of
from cbench.stats.distributions import t_quantile
from cbench.stats.random_draws import Stream

CONTROLS, MOST_CONTROLS, FINE = 3, 5, 50
"""Applications of the full profile before the search: CONTROLS, and up to MOST_CONTROLS while the smallest detectable
difference exceeds 1/FINE of the noise that the profile removes.
"""
PAIRS, MOST_PAIRS = 1, 12
"""The minimum and maximum number of pairs that compare the smallest profile with the full one. After the minimum, the
comparison ends when the interval lies entirely below or entirely above the permitted difference.
"""
AGREE = 0.25
"""Two measurements of a knob agree if they differ by at most this share of the knob's effect."""
HINT_LOW, HINT_HIGH = 0.25, 0.5
"""Shares of the first half's effect: the second half seems inert if its estimated effect is below HINT_LOW, and seems
to matter above HINT_HIGH.
"""
ADDS_UP = 0.7
"""Effects count as additive if the joint effect of all knobs that matter is at least ADDS_UP times the sum of their
effects, minus QuietLevel.matters. For responses that do not add up, the largest effect replaces the sum.
"""

Steps = Generator[Application, float, None]


class _Concluded(Exception):
    """Raised inside the search to end it, because the remaining applications are reserved for the verification."""


@dataclass(slots=True)
class Search:
    """A search in progress. `next`: the next application, None at the end; add() takes its value. `values`: the
    responses so far, by the set of knobs that were left out.
    """

    knobs: Sequence[ScreenedKnob]
    options: SearchOptions
    level: QuietLevel = field(init=False)
    needs: Needs = field(init=False)
    values: dict[LeftOut, list[float]] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    matter: dict[str, int] = field(default_factory=dict)
    needed: dict[str, str] = field(default_factory=dict)
    pool: list[str] = field(default_factory=list)
    replaceable: list[str] = field(default_factory=list)
    not_replaceable: list[str] = field(default_factory=list)
    together: tuple[float, float] | None = None
    smallest: float = 0.0
    pairs: list[tuple[float, float]] = field(default_factory=list)
    named: list[NamedKnob] = field(default_factory=list)
    next: Application | None = None
    _explained: int = 0
    _unlikely: set[str] = field(default_factory=set)
    _suspects: list[list[str]] = field(default_factory=list)
    _steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.needs = Needs(self.knobs)
        self.level = QuietLevel(self.options.within, self.options.alpha, len(self.knobs))
        self.pool = self.needs.ordered([knob.name for knob in self.knobs], self.options.seed)
        self._steps = self._all()
        self.next = next(self._steps)

    def add(self, value: float, suspects: Iterable[str] = ()) -> None:
        """Add the value of the application that was `next`; `suspects`: knobs to try first, individually."""
        known = set(self.pool)
        self._suspects += [[name] for name in suspects if name in known]
        try:
            self.next = self._steps.send(value)
        except StopIteration:
            self.next = None

    def conclude(self) -> None:
        """End the search: knobs that are not decided stay in the profile, which is then verified."""
        try:
            self.next = self._steps.throw(_Concluded())
        except StopIteration:
            self.next = None

    @property
    def every(self) -> LeftOut:
        """The names of all knobs: the key in `values` of the application without any knob."""
        return frozenset(knob.name for knob in self.knobs)

    @property
    def undecided(self) -> list[str]:
        """Undecided knobs, which stay in the profile."""
        known = self.dropped | set(self.matter) | set(self.needed)
        return [knob.name for knob in self.knobs if knob.name not in known]

    @property
    def kept(self) -> list[str]:
        """The knobs of the smallest profile, in the order of the knobs."""
        return [knob.name for knob in self.knobs if knob.name not in self.dropped]

    def _all(self) -> Steps:
        try:
            yield from self._search()
        except _Concluded:
            if len(self.level.values) < CONTROLS:
                return
        yield from self._verify(PAIRS)
        yield from self._conflicts()
        yield from self._verify(MOST_PAIRS)

    def _search(self) -> Steps:
        yield from self._measure(frozenset(), FULL)
        yield from self._measure(self.every, NONE)
        for at in range(1, MOST_CONTROLS):
            self.level.values = list(self.values[frozenset()])
            self.level.range_ = self.values[self.every][0] - self.level.center
            if at >= CONTROLS and FINE * self.level.matters <= abs(self.level.range_):
                break
            yield from self._measure(frozenset(), FULL)
        self.level.values = list(self.values[frozenset()])
        if not self.pool:
            return
        if (yield from self._decide(self.pool)) == ALIKE:
            self._drop(self.pool[:])
        while self.pool or self._suspects:
            if self._suspects:
                likely = self.needs.closed(self._suspects.pop(0))
                group, known = [name for name in self.pool if name in likely], False
            else:
                group, known = self._group(), True
                sign = yield from self._decide(group)
                if sign == ALIKE:
                    self._drop(group)
                    continue
            yield from self._narrow(group, known)
        yield from self._confirm()

    def _group(self) -> list[str]:
        """The next group of knobs to leave out. After each new finding, if the effects so far explain the response
        without any knob, this is the whole remaining pool.
        """
        effects = self.findings()
        if self.options.adds and len(effects) > self._explained and self._unexplained() < self._tolerance():
            self._explained = len(effects)
            return self.pool[:]
        share = share_that_matters(len(self.matter), len(self.knobs) - len(self.pool))
        return group_of(self.pool, self._unlikely, share, self.needs)

    def _unexplained(self) -> float:
        """The part of the response without any knob that neither the profile's level nor the effects so far explain."""
        whole = center_of(self.values[self.every]) - median(self.values[frozenset()])
        return whole - sum(each.effect for each in self.findings())

    def _tolerance(self) -> float:
        """The largest difference between a sum of effects and their joint effect that noise explains."""
        widths = [(each.high - each.low) / 2 for each in self.findings()]
        whole = self._half_width(self.values[self.every], self.level.center)
        return max(self.level.matters, sqrt(whole**2 + sum(width**2 for width in widths)))

    def _confirm(self) -> Steps:
        """Repeat the measurement of each knob that only one measurement has shown to matter, smallest effects first.

        The repetitions are part of the search, which ends early enough for the verification. Knobs that were not
        measured again stay named.
        """
        once = [each.knob for each in reversed(self.findings()) if each.sign == LOUDER and each.repeats == 1]
        for each in sorted(self.named, key=lambda each: once.index(each.knob) if each.knob in once else 0):
            if each.knob not in once or self._agrees(each):
                continue
            values = self.values[each.key]
            while len(values) < 2 or (sign := self.level.judge(values[1:])) is None:
                yield from self._measure(each.key, AGAIN)
            if sign == ALIKE:  # judge by the new values only, because the first value was the reason to name the knob
                self.named.remove(each)
                del self.matter[each.knob]
                self.dropped.add(each.knob)

    def _narrow(self, group: list[str], known: bool) -> Steps:
        """Halve a group until one knob is left, and decide whether this knob matters. `known`: whether a measurement
        has shown that a knob of the group matters.
        """
        while len(group) > 1:
            half = (len(group) + 1) // 2
            left, right = group[:half], group[half:]
            whole = self.values.get(self._without(group)) if known else None
            sign = yield from self._decide(left)
            if sign == ALIKE:
                self._drop(left)
                group = right
            else:
                self._give_back(right, whole, self.values[self._without(left)])
                group, known = left, True
        yield from self._name(group[0])

    def _give_back(self, names: list[str], whole: list[float] | None, half: list[float]) -> None:
        """Estimate the effect of the second half, `names`, by subtraction; the estimate is only a hint for the next
        measurement.
        """
        if whole is None or not self.options.adds:
            return
        effect = abs(center_of(half) - self.level.center)
        rest = abs(center_of(whole) - center_of(half))
        if rest < max(self.level.matters / 2, HINT_LOW * effect):
            self._unlikely.update(names)
        elif rest >= max(self.level.matters, HINT_HIGH * effect):
            self._suspects.append(names)

    def _name(self, name: str) -> Steps:
        """Decide by a measurement whether a single knob matters."""
        key = self._without([name])
        sign = yield from self._decide([name])
        if sign == ALIKE:
            self._drop([name])
            return
        self.named.append(NamedKnob(name, sign, key, len(self.level.segments)))
        if sign == LOUDER:
            self.matter[name] = sign
            self._forget([name])
            for other in self.needs.of(name):
                if other not in self.matter:
                    self.needed.setdefault(other, name)
                    self._forget([other])
        else:
            self.dropped.add(name)
            self._forget([name])
            self.level.begin_anew(self.values[key])

    def _agrees(self, each: NamedKnob) -> bool:
        """Whether a larger group that contains this knob had the same effect, so that two measurements agree."""
        center = self.level.center
        effect = center_of(self.values[each.key]) - center
        others = (center_of(values) - center for key, values in self.values.items() if key > each.key)
        return any(abs(other - effect) <= AGREE * abs(effect) for other in others)

    def findings(self) -> list[KnobFinding]:
        """The knobs that were shown to matter or to make the host noisier, the largest effect first, with the noise
        estimated from all applications so far.
        """
        level = self.level
        centers = [median(each) for each in (*level.segments, level.values)]
        found = []
        for each in self.named:
            values, center = self.values[each.key], centers[each.segment]
            effect, half = center_of(values) - center, self._half_width(values, center)
            p = level.p_value(effect, len(values))
            found.append(KnobFinding(each.knob, each.sign, effect, effect - half, effect + half, p, len(values)))
        return sorted(found, key=lambda finding: -abs(finding.effect))

    def _half_width(self, values: Sequence[float], center: float) -> float:
        """The half-width of an effect's 95 % interval, if noise grows with the response as it does for event counts."""
        level = self.level
        ratio = max(1.0, center_of(values) / center) if center > 0 else 1.0
        spread = level.deviation * sqrt(ratio / len(values) + 1 / len(level.values))
        if len(values) > 1:
            own = sqrt(sum((each - fmean(values)) ** 2 for each in values) / (len(values) - 1) / len(values))
            spread = max(spread, own)
        return spread * t_quantile(0.975, level.freedom)

    def _without(self, names: Iterable[str]) -> LeftOut:
        """These knobs, plus all knobs that were dropped before."""
        return frozenset(self.dropped).union(names)

    def _drop(self, names: Sequence[str]) -> None:
        key = self._without(names)
        self.level.values.extend(self.values.get(key, []))
        self.smallest = max(self.smallest, self.level.matters)
        self.dropped.update(names)
        self._forget(names)

    def _forget(self, names: Sequence[str]) -> None:
        gone = set(names)
        self.pool = [name for name in self.pool if name not in gone]
        self._suspects = [rest for group in self._suspects if (rest := [each for each in group if each not in gone])]

    def _decide(self, names: Sequence[str]) -> Generator[Application, float, int]:
        key = self._without(names)
        while True:
            values = self.values.get(key, [])
            if values and (sign := self.level.judge(values)) is not None:
                return sign
            yield from self._measure(key, AGAIN if values else GROUP)

    def _measure(self, key: LeftOut, why: str, phase: str = SEARCH) -> Steps:
        value = yield Application(key, phase, why)
        self.values.setdefault(key, []).append(value)

    def _verify(self, most: int) -> Steps:
        """Compare the smallest profile with the full one, in pairs whose two applications are in random order.

        Stops when the interval lies entirely below or entirely above the permitted difference, or after `most` pairs.
        """
        written = frozenset(self.dropped)
        order = Stream(self.options.seed, "pairs")
        for number in count():
            both = order.shuffled(("written", "full"))
            if number < len(self.pairs):
                continue
            if not written or number >= most or (number >= PAIRS and self._narrow_enough()):
                return
            found: dict[str, float] = {}
            for each in both:
                left_out = written if each == "written" else frozenset[str]()
                found[each] = yield Application(left_out, VERIFY, WRITTEN if each == "written" else FULL)
            self.pairs.append((found["written"], found["full"]))

    def _narrow_enough(self) -> bool:
        found = self.difference()
        allowed = self.options.within * abs(found.full) if found else 0.0
        return found is not None and (found.high <= allowed or found.low > allowed)

    def difference(self) -> ProfileDifference | None:
        """The difference between the smallest and the full profile, from the pairs; None if there are too few pairs."""
        if len(self.pairs) < PAIRS:
            return None
        written, full = (fmean(each) for each in zip(*self.pairs, strict=True))
        rows = [*self.level.segments, self.level.values, *zip(*self.pairs, strict=True)]
        pooled = QuietLevel(
            self.options.within, self.options.alpha, len(self.knobs), [*rows[-1]], [list(r) for r in rows[:-1]]
        )
        half = pooled.deviation * t_quantile(0.975, pooled.freedom) * sqrt(2 / len(self.pairs))
        middle = written - full
        return ProfileDifference(len(self.pairs), written, full, middle - half, middle + half)

    def _conflicts(self) -> Steps:
        """Check that effects add up, by leaving all knobs that matter out of the full profile. If effects do not add
        up, leave these knobs out one by one.
        """
        if len(self.matter) < 1 or not self.dropped:
            return
        named = self.needs.closed(self.matter)
        reference = self.level
        if reference.segments:  # the full profile includes the knobs that make the host noisier
            first, *others = reference.segments
            reference = replace(reference, values=first, segments=[*others, reference.values])
        level = reference.center
        value = yield Application(named, CONFLICTS, NAMED)
        effects = [each.effect for each in self.findings() if each.knob in self.matter]
        expected = sum(effects) if self.options.adds else max(effects)
        self.together = (value - level, expected)
        if value - level >= ADDS_UP * expected - self.level.matters:
            return
        for name in [knob.name for knob in self.knobs if knob.name in self.matter]:
            key = self.needs.closed([name])
            values: list[float] = []
            while (sign := reference.judge(values) if values else None) is None:
                values.append((yield Application(key, CONFLICTS, SINGLE)))
            (self.replaceable if sign != LOUDER else self.not_replaceable).append(name)

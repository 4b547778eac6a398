"""Compare the tests of two or more files for `cbench compare`, and derive the verdict."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cbench.compare import family, suite
from cbench.compare.pairs import FilePair, PossibleRename, file_pairs, possible_renames
from cbench.compare.single import (
    AUTO,
    ComparedTest,
    CompareOptions,
    compared,
    compared_test,
    pair_name,
    unlike,
)
from cbench.compare.stats import HEADLINES, TOO_FEW, Comparison
from cbench.compare.suite import SuiteTest
from cbench.compare.verdict import interrupted
from cbench.formats.reader import TestSample, numbered
from quiet import UsageError, table_html


@dataclass(frozen=True, slots=True)
class CompareResult:
    """The comparison of all tests of OLD with each NEW.

    `skipped`, `other_units`: tests that are not compared, with the reason. `tests`: the outcome of each test,
    regressions first; with several NEW, the name of a test ends with the file of its NEW. `hosts_differ`: differences
    between the hosts that the files report. `failed`: tests that failed in at least one process, with the error. `a`,
    `b`: OLD and the first NEW; `margin`: the threshold as a share, None if there is no threshold.
    """

    a: str
    b: str
    new: tuple[str, ...]
    level: float
    margin: float | None
    alpha: float
    correction: str
    threshold_pct: float | None
    tests: dict[str, SuiteTest]
    regressions: tuple[str, ...]
    improvements: tuple[str, ...]
    cannot_tell: tuple[str, ...]
    only_in_old: tuple[str, ...]
    only_in_new: tuple[str, ...]
    possible_renames: tuple[PossibleRename, ...]
    hosts_differ: tuple[str, ...]
    failed: tuple[str, ...]
    comparisons: tuple[ComparedTest, ...]
    skipped: tuple[str, ...]
    other_units: tuple[str, ...]
    summary: family.ComparedFamily

    @property
    def counted(self) -> str:
        """The summary in one line."""
        return suite.counted([each.outcome for each in self.tests.values()], self.alpha, self.margin)

    @property
    def exit_code(self) -> int:
        """0 without a regression, 1 with one, 2 if no test could be judged."""
        found: dict[str, list[str]] = {}
        for row in self.comparisons:
            found.setdefault(row.unit, []).append(suite.outcome(row.outcome, row.unit, self.margin))
        return suite.exit_code(found, len(self.regressions))

    @property
    def too_few(self) -> str:
        """A sentence with the number of tests that have too few processes, the number of processes required, and how to
        get them; "" if all tests have enough.
        """
        few = [row for row in self.comparisons if row.outcome == TOO_FEW and row.p_holm is not None]
        if not few:
            return ""
        wanted, ways = (
            family.needed(self.alpha, self.summary.counting),
            dict.fromkeys(row.more_processes for row in few),
        )
        return (
            f"too few processes in {len(few):,} of {len(self.tests):,} tests: measure at least {wanted} per side "
            f"({'; '.join(ways)})"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes of all tests, each with the number of tests to which it applies."""
        notes = Counter(note for row in self.comparisons for note in row.notes)
        return tuple(f"note ({number:,} of {len(self.tests):,} tests): {note}" for note, number in notes.items())

    @property
    def interrupted(self) -> tuple[str, ...]:
        """A line for each side that was interrupted, with the causes over all of its tests."""
        sides = [("OLD", [row.a for row in self.comparisons if row.new == self.b])]
        several = len(self.new) > 1
        sides += [
            (f"NEW ({file})" if several else "NEW", [row.b for row in self.comparisons if row.new == file])
            for file in self.new
        ]
        by = [(name, interrupted(sum((Counter(each.interruptions) for each in of), Counter()))) for name, of in sides]
        return tuple(f"interrupted in {name}: {text}" for name, text in by if text)

    @property
    def unjudged(self) -> str:
        """The reason why no test could be judged; "" if one could."""
        if self.exit_code != suite.NOTHING_JUDGED:
            return ""
        if doubts := [row.verdict for row in self.comparisons if row.p_holm is None]:
            return f"{self.counted}: {doubts[0].removeprefix(f'{suite.CANNOT_TELL}: ')}"
        return self.too_few or f"{self.counted}: see --verbose; more processes narrow the intervals"

    def _repr_html_(self) -> str:
        ratios = ["" if each.ratio is None else f"{each.ratio:.4g}" for each in self.comparisons]
        rows = [
            (each.test, each.unit, ratio, each.outcome, each.verdict)
            for each, ratio in zip(self.comparisons, ratios, strict=True)
        ]
        title = " and ".join((self.a, *self.new))
        return table_html(title, ("test", "unit", "ratio", "outcome", "verdict"), rows)


def share(text: str, option: str = "--threshold") -> float:
    """The number that a text such as "1%" or "0.01" denotes. Raises UsageError unless it is a share between 0 and 1."""
    try:
        value = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise UsageError(f"{option} {text!r}: must be above 0 and below 1, such as 1% or 0.01")
    return value


def compare(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    headline: str = AUTO,
    level: float = 95,
    threshold: str | None = None,
    clean_only: bool = False,
    force: bool = False,
    better: str | None = None,
) -> CompareResult:
    """Compare B and each of `more` with A, as `cbench compare` does: each test is faster, slower, or the same.

    `level`: the level of the intervals and of all claims, in percent; `threshold`: a share, such as "1%", within which
    tests count as the same. `better`: "higher" or "lower" for all values that are not times; None decides by the unit.
    Raises UsageError for data that cannot be read or compared.
    """
    if headline not in (AUTO, *HEADLINES):
        raise UsageError(f"--headline {headline}: use {', '.join((AUTO, *HEADLINES))}")
    if better not in (None, suite.HIGHER, suite.LOWER):
        raise UsageError(f"--better {better}: use {suite.HIGHER} or {suite.LOWER}")
    if not 50 <= level < 100:  # also rejects nan
        raise UsageError(f"--level {level:g}: must be at least 50 and below 100 percent")
    within = None if threshold is None else share(threshold)
    options = CompareOptions(headline, (100 - level) / 100, within, clean_only)
    old, *new = (os.fspath(each) for each in (a, b, *more))
    files = file_pairs(old, new)
    every = [(file, x.in_unit_of(y), y.in_unit_of(x)) for file in files for x, y in file.pairs]
    fit = [(file, x, y) for file, x, y in every if force or x.like(y)]
    if not fit:
        raise UsageError(f"{unlike(*every[0][1:])}; use --force to compare the numbers anyway")
    done, skipped = _compared_all(fit, options)
    names = numbered([file.named(pair_name(x, y)) for file, x, y, _ in done])
    tests = {
        name: suite.suite_test(one, x.unit, within, not (x.cannot_tell or y.cannot_tell))
        for name, (_, x, y, one) in zip(names, done, strict=True)
    }
    units = {name: x.unit for name, (_, x, _, _) in zip(names, done, strict=True)}
    worse = {name: suite.worse(test.outcome, units[name], better) for name, test in tests.items()}
    only_in_old = tuple(file.named(name) for file in files for name in file.only_in_old)
    only_in_new = tuple(file.named(name) for file in files for name in file.only_in_new)
    return CompareResult(
        a=old,
        b=new[0],
        new=tuple(new),
        level=1 - options.alpha,
        margin=within,
        alpha=options.alpha,
        correction=family.CORRECTION,
        threshold_pct=None if within is None else 100 * within,
        tests={name: tests[name] for name in sorted(tests, key=lambda name: _place(tests[name], worse[name]))},
        regressions=tuple(name for name in tests if worse[name] is True),
        improvements=tuple(name for name in tests if worse[name] is False),
        cannot_tell=tuple(name for name, each in tests.items() if each.outcome == suite.CANNOT_TELL),
        only_in_old=only_in_old,
        only_in_new=only_in_new,
        possible_renames=tuple(
            PossibleRename(each.old, file.named(each.new))
            for file in files
            for each in possible_renames(file.only_in_old, file.only_in_new)
        ),
        hosts_differ=tuple(line for file in files for line in file.hosts_differ),
        failed=tuple(dict.fromkeys(line for file in files for line in file.failed)),
        comparisons=tuple(_noted(compared_test(x, y, one, options, file.new), file.note) for file, x, y, one in done),
        skipped=tuple(skipped),
        other_units=tuple(file.named(unlike(x, y)) for file, x, y in every if not (force or x.like(y))),
        summary=family.summary([one for _, _, _, one in done], options.alpha),
    )


def _noted(test: ComparedTest, note: str) -> ComparedTest:
    return replace(test, notes=(*test.notes, note)) if note else test


def _place(test: SuiteTest, worse: bool | None) -> tuple[int, int, float]:
    """The sort key of a test: regressions first, then improvements, then by outcome; the largest change first."""
    first = 0 if worse is True else 1 if worse is False else 2
    return first, suite.ORDER.index(test.outcome), -abs(math.inf if test.delta_pct is None else test.delta_pct)


def _compared_all(
    fit: Sequence[tuple[FilePair, TestSample, TestSample]], options: CompareOptions
) -> tuple[list[tuple[FilePair, TestSample, TestSample, Comparison]], list[str]]:
    """The comparisons, decided as one family, and a message for each test that cannot be compared. Raises UsageError if
    no test can be compared.
    """
    done, skipped = [], []
    for file, x, y in fit:
        try:
            done.append((file, *compared(x, y, options)))
        except UsageError as error:
            skipped.append(file.named(str(error)))
    if not done:
        raise UsageError(skipped[0])
    decided = family.decided([one for _, _, _, one in done], options.alpha, options.threshold)
    return [(file, x, y, one) for (file, x, y, _), one in zip(done, decided, strict=True)], skipped

"""Define the result of a gate as frozen values for `--json`, the text, Markdown and JUnit."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cbench.ab.analyze import ALPHA
from cbench.compare.suite import CANNOT_TELL, FASTER_UNITS
from cbench.external.measure import Show
from cbench.formats.units import is_rate
from cbench.gate.config import GateConfig, keys_named
from cbench.gate.judge import (
    CANNOT_JUDGE,
    IMPROVEMENT,
    JUDGED,
    NOT_CONFIRMED,
    PASSED,
    REGRESSION,
    SUSPECTED,
    JudgedTest,
    judge,
)
from cbench.gate.measure import GateSession, measure
from cbench.measure.cause_counts import CauseCount, cause_counts
from cbench.report.text import some
from cbench.study.host_check import inside_profile
from quiet import UsageError

GREEN, RED, NOT_JUDGED = 0, 1, 2
ORDER = (REGRESSION, CANNOT_JUDGE, NOT_CONFIRMED, IMPROVEMENT, CANNOT_TELL, PASSED)


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """Facts about a session. `ended`: blocks, effect (a slowdown by the threshold is detectable) or budget.

    `runs`: the number of runs of all arms; `polluted`: how many of these runs were disturbed; `causes`: the causes of
    the disturbances.
    """

    blocks: int
    layouts: int
    seconds: float
    ended: str
    seed: int
    not_copied: str
    runs: int
    polluted: int
    causes: tuple[CauseCount, ...]


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate. `tests`: regressions first; percentages as in JudgedTest. `left_out`: tests that cannot be
    judged, with the reason. `failed_in_new`: tests that failed in the runs of new and in no run of old, with the first
    message.
    """

    threshold_pct: float
    alpha: float
    tests: tuple[JudgedTest, ...]
    left_out: Mapping[str, str]
    only_in_old: tuple[str, ...]
    only_in_new: tuple[str, ...]
    sessions: tuple[SessionFacts, ...]
    regressions: tuple[str, ...]
    failed_in_new: Mapping[str, str]

    @property
    def exit_code(self) -> int:
        """1 with a regression, 2 if a suspect is neither confirmed nor cleared, a test failed in new only, or no test
        could be judged, 0 otherwise.
        """
        if self.regressions:
            return RED
        outcomes = {test.outcome for test in self.tests}
        judged = outcomes & set(JUDGED) and CANNOT_JUDGE not in outcomes and not self.failed_in_new
        return GREEN if judged else NOT_JUDGED

    @property
    def counted(self) -> str:
        """The summary in one line."""
        size = len(self.tests)
        head = {GREEN: "green", RED: "red", NOT_JUDGED: "cannot judge"}[self.exit_code]
        failed = f"; {len(self.failed_in_new)} failed in new" if self.failed_in_new else ""
        return (
            f"{head}: {size} test{'' if size == 1 else 's'}: {counts(self.tests) or 'no test can be compared'}{failed}"
        )


def counts(tests: Sequence[JudgedTest]) -> str:
    """The number of tests with each outcome, as text."""
    plural = (REGRESSION, IMPROVEMENT)
    number = Counter(test.outcome for test in tests)
    return ", ".join(
        f"{number[outcome]} {outcome}{'s' if outcome in plural and number[outcome] > 1 else ''}"
        for outcome in ORDER
        if number[outcome]
    )


def run(config: GateConfig, artifacts: Path | None, show: Show, tell: Callable[[str], None]) -> GateResult:
    """Measure and judge. If the first session has suspects and the rule requires confirmation, a second session
    measures the suspects again. Raises QuietError if a session cannot be measured.
    """
    if artifacts and artifacts.exists() and (not artifacts.is_dir() or any(artifacts.iterdir())):
        raise UsageError(f"--artifacts {artifacts}: is not an empty directory; choose a new or empty directory")
    if artifacts:
        try:
            artifacts.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=artifacts):  # refuse a read-only directory before the builds
                pass
        except OSError as error:
            raise UsageError(f"--artifacts {artifacts}: {error.strerror}") from None
    inside_profile(config.arms.profile, ",".join(config.arms.cpus), sys.argv[1:])
    old, new = (arm.revision for arm in config.arms.arms)
    if old and old == new:
        tell(f"old and new are the same commit {old[:12]}; this gate shows only the noise")
    seed = config.arms.seed
    with keys_named(config.path):
        first = measure(config, seed, None, _folder(artifacts, 1), show, tell)
    judged = {test.name: test for test in judge(first, config.rule)}
    facts = [_facts(first, seed)]
    suspects = frozenset(test.name for test in judged.values() if test.outcome == SUSPECTED)
    if config.rule.confirm and suspects:
        many = "1 suspected regression" if len(suspects) == 1 else f"{len(suspects)} suspected regressions"
        tell(f"{many}: running a second session to confirm or clear {'it' if len(suspects) == 1 else 'them'}")
        with keys_named(config.path):
            second = measure(config, seed + 1, suspects, _folder(artifacts, 2), show, tell)
        facts.append(_facts(second, seed + 1))
        again = {test.name: _confirmed(test) for test in judge(second, config.rule, suspects)}
        judged |= {name: again.get(name) or _lost(judged[name], second) for name in suspects}
    elif suspects:
        judged |= {name: replace(judged[name], outcome=REGRESSION) for name in suspects}
    if assumed := [test.name for test in judged.values() if config.rule.better is None and _assumed(test)]:
        tell(f'lower values are taken as better for {some(assumed)}; if higher ones are, set better = "higher"')
    tests = sorted(judged.values(), key=lambda test: (ORDER.index(test.outcome), -test.worse_pct))
    return GateResult(
        threshold_pct=100 * config.rule.threshold,
        alpha=ALPHA,
        tests=tuple(tests),
        left_out=first.left_out,
        only_in_old=first.only_in_old,
        only_in_new=first.only_in_new,
        sessions=tuple(facts),
        regressions=tuple(test.name for test in tests if test.outcome == REGRESSION),
        failed_in_new=first.failed_in_new,
    )


def _assumed(test: JudgedTest) -> bool:
    """Whether a difference was judged without knowing from its unit which values are better."""
    unit = test.unit
    clear = unit in FASTER_UNITS or is_rate(unit) or unit.endswith("/op")  # of `go test`: B/op, allocs/op
    return test.outcome in (REGRESSION, IMPROVEMENT) and not clear


def _confirmed(test: JudgedTest) -> JudgedTest:
    """A suspect, judged by the second session, which clears it only if that session rules out a slowdown by the
    threshold, or would have detected one.

    If the second session is too noisy, the suspect is neither confirmed nor cleared.
    """
    outcomes = {PASSED: NOT_CONFIRMED, IMPROVEMENT: NOT_CONFIRMED, SUSPECTED: REGRESSION, CANNOT_TELL: CANNOT_JUDGE}
    return replace(test, outcome=outcomes.get(test.outcome, test.outcome))


def _lost(test: JudgedTest, second: GateSession) -> JudgedTest:
    """The judgment of a suspect that has no values in the second session: neither confirmed nor cleared."""
    reasons = {**second.left_out, **second.failed_in_new}
    why = reasons.get(test.name, "not in the results of the second session")
    shown = test.why if test.delta_pct is None else f"{test.delta_pct:+.3g} %"
    why = f"suspected in the first session: {shown}; not measured again: {why}"
    return replace(test, outcome=CANNOT_JUDGE, why=why)


def _facts(session: GateSession, seed: int) -> SessionFacts:
    trials = session.trials
    return SessionFacts(
        blocks=len(session.orders),
        layouts=session.layouts,
        seconds=session.seconds,
        ended=session.ended,
        seed=seed,
        not_copied=session.not_copied,
        runs=len(trials),
        polluted=sum(trial.polluted for trial in trials),
        causes=cause_counts(trials),
    )


def _folder(artifacts: Path | None, number: int) -> Path | None:
    return artifacts / f"session{number}" if artifacts else None

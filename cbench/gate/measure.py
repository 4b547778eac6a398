"""Measure one session of a gate: old, a copy of old, and new, in random blocks; each run executes the whole suite."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log1p
from pathlib import Path
from statistics import median

from cbench.ab.analyze import detectable
from cbench.ab.arms import StagedArms, stage_layouts
from cbench.ab.design import EFFECT, order_of
from cbench.ab.options import AbOptions
from cbench.ab.run import checked, external_options
from cbench.ab.workspace import workspace
from cbench.external.measure import CommandSeries, CommandSession, Show, seldom, session
from cbench.formats.registry import read_with_failed
from cbench.gate.config import RESULTS, GateConfig
from cbench.gate.rule import GateRule
from cbench.model import Trial
from quiet import UsageError

ON_FAILURE, ON_TIMEOUT = "ignore_failure = true measures it anyway", "raise timeout_s"
ON_FAILURE_OF_RESULTS = "ignore_failure = true uses the results that it writes"
WALL, WALL_UNIT = "wall time", "ns"
ARMS = ("old", "old (copy)", "new")
NEW_COLUMN = 2
NEAR_ZERO = 1e-6
"""A value of 0 is replaced by this fraction of the smallest positive value, because only the order of values then
matters.
"""
IN_FILE_NAME = str.maketrans(" ", "-", "()")
Values = Mapping[str, tuple[str, float]]
"""The values of one run: the unit of each test, and the median of its samples."""


@dataclass(frozen=True, slots=True)
class SessionTest:
    """A test that occurs in every run. `values`: a row for each block, a number for each arm; all above 0. `from_zero`:
    the medians of old and new as text if exactly one of them has the value 0 in every run; "" otherwise. In `values`, a
    small positive number represents 0.
    """

    name: str
    unit: str
    values: tuple[tuple[float, ...], ...]
    from_zero: str = ""


@dataclass(frozen=True, slots=True)
class GateSession:
    """The data of one session. `orders`: per block, the arms in the order in which they ran.

    `left_out`: tests that cannot be judged, with the reason. `only_in_old`, `only_in_new`: tests that only one side
    has. `not_copied`: the reason why old itself serves as its copy, "" if there is a copy. `ended`: the
    reason why the session ended, "blocks", "effect" or "budget". `trials`: every run of the blocks, with its
    disturbances. `layouts`: the number of builds of both arms that the blocks use in turn. `failed_in_new`: tests that
    failed in a run of new and in no run of old, with the number of these runs and the first message.
    """

    tests: tuple[SessionTest, ...]
    orders: tuple[tuple[int, ...], ...]
    left_out: Mapping[str, str]
    only_in_old: tuple[str, ...]
    only_in_new: tuple[str, ...]
    not_copied: str
    ended: str
    seconds: float
    trials: tuple[Trial, ...] = ()
    layouts: int = 1
    failed_in_new: Mapping[str, str] = field(default_factory=dict)


def measure(
    config: GateConfig,
    seed: int,
    tests: frozenset[str] | None,
    keep: Path | None,
    show: Show,
    tell: Callable[[str], None],
) -> GateSession:
    """Measure one session of a gate.

    `tests`: the tests that determine when to stop (None: all); `keep`: a directory for raw results. Raises QuietError
    if an arm cannot be measured.
    """
    options = replace(config.arms, seed=seed)
    with workspace(None, resumed=False) as folder:
        target = folder / "results"
        layouts = [_with_target(staged, target, options.shell) for staged in stage_layouts(options, folder, show, tell)]
        external = replace(
            external_options(options, layouts[0]),
            on_failure=ON_FAILURE_OF_RESULTS if config.reads_results else ON_FAILURE,
            on_timeout=ON_TIMEOUT,
            quote_output=config.reads_results,
        )
        with session(external, tell) as here:
            layouts = [*checked(layouts, here, "")]
            runs = _Runs(config, layouts, here, target, keep)
            orders, ended, seconds = _blocks(runs, options, config.rule, tests, seldom(show))
    return runs.session(orders, layouts[0].not_copied, ended, seconds)


def _with_target(staged: StagedArms, target: Path, shell: bool) -> StagedArms:
    path = shlex.quote(str(target)) if shell else str(target)
    commands = (
        replace(each, argv=tuple(word.replace(RESULTS, path) for word in each.argv)) for each in staged.commands
    )
    return replace(staged, commands=tuple(commands))


def _quoted(text: str) -> str:
    return f" ({text})" if text else ""


class _Runs:
    """Executes arms and collects the values of each test, a row for each block."""

    def __init__(
        self,
        config: GateConfig,
        layouts: Sequence[StagedArms],
        here: CommandSession,
        target: Path,
        keep: Path | None,
    ) -> None:
        self._config, self._here, self._target, self._keep = config, here, target, keep
        self._layouts = [[CommandSeries(command) for command in staged.commands] for staged in layouts]
        self.blocks: list[list[Values]] = []
        self._failed: dict[str, dict[int, list[str]]] = {}  # by test and arm, a message for each run
        self.trials: list[Trial] = []

    def warm(self) -> None:
        """Run each program once and discard the result."""
        for layout in self._layouts:
            for arm, series in enumerate(layout):
                self._run(f"{ARMS[arm]}, warm-up", series, arm)
        self.trials.clear()
        self._failed.clear()

    def block(self, order: tuple[int, ...]) -> None:
        """Run each arm once, in the next layout."""
        number = len(self.blocks) + 1
        layout = self._layouts[len(self.blocks) % len(self._layouts)]
        rows: dict[int, Values] = {}
        for arm in order:
            rows[arm] = self._run(f"{ARMS[arm]}, run {number}", layout[arm], arm)
            if self._keep:
                self._save(self._keep / ARMS[arm].translate(IN_FILE_NAME), number)
        self.blocks.append([rows[arm] for arm in range(len(order))])

    def _run(self, name: str, series: CommandSeries, arm: int) -> Values:
        """Execute one run and return its values. `name`: the run's name for messages."""
        if self._target.is_dir():
            shutil.rmtree(self._target)
        self._target.unlink(missing_ok=True)
        trial = self._here.runner.run(series)
        self.trials.append(trial)
        if not self._config.reads_results:
            return {WALL: (WALL_UNIT, float(trial.value))}
        if not self._target.exists():
            ended = f"exited with {trial.output}{_quoted(self._here.runner.printed)} and " if trial.output else ""
            raise UsageError(
                f"{name}: {ended}wrote no results: its command must write the file that {RESULTS} stands for"
            )
        try:
            samples = read_with_failed(self._target)
        except UsageError as error:
            why = str(error).removeprefix(f"{self._target}: ").replace(f"{self._target}/", "")
            raise UsageError(f"{name}: {why}") from None
        for each in samples:
            if each.failed:
                self._failed.setdefault(each.name, {}).setdefault(arm, []).append(each.failed[0])
        return {
            each.name: (each.unit, float(median(value for process in each.processes for value in process)))
            for each in samples
            if each.processes
        }

    def _save(self, folder: Path, number: int) -> None:
        """Save the results of the last run, or its wall time as a file that `cbench compare` reads."""
        folder.mkdir(parents=True, exist_ok=True)
        name = folder / f"{number:05}"
        if not self._config.reads_results:
            name.write_text(f"test,unit,process,value\n{WALL},{WALL_UNIT},{number},{self.trials[-1].value}\n")
        elif self._target.is_dir():
            shutil.copytree(self._target, name)
        else:
            shutil.copyfile(self._target, name)

    def usable(self) -> tuple[list[SessionTest], dict[str, str]]:
        """The tests that every run has, in one unit and with values that form ratios; and the reason for excluding each
        of the others.
        """
        every = [run for block in self.blocks for run in block]
        failed_in_new = self._failed_in_new()
        tests, left_out = list[SessionTest](), dict[str, str]()
        for name in dict.fromkeys([*(name for run in every for name in run), *self._failed]):
            units = {run[name][0] for run in every if name in run}
            if name in failed_in_new:
                continue
            if name in self._failed:
                left_out[name] = self._failure(name)
            elif any(name not in run for run in every):
                if all(name in run for block in self.blocks for run in (block[0], block[2])):
                    left_out[name] = "not in every run of the copy"
                elif not self._only_in(name):
                    left_out[name] = "not in every run"
            elif len(units) > 1:
                left_out[name] = f"in several units: {', '.join(sorted(units))}"
            else:
                values = tuple(tuple(run[name][1] for run in block) for block in self.blocks)
                test = _session_test(name, units.pop(), values)
                if test is None:
                    left_out[name] = "some values are 0 or negative; ratios need values above 0"
                else:
                    tests.append(test)
        return tests, left_out

    def _failed_in_new(self) -> dict[str, str]:
        """The tests with values in old that failed in runs of new only, with the number of these runs and the first
        message.
        """
        return {
            name: self._failure(name)
            for name, arms in self._failed.items()
            if set(arms) == {NEW_COLUMN} and any(name in block[0] for block in self.blocks)
        }

    def _failure(self, name: str) -> str:
        """The numbers of runs in which a test failed, and the first message."""
        arms = self._failed[name]
        counts = [f"{len(arms[arm])} of {len(self.blocks)} runs of {ARMS[arm]}" for arm in sorted(arms)]
        return f"failed in {' and '.join(counts)}: {arms[min(arms)][0]}"

    def _only_in(self, name: str) -> str:
        if name in self._failed:
            return ""
        old = any(name in block[0] for block in self.blocks)
        new = any(name in block[2] for block in self.blocks)
        return "" if old == new else "old" if old else "new"

    def session(self, orders: list[tuple[int, ...]], not_copied: str, ended: str, seconds: float) -> GateSession:
        """The data of the session, from all measured blocks."""
        tests, left_out = self.usable()
        names = dict.fromkeys(name for block in self.blocks for run in block for name in run)
        return GateSession(
            tests=tuple(tests),
            orders=tuple(orders),
            left_out=left_out,
            only_in_old=tuple(name for name in names if self._only_in(name) == "old"),
            only_in_new=tuple(name for name in names if self._only_in(name) == "new"),
            not_copied=not_copied,
            ended=ended,
            seconds=seconds,
            trials=tuple(self.trials),
            layouts=min(len(self._layouts), len(self.blocks)),
            failed_in_new=self._failed_in_new(),
        )


def _session_test(name: str, unit: str, values: tuple[tuple[float, ...], ...]) -> SessionTest | None:
    """The test; None if some of its values are not above 0. Exceptions: all values are 0, or all values of one program
    are 0 and all values of the other are above 0.
    """
    every = [value for row in values for value in row]
    if min(every) > 0:
        return SessionTest(name, unit, values)
    before, after = ({value for row in values for value in row[arms]} for arms in (slice(2), slice(2, None)))
    if min(every) < 0 or not (before == {0} or after == {0}) or (0 in before and 0 in after and max(every) > 0):
        return None
    least = min((value for value in every if value), default=1.0) * NEAR_ZERO
    shown = [f"{name} {median(row[arm] for row in values):g}" for name, arm in (("old", 0), ("new", 2))]
    text = f"{' and '.join(shown)} {unit} (medians)" if max(every) else ""
    return SessionTest(name, unit, tuple(tuple(value or least for value in row) for row in values), text)


def _blocks(
    runs: _Runs, options: AbOptions, gate: GateRule, tests: frozenset[str] | None, show: Show
) -> tuple[list[tuple[int, ...]], str, float]:
    """Measure until the stopping rule applies; returns the orders, the reason for stopping, and the duration in
    seconds.
    """
    rule = replace(options.rule, effect=log1p(gate.threshold))
    runs.warm()
    begin, look, orders = time.monotonic(), rule.first_look, list[tuple[int, ...]]()
    while not orders or not (why := rule.over(len(orders), time.monotonic() - begin)):
        if len(orders) == look:
            look = rule.next_look(look)
            mine = [each for each in runs.usable()[0] if tests is None or each.name in tests]
            alpha, layouts = gate.alpha(len(mine), again=tests is not None), options.layouts
            found = [detectable(each.values, orders, alpha, gate.power, layouts) for each in mine]
            if found and all(rule.enough(each) for each in found):
                why = EFFECT
                break
        order = order_of(len(orders), len(ARMS), options.seed)
        runs.block(order)
        orders.append(order)
        show("blocks", len(orders), options.blocks or max(len(orders), look))
    return orders, why, time.monotonic() - begin

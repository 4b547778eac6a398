"""Measure arms in blocks until the stopping rule applies. Each block is stored, and a resumed comparison continues with
the next block.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from cbench.ab import stored
from cbench.ab.analyze import analyze, detectable
from cbench.ab.arms import StagedArms, digests_of, stage_layouts
from cbench.ab.design import EFFECT, StoppingRule, order_of
from cbench.ab.options import AbOptions
from cbench.ab.result import AbResult, ab_result
from cbench.ab.stored import POSITION, BlockKeeper, BlocksEnd, StoredBlocks
from cbench.ab.workspace import workspace
from cbench.console import StoppedError, shell_path
from cbench.external.measure import CommandSeries, CommandSession, Measured, Show, cpus_of, seldom, session, warm
from cbench.external.options import SECONDS, ExternalCommand, ExternalOptions
from cbench.external.result import CommandsResult, commands_result
from cbench.machine.describe import describe
from cbench.model import Trial
from cbench.results import json_object
from cbench.store.database import has_content, reading
from cbench.store.store import Store
from cbench.study import lock
from cbench.study.host_check import inside_profile
from quiet import QuietError, Refused, UsageError, parse_cpus

Tell = Callable[[str], None]


def start(options: AbOptions, output: Path | None, show: Show, tell: Tell) -> AbResult:
    """Run a new comparison. With `output`, complete blocks are kept in this file even if the comparison fails. Raises
    QuietError if an arm cannot be measured.
    """
    inside_profile(options.profile, ",".join(options.cpus), sys.argv[1:])
    comparison = f"{time.time_ns():x}-{os.getpid():x}"
    return _measured(StoredBlocks.none(comparison, options), output, show, tell, resumed=False)


def resume(path: Path, show: Show, tell: Tell) -> AbResult:
    """Resume the last comparison in a file, or return the result of a finished one. Raises QuietError if the file is
    unusable or an arm has changed.
    """
    before = stored.read(path)
    if before.end:
        with reading(path):
            return _again(before)
    inside_profile(before.options.profile, ",".join(before.options.cpus), sys.argv[1:])
    return _measured(before, path, show, tell, resumed=True)


def _measured(before: StoredBlocks, path: Path | None, show: Show, tell: Tell, resumed: bool) -> AbResult:
    alone = lock.alone(path, create=not resumed, kind="comparison") if path else nullcontext()
    with alone:
        if path and resumed:
            before = stored.read(path)  # another process may have continued it
        elif path and has_content(path):
            resumed_by = f"cbench ab --resume {shell_path(path)}"
            raise UsageError(f"{path}: already exists; choose another file, or resume with: {resumed_by}")
        with workspace(path, resumed) as folder, _kept(path, before, tell) as keeper:
            layouts = stage_layouts(before.options, folder, show, tell)
            digests = digests_of(layouts)
            if path:
                stored.unchanged(before, layouts[0].commands, digests, path)
            with session(external_options(before.options, layouts[0]), tell) as here:
                layouts = checked(layouts, here, before.not_copied)
                return _blocks_of(layouts, digests, before, here, keeper, seldom(show))


def _blocks_of(
    layouts: Sequence[StagedArms],
    digests: tuple[tuple[str, ...], ...],
    before: StoredBlocks,
    here: CommandSession,
    keeper: BlockKeeper,
    show: Show,
) -> AbResult:
    """Warm up, measure the remaining blocks, and return the result."""
    programs = [tuple(CommandSeries(command) for command in staged.commands) for staged in layouts]
    every = programs[0]  # holds the trials of all layouts
    begin = time.monotonic()
    for series in every:
        warm(series, here.runner, external_options(before.options, layouts[0]), show)
    for others in programs[1:]:
        for series in others:
            here.runner.run(series)
    for series, trials in zip(every, before.trials, strict=True):
        series.trials.extend(trials)
    before = replace(before, digests=digests, not_copied=layouts[0].not_copied)
    keeper.begin(every, here, digests, before.not_copied)
    rule = before.options.rule
    rule = replace(rule, budget_s=rule.budget_s - (time.monotonic() - begin))
    end = _blocks(programs, here, rule, before.options, keeper, show)
    keeper.finish(end)
    return _result(commands_result(here.measured(every)), every, replace(before, end=end))


def _again(before: StoredBlocks) -> AbResult:
    """Compute the result of a finished comparison from its stored blocks."""
    here = before.session
    assert here is not None  # a measurement that has ended has begun
    every = tuple(
        CommandSeries(ExternalCommand(name, "", tuple(words)), trials=list(trials))
        for (name, words), trials in zip(before.options.commands(), before.trials, strict=True)
    )
    measured = Measured(every, here.counter, here.cpus, here.pinned, parse_cpus(here.host.isolated_cpus), (), "")
    return _result(replace(commands_result(measured), host=here.host), every, before)


def _result(measured: CommandsResult, every: Sequence[CommandSeries], blocks: StoredBlocks) -> AbResult:
    assert blocks.end is not None
    analysis = analyze(*_rows(every), layouts=blocks.options.layouts)
    return ab_result(
        measured,
        blocks.options,
        analysis,
        not_copied=blocks.not_copied,
        distinct=min(len(set(digests)) for arm, digests in enumerate(blocks.digests) if arm != 1),
        ended=blocks.end.why,
        seconds=blocks.end.seconds,
    )


@contextmanager
def _kept(path: Path | None, before: StoredBlocks, tell: Tell) -> Iterator[BlockKeeper]:
    """A context that stores blocks in the file `path` (nowhere if None); on any exit, the complete blocks so far are
    stored.

    A new comparison that fails before its first block leaves no file.
    """
    if path is None:
        yield BlockKeeper(None, before)
        return
    again = f"resume with: cbench ab --resume {shell_path(path)}"
    keeper = None
    try:
        _, cpus, isolated = cpus_of(before.options.cpus)
        with Store.create(path, host=json_object(describe(cpus, isolated)), command=sys.argv) as store:
            keeper = BlockKeeper(store, before)
            try:
                yield keeper
            except BaseException:
                with suppress(QuietError):
                    keeper.flush()
                raise
    except KeyboardInterrupt:
        raise StoppedError(f"interrupted; {again}") from None
    except SystemExit:
        tell(f"ended by a signal; {again}")
        raise
    except QuietError as error:
        if keeper and keeper.kept:
            raise type(error)(f"{error}; {again}") from None
        if before.session is None and path.is_file():  # the file was empty or missing
            path.unlink()
        raise


def external_options(options: AbOptions, staged: StagedArms) -> ExternalOptions:
    """The options for measuring each command."""
    return ExternalOptions(
        commands=staged.commands,
        counter="wall",
        cpus=options.cpus,
        ignore_failure=options.ignore_failure,
        timeout=options.timeout,
        seed=options.seed,
        seconds=min(SECONDS, options.rule.budget_s / len(options.arms)),
    )


def checked(layouts: Sequence[StagedArms], here: CommandSession, not_copied: str) -> tuple[StagedArms, ...]:
    """Replace the copies by A itself, in all layouts, if the first copy behaves differently from A. A copy may lack
    files in its directory, or be in a directory that forbids execution. `not_copied`: the reason why there was no copy
    before, "" if there was one. Raises UsageError if A fails.
    """
    why = not_copied or next((staged.not_copied for staged in layouts if staged.not_copied), "")
    if not why:
        first, copy = (CommandSeries(command) for command in layouts[0].commands[:2])
        code = here.runner.run(first).output
        try:
            same = here.runner.run(copy).output == code
        except (UsageError, Refused):
            same = False
        why = "" if same else "a copy in another directory does not work"
    return tuple(staged.without_copy(why) for staged in layouts) if why else tuple(layouts)


def _blocks(
    programs: Sequence[Sequence[CommandSeries]],
    here: CommandSession,
    rule: StoppingRule,
    options: AbOptions,
    keeper: BlockKeeper,
    show: Show,
) -> BlocksEnd:
    """Measure blocks, each in the next layout, until the rule ends the measurement; returns the reason and the
    duration.
    """
    every = programs[0]
    done = len(every[0].trials)
    spent = sum(trial.value for series in every for trial in series.trials) / 1e9
    begin, look = time.monotonic() - spent, rule.first_look
    while look < done:
        look = rule.next_look(look)
    while not done or not (why := rule.over(done, time.monotonic() - begin)):
        if done == look:
            look = rule.next_look(done)
            if rule.enough(detectable(*_rows(every), layouts=options.layouts)):
                return BlocksEnd(EFFECT, time.monotonic() - begin)
        order = order_of(done, len(every), options.seed)
        block: dict[int, Trial] = {}
        for position, arm in enumerate(order):
            trial = here.runner.run(programs[done % options.layouts][arm])
            block[arm] = replace(trial, counts={**trial.counts, **stored.place(done, position, options.layouts)})
        for arm, series in enumerate(every):
            series.trials.append(block[arm])
        keeper.add([block[arm] for arm in range(len(every))])
        done += 1
        show("blocks", done, options.blocks or max(done, look))
    return BlocksEnd(why, time.monotonic() - begin)


def _rows(every: Sequence[CommandSeries]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The times in ns and the orders, a row for each block."""
    blocks = list(zip(*(series.trials for series in every), strict=True))
    times = [tuple(trial.value for trial in block) for block in blocks]
    places = [[trial.counts[POSITION] for trial in block] for block in blocks]
    return times, [tuple(sorted(range(len(row)), key=row.__getitem__)) for row in places]

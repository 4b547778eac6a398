"""Store a comparison in the format of `cbench run`: one run for each start and resume, with a series for each arm.

`cbench compare` and `cbench export` read these runs like those of other commands. A block is stored whole or not at
all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cbench.ab.options import AbOptions, Arm, check
from cbench.external.measure import STORED_NS, WALL, CommandFacts, CommandSeries, CommandSession
from cbench.external.options import MOST_SECONDS, ExternalCommand
from cbench.machine.describe import HostFacts
from cbench.model import Counter, Settling, Trial
from cbench.store.database import reading
from cbench.store.records import LAYOUT, NO_CPU, StoredSeries
from cbench.store.store import Store
from quiet import UsageError

BLOCK, POSITION = "block", "position"
"""The names under which each trial's block and position (from 0) are stored. If builds vary, LAYOUT is stored as well.
"""
ENDED = "blocks_end"
"""The name of the fact that is stored when a measurement ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFacts(CommandFacts):
    """The stored facts of an arm. `comparison`: an id shared by all runs of one comparison; `sha256`: hash of the arm's
    executable, by layout.
    """

    comparison: str
    options: AbOptions
    sha256: tuple[str, ...]
    not_copied: str
    cpus: tuple[int, ...]
    pinned: bool


@dataclass(frozen=True, slots=True)
class BlocksEnd:
    """The end of a measurement. `why`: the reason why no more blocks are measured; `seconds`: the duration of all
    blocks; for blocks before a resume, only the sum of the times of their runs.
    """

    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The counter, host and CPUs of the last run. `pinned`: whether commands were pinned to `cpus`."""

    counter: Counter
    host: HostFacts
    cpus: frozenset[int]
    pinned: bool


@dataclass(frozen=True, slots=True)
class StoredBlocks:
    """The blocks so far, as the trials of each arm, A and A' first.

    `digests`: hashes of each arm's executables, by layout; () before anything is built. `end`: None if the measurement
    has not ended. `session`: None before the comparison is stored.
    """

    comparison: str
    options: AbOptions
    trials: tuple[tuple[Trial, ...], ...]
    digests: tuple[tuple[str, ...], ...] = ()
    not_copied: str = ""
    end: BlocksEnd | None = None
    session: StoredSession | None = None

    @classmethod
    def none(cls, comparison: str, options: AbOptions) -> StoredBlocks:
        """The state before the first block."""
        return cls(comparison, options, ((),) * (len(options.arms) + 1))


def read(path: Path) -> StoredBlocks:
    """The last comparison in this file. Raises UsageError if there is none, QuietError if the file is damaged."""
    with Store.open(path) as store:
        every = store.series()
    with reading(path):
        mine = [each for each in every if "comparison" in each.facts]
        if not mine:
            raise UsageError(f"{path}: contains no comparison; start one with: cbench ab -o FILE -- ./old ./new")
        last = mine[-1]
        comparison = str(last.facts["comparison"])
        runs: dict[int, list[StoredSeries]] = {}
        for each in mine:
            if each.facts["comparison"] == comparison:
                runs.setdefault(each.run.number, []).append(each)
        options = _options(last.facts["options"])
        size = len(options.arms) + 1
        whole = [arms for arms in runs.values() if len(arms) == size]  # a kill may precede the last arm
        trials = [tuple(kept.trial for arms in whole for kept in arms[at].trials) for at in range(size)]
        _check(trials, options.layouts)
        end = last.facts.get(ENDED)
        if end and not (trials[0] and 0 < end["seconds"] <= MOST_SECONDS):
            raise ValueError("the stored end is invalid")
        session = StoredSession(
            Counter(**last.facts["counter"]),
            HostFacts(**last.run.host),
            frozenset(last.facts["cpus"]),
            bool(last.facts["pinned"]),
        )
        return StoredBlocks(
            comparison=comparison,
            options=options,
            trials=tuple(trials),
            digests=tuple(tuple(map(str, each.facts["sha256"])) for each in (whole[-1] if whole else [])),
            not_copied=str(last.facts["not_copied"]),
            end=BlocksEnd(str(end["why"]), float(end["seconds"])) if last.ended_ns is not None and end else None,
            session=session,
        )


def _options(facts: Mapping[str, Any]) -> AbOptions:
    """The options that were stored with a run. Raises ValueError, TypeError or LookupError for damaged data."""
    arms = tuple(
        Arm(each["name"], each["text"], each["revision"], tuple((name, value) for name, value in each["environment"]))
        for each in facts["arms"]
    )
    options = AbOptions(**{**facts, "arms": arms, "cpus": tuple(facts["cpus"])})
    check(options)
    return options


def place(block: int, position: int, layouts: int) -> dict[str, int]:
    """The counts that store a trial's block, its position and, if builds vary, its layout."""
    return {BLOCK: block, POSITION: position, **({LAYOUT: block % layouts} if layouts > 1 else {})}


def _check(trials: Sequence[Sequence[Trial]], layouts: int) -> None:
    """Raises ValueError if these are not whole blocks with times above 0."""
    for number, block in enumerate(zip(*trials, strict=True)):
        ordered = sorted(block, key=lambda trial: trial.counts[POSITION])
        if any(place(number, at, layouts).items() - trial.counts.items() for at, trial in enumerate(ordered)):
            raise ValueError(f"block {number} is incomplete")
        if any(trial.value <= 0 for trial in block):
            raise ValueError(f"block {number} has a time of 0 ns")


class BlockKeeper:
    """Writes new blocks to the store; without a store, does nothing.

    The options are stored before anything is built or measured: a kill at any moment leaves a store that can be
    resumed.
    """

    def __init__(self, store: Store | None, before: StoredBlocks) -> None:
        self._store, self._before = store, before
        self._numbers: list[int] = []
        self._pending: list[tuple[Trial, ...]] = []
        if store:
            for at, (name, words) in enumerate(before.options.commands()):
                command = ExternalCommand(name, "", tuple(words), before.options.prepare)
                digest = before.digests[at] if before.digests else ()
                facts = self._facts(command, Settling(), digest, before.not_copied)
                self._numbers.append(store.begin(asdict(facts)))

    @property
    def kept(self) -> bool:
        """Whether this run has stored blocks."""
        return self._store is not None and self._store.kept > 0

    def begin(
        self, every: Sequence[CommandSeries], here: CommandSession, digests: Sequence[tuple[str, ...]], not_copied: str
    ) -> None:
        """Store the facts of this run before its first block."""
        for number, series, digest in zip(self._numbers, every, digests, strict=False):
            facts = self._facts(series.command, series.settling, digest, not_copied, here)
            if self._store:
                self._store.renew(number, asdict(facts))

    def _facts(
        self,
        command: ExternalCommand,
        settling: Settling,
        digest: tuple[str, ...],
        not_copied: str,
        here: CommandSession | None = None,
    ) -> ArmFacts:
        pinned = here is not None and here.pinned
        cpus = tuple(sorted(here.cpus)) if here else ()
        return ArmFacts(
            workload=command.text,
            cpu=cpus[0] if pinned and len(cpus) == 1 else NO_CPU,
            command=command.argv,
            prepare=command.prepare,
            counter=here.counter if here else WALL,
            settling=settling,
            comparison=self._before.comparison,
            options=self._before.options,
            sha256=digest,
            not_copied=not_copied,
            cpus=cpus,
            pinned=pinned,
        )

    def add(self, block: Sequence[Trial]) -> None:
        """Add a whole block; blocks are written in batches, so that short blocks do not cause a disk write each."""
        self._pending.append(tuple(block))
        if sum(trial.value for each in self._pending for trial in each) >= STORED_NS:
            self.flush()

    def flush(self) -> None:
        """Write the buffered blocks."""
        blocks, self._pending = self._pending, []
        if self._store and blocks:
            self._store.add_together(list(zip(self._numbers, zip(*blocks, strict=True), strict=True)))

    def finish(self, end: BlocksEnd) -> None:
        """Record the end of the measurement."""
        self.flush()
        for number in self._numbers:
            if self._store:
                self._store.finish(number, {ENDED: end})


def unchanged(
    before: StoredBlocks, commands: Sequence[ExternalCommand], digests: Sequence[tuple[str, ...]], path: Path
) -> None:
    """Raises UsageError if an arm's program has changed in any layout."""
    for command, was, now in zip(commands, before.digests, digests, strict=False):
        if was and was != now:  # the run may have been killed before anything was built
            raise UsageError(
                f"{path}: {command.text}: not the program that the comparison started with; start a new comparison"
            )

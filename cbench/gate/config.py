"""gate.toml: what to compare, how long, and from where on a slowdown is a regression."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from cbench.ab.layouts import FREE, MOST_LAYOUTS, PROGRAM
from cbench.ab.options import AbOptions, Arm, check
from cbench.ab.revisions import commit_of, repository_of
from cbench.compare.result import share
from cbench.external.options import MOST_SECONDS
from cbench.gate.rule import GateRule
from cbench.study.config import profile_of, text_of, whole_of
from cbench.study.toml_table import TomlTable
from quiet import UsageError

RESULTS = "{results}"
OLD, NEW = "old", "new"
THRESHOLD, BUDGET_S = "1%", 300.0


@dataclass(frozen=True, slots=True)
class GateConfig:
    """`arms`: old and new, and how they run."""

    path: Path
    arms: AbOptions
    rule: GateRule

    @property
    def reads_results(self) -> bool:
        """Whether each run writes a file of results; else its wall time is the only test."""
        return any(RESULTS in arm.text for arm in self.arms.arms)


def load(path: Path, old: str | None = None, new: str | None = None, profile: str | None = None) -> GateConfig:
    """Read a gate's file. `old`, `new`, `profile`: in the place of what it says.

    Raises UsageError, with file and line.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file; docs/gate.md has an example")
    table = whole_of(text_of(path, "gate", "gate"), str(path))
    texts = {OLD: old, NEW: new}
    for key, given in texts.items():
        written = table.text(key, "" if given else None)
        texts[key] = given or written
    run, build = table.text("run", ""), table.text("build", "")
    base = AbOptions(
        arms=(),
        folder=str(path.absolute().parent),
        build=build,
        shell=table.flag("shell", False),
        prepare=table.text("prepare", ""),
        ignore_failure=table.flag("ignore_failure", False),
        timeout=table.number("timeout_s", MOST_SECONDS, 0.001, MOST_SECONDS) if table.has("timeout_s") else None,
        cpus=table.texts("cpus"),
        profile=profile_of(table, check=True) if profile is None else profile,
        budget=table.number("budget_s", BUDGET_S, 0.1, MOST_SECONDS),
        seed=table.whole("seed", 1, 0, 2**63 - 1),
        blocks=table.whole("blocks", 1, 1, 1_000_000) if table.has("blocks") else None,
        layouts=table.whole("layouts", 1, 1, MOST_LAYOUTS),
        preset=table.text("preset", FREE),
    )
    try:
        threshold = share(table.text("threshold", THRESHOLD))
    except UsageError as error:
        raise table.error("threshold", str(error).partition(": ")[2]) from None
    confirm = table.flag("confirm", True)
    if profile is not None:
        table.text("profile", "")
    table.end()
    if build and not run and not any(PROGRAM in (text or "") for text in texts.values()):
        raise table.error("build", f'is for git revisions, which `run` measures (run = "COMMAND"), and for {PROGRAM}')
    arms = [Arm(name, text or "") for name, text in texts.items()]
    if run:
        repository, prefix = repository_of(base.folder)
        base = replace(base, repository=repository, prefix=prefix)
        arms = [Arm(name, run, _commit(repository, table, name, text or "")) for name, text in texts.items()]
    config = GateConfig(path, replace(base, arms=tuple(arms), effect=threshold), GateRule(threshold, confirm))
    without = [arm.name for arm in config.arms.arms if RESULTS not in arm.text]
    if config.reads_results and without:
        raise table.error(without[0], f"has no {RESULTS}, the other arm has: both write results, or none does")
    try:
        check(config.arms)
    except UsageError as error:
        if option := re.match(r"--(layouts|preset|build):? ", str(error)):
            raise table.error(option[1], str(error)[option.end() :]) from None
        raise
    return config


def _commit(repository: str, table: TomlTable, key: str, revision: str) -> str:
    try:
        return commit_of(repository, revision)
    except UsageError:
        raise table.error(key, f"{revision!r}: no such revision in {os.path.basename(repository)}") from None

"""Read gate.toml: the programs to compare, the time limit, and the threshold of a regression."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cbench.ab.layouts import ARM, FREE, LAYOUT, MOST_LAYOUTS, PROGRAM, SEED
from cbench.ab.options import AbOptions, Arm, check
from cbench.ab.revisions import commit_of, cut_history, has_folder, repository_of
from cbench.compare.result import share
from cbench.compare.suite import HIGHER, LOWER
from cbench.external.options import MOST_SECONDS, split_command
from cbench.gate.rule import GateRule
from cbench.study.config import profile_of, text_of, whole_of
from cbench.study.toml_table import TomlTable
from quiet import QuietError, UsageError

RESULTS = "{results}"
OLD, NEW = "old", "new"
THRESHOLD, BUDGET_S = "1%", 300.0
LEAST_THRESHOLD = 0.0001
BYTE_ORDER_MARK = "\ufeff"
IN_COMMANDS, IN_BUILD = (RESULTS, PROGRAM), (PROGRAM, SEED, LAYOUT, ARM)
_PLACEHOLDER = re.compile(r"(?<![$@])\{[a-z_]+\}")
"""A placeholder such as {seed}. Does not match the shell's ${x}, {a,b} and { x; }, or git's @{u}."""


@dataclass(frozen=True, slots=True)
class GateConfig:
    """The content of gate.toml. `arms`: old and new, and the options for running them."""

    path: Path
    arms: AbOptions
    rule: GateRule

    @property
    def reads_results(self) -> bool:
        """Whether each run writes a file of results; if not, the wall time of the run is the only test."""
        return any(RESULTS in arm.text for arm in self.arms.arms)


def load(path: Path, old: str | None = None, new: str | None = None, profile: str | None = None) -> GateConfig:
    """Read a gate's file. `old`, `new`, `profile`: values that override the keys of the same name.

    Raises UsageError, with file and line, for an invalid configuration.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file; create it as in the example of docs/gate.md")
    table = whole_of(text_of(path, "gate", "gate").removeprefix(BYTE_ORDER_MARK), str(path))
    given = {OLD: old, NEW: new}
    texts = {key: table.text(key, "") for key in given}  # check the file's value even if an option overrides it
    texts |= {key: text for key, text in given.items() if text is not None}
    run, build, prepare = (table.text(key, "") for key in ("run", "build", "prepare"))
    base = AbOptions(
        arms=(),
        folder=str(path.absolute().parent),
        build=build,
        shell=table.flag("shell", False),
        prepare=prepare,
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
    threshold = _threshold(table)
    confirm = table.flag("confirm", True)
    better = table.text("better", choices=(HIGHER, LOWER)) if table.has("better") else None
    if profile is not None:
        table.text("profile", "")
    table.end()

    def wrong(key: str, why: str) -> UsageError:
        return UsageError(f"--{key}: {why}") if given.get(key) is not None else table.error(key, why)

    commands = {"run": run} if run else texts
    for key in texts:
        if not texts[key]:
            raise wrong(
                key,
                f"{'is empty' if given[key] == '' else 'is missing'}: give a command, or a git revision if run is set",
            )
    _check_placeholders({**commands, "build": build, "prepare": prepare}, wrong)
    for key, text in commands.items():
        try:
            split_command(text, base.shell, key, "set shell = true")
        except UsageError as error:
            raise wrong(key, str(error).removeprefix(f"{key} ")) from None
    if build and not run and not any(PROGRAM in text for text in texts.values()):
        raise table.error("build", f"applies only to git revisions (measured by run) and to commands with {PROGRAM}")
    arms = [Arm(name, text) for name, text in texts.items()]
    if run:
        repository, prefix = repository_of(base.folder)
        base = replace(base, repository=repository, prefix=prefix)
        place = repository, prefix, path.name, wrong
        arms = [Arm(name, run, _commit(*place, name, text)) for name, text in texts.items()]
    config = GateConfig(path, replace(base, arms=tuple(arms), effect=threshold), GateRule(threshold, confirm, better))
    without = [arm.name for arm in config.arms.arms if RESULTS not in arm.text]
    if config.reads_results and without:
        raise table.error(without[0], f"has no {RESULTS}, but the other arm does: both must write results, or neither")
    try:
        check(config.arms)
    except UsageError as error:
        text = str(error).replace("more than --blocks ", "more than blocks = ")
        if option := re.match(r"--(layouts|preset|build):? ", text):
            raise table.error(option[1], text[option.end() :]) from None
        raise
    return config


def _check_placeholders(commands: Mapping[str, str], wrong: Callable[[str, str], UsageError]) -> None:
    for key, text in commands.items():
        known = {"build": IN_BUILD, "prepare": ()}.get(key, IN_COMMANDS)
        for word in _PLACEHOLDER.findall(text):
            if word not in known:
                raise wrong(key, f"{word}: unknown; valid here: {', '.join(known) or 'no placeholders'}")


def _threshold(table: TomlTable) -> float:
    text = table.text("threshold", THRESHOLD)
    try:
        if (threshold := share(text)) >= LEAST_THRESHOLD:
            return threshold
    except UsageError:
        pass
    raise table.error("threshold", f"{text!r}: must be at least {100 * LEAST_THRESHOLD:g}% and below 100%, such as 1%")


def _commit(
    repository: str, prefix: str, name: str, wrong: Callable[[str, str], UsageError], key: str, revision: str
) -> str:
    try:
        commit = commit_of(repository, revision)
    except UsageError:
        cut = cut_history(repository)
        raise wrong(key, f"{revision!r}: no such revision in {os.path.basename(repository)}{cut}") from None
    if not has_folder(repository, commit, prefix):
        advice = f"move {name} to a directory that both revisions have, such as the top of the repository"
        raise wrong(key, f"revision {commit[:12]} has no directory {prefix}; {advice}")
    return commit


_KEYS = (
    ("for shell built-ins and operators add --shell", "for shell built-ins and operators set shell = true"),
    ("permitted on these CPUs; choose other CPUs with --cpu", "permitted on these CPUs; choose other CPUs with cpus"),
    (": --build: ", ": build: "),
    (": --prepare: ", ": prepare: "),
    ("to the compiler or linker in --build", "to the compiler or linker in build"),
)
"""Texts about options in other commands' errors, each with the text for the corresponding key of gate.toml."""
_FIRST = re.compile(r"--(build \(|cpu\b)")


@contextmanager
def keys_named(path: Path) -> Iterator[None]:
    """Inside this context, errors name the keys of this file instead of the corresponding command options."""
    try:
        yield
    except QuietError as error:
        text = str(error)
        for option, key in _KEYS:
            text = text.replace(option, key)
        if first := _FIRST.match(text):
            text = f"{path}: {'cpus:' if first[1] == 'cpu' else first[1]}{text[first.end() :]}"
        raise type(error)(text) from None

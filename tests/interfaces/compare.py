"""Run the commands on both sides and find differences."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.interfaces import results
from tests.interfaces.commands import Group
from tests.interfaces.inputs import lay_out
from tests.interfaces.side import Done, Side

ATTEMPTS = 4  # of a live group whose shape differs, since what disturbs a measurement shows in its output
NULL = type(None).__name__
_ALONE = threading.Lock()  # one measurement at a time


@dataclass(frozen=True)
class Result:
    """The result of one command, ready to compare: exit code, stdout, stderr, and the files that it wrote or
    removed.
    """

    parts: dict[str, str]


@dataclass(frozen=True)
class Difference:
    """One part of a command's result that is not the same; space_only: a page in which only whitespace differs."""

    label: str
    part: str
    diff: str
    space_only: bool = False


@dataclass
class Runs:
    """The results of one side: by group, by command, each time that it ran."""

    side: Side
    inputs: Path
    scratch: Path
    by_group: dict[str, list[list[Result]]] = field(default_factory=dict)

    def run(self, group: Group) -> None:
        """Run a group's commands once more, in a new directory."""
        known = self.by_group.setdefault(group.name, [[] for _ in group.lines])
        folder = self.scratch / f"{group.name.replace(' ', '-').replace('/', '-')}-{len(known[0])}" / self.side.name
        lay_out(self.inputs, folder)
        before = results.states(folder)
        for line, every in zip(group.lines, known, strict=True):
            try:
                done = self.side.run(line, folder)
            except subprocess.TimeoutExpired:
                done = Done(-1, "", "timed out\n")
            after = results.states(folder)
            every.append(self._result(done, folder, before, after))
            before = after
        shutil.rmtree(folder)

    def _result(self, done: Done, folder: Path, before: results.States, after: results.States) -> Result:
        parts = {"exit code": str(done.code), "stdout": done.out, "stderr": done.err}
        for name in sorted(before.keys() | after.keys()):
            if name not in after:
                parts[f"file {name}"] = "removed"
            elif before.get(name) != after[name]:
                parts[f"file {name}"] = results.content(folder / name)
        return Result({name: results.mask(text, folder, self.side.checkout) for name, text in parts.items()})


def run_both(groups: list[Group], before: Runs, after: Runs, progress: Callable[[str], None]) -> None:
    """Run every group on both sides at the same time, live groups alone on their turn."""
    exact, live = [g for g in groups if not g.live], [g for g in groups if g.live]
    errors: list[BaseException] = []

    def work(runs: Runs, order: list[Group]) -> None:
        try:
            runs.side.find_fonts(runs.scratch)
            for group in order:
                if group.live:
                    with _ALONE:
                        runs.run(group)
                else:
                    runs.run(group)
                progress(f"{runs.side.name}: {group.name}")
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=(before, [*exact, *live])),
        threading.Thread(target=work, args=(after, [*live, *exact])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    for group in live:
        for _ in range(ATTEMPTS - 1):
            if next(_differences(group, before, after), None) is None:
                break
            for runs in (before, after):
                runs.run(group)
                progress(f"{runs.side.name}: {group.name}, once more")


def differences(groups: list[Group], before: Runs, after: Runs) -> list[Difference]:
    """All that differs, in the commands' order."""
    return [each for group in groups for each in _differences(group, before, after)]


def _differences(group: Group, before: Runs, after: Runs) -> Iterator[Difference]:
    for line, old, new in zip(group.lines, before.by_group[group.name], after.by_group[group.name], strict=True):
        if group.live:
            yield from _shapes(group.label(line), old, new)
        else:
            yield from _texts(group.label(line), old[0], new[0])


def _texts(label: str, old: Result, new: Result) -> Iterator[Difference]:
    for part in _names([old], [new]):
        a, b = old.parts.get(part, "absent"), new.parts.get(part, "absent")
        if a == b:
            continue
        if part.endswith(".html") and results.page(a) == results.page(b):
            yield Difference(label, part, _diff(a, b), space_only=True)
        elif part.endswith(".html"):
            yield Difference(label, part, _diff(results.page(a), results.page(b)))
        elif results.readable(a) == results.readable(b):
            yield Difference(label, part, "", space_only=True)  # the keys of objects in another order
        else:
            yield Difference(label, part, _diff(results.readable(a), results.readable(b)))


def _shapes(label: str, old: list[Result], new: list[Result]) -> Iterator[Difference]:
    """Differences that one side shows in each run and the other side never does."""
    for part in _names(old, new):
        if part.endswith((".html", ".svg")):  # their text is compared where the values are the same
            continue
        a, b = ([results.shape(each.parts.get(part, "absent")) for each in side] for side in (old, new))
        lost, added = _missing(a, b), _missing(b, a)
        if lost or added:
            lines = [f"-{line}" for line in lost] + [f"+{line}" for line in added]
            yield Difference(label, f"shape of {part}", "\n".join(["--- before", "+++ after", *lines]))


def _missing(here: list[set[str]], there: list[set[str]]) -> list[str]:
    """The lines of every run here that no run there has; a JSON value may be null in one run and not in another."""
    known = set[str]().union(*there)
    paths = {line.rpartition(": ")[0] for line in known}
    lines = sorted(set.intersection(*here) - known)
    return [line for line in lines if not _only_null(line, known, paths)]


def _only_null(line: str, known: set[str], paths: set[str]) -> bool:
    path, _, kind = line.rpartition(": ")
    return path in paths if kind == NULL else f"{path}: {NULL}" in known


def _names(old: list[Result], new: list[Result]) -> list[str]:
    names = dict.fromkeys(name for each in (*old, *new) for name in each.parts)
    return list(names)


def _diff(a: str, b: str) -> str:
    return "\n".join(difflib.unified_diff(a.splitlines(), b.splitlines(), "before", "after", lineterm="", n=1))

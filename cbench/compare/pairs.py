"""Pair the tests of two files by name, and report similar names as possible renames."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from cbench.formats import registry
from cbench.formats.reader import TestSample
from cbench.store.database import reading
from cbench.store.kind import is_store
from cbench.store.store import Store
from quiet import UsageError

CLOSE = 0.8
"""The minimum similarity (by difflib) at which two names may belong to one renamed test."""


@dataclass(frozen=True, slots=True)
class PossibleRename:
    """The name of a test that is only in OLD, and the name in NEW to which it may have been changed."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class FilePair:
    """The paired and the unpaired samples of OLD and one NEW. `several`: whether there is more than one NEW.
    `failed`: a line for each test that failed in at least one process; `note`: a note on every comparison, "" for none.
    """

    new: str
    pairs: tuple[tuple[TestSample, TestSample], ...]
    only_in_old: tuple[str, ...]
    only_in_new: tuple[str, ...]
    several: bool
    failed: tuple[str, ...] = ()
    note: str = ""

    def named(self, text: str) -> str:
        """The text, followed by the name of NEW if there are several."""
        return f"{text} ({self.new})" if self.several else text

    @property
    def hosts_differ(self) -> tuple[str, ...]:
        """A line for each fact of the hosts that differs."""
        passports = [(a.passport, b.passport) for a, b in self.pairs]
        lines = [line for a, b in passports if a is not None and b is not None for line in a.differences(b)]
        return tuple(self.named(line) for line in dict.fromkeys(lines))


def load(text: str) -> tuple[tuple[TestSample, ...], bool]:
    """The tests of FILE or FILE:TEST, and whether TEST was given. TEST may be the end of one name, after a colon or a
    slash. Raises UsageError if the file cannot be read or has no such test.
    """
    path, selection = file_of(text)
    samples = registry.read_with_failed(path)
    if selection is None:
        return samples, False
    chosen = tuple(each for each in samples if selection in (each.name, each.test, each.workload))
    if not chosen:
        ends = [each for each in samples if each.name.endswith((f":{selection}", f"/{selection}"))]
        chosen = tuple(ends) if len(ends) == 1 else ()
    if not chosen:
        names = _some([repr(each.name) for each in samples], 8)
        raise UsageError(f"{path}: no test {selection!r}; the file has {names}")
    return chosen, True


def _some(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def file_of(text: str) -> tuple[Path, str | None]:
    """FILE and TEST, split at the first colon that follows an existing file's name, because both may contain colons.
    Raises UsageError if there is no such file.
    """
    if os.path.exists(text):
        return Path(text), None
    parts = text.split(":")
    for length in range(1, len(parts)):
        path = ":".join(parts[:length])
        if path and os.path.exists(path):
            return Path(path), ":".join(parts[length:])
    raise UsageError(f"{text}: no such file")


def pair(first: Sequence[TestSample], second: Sequence[TestSample]) -> list[tuple[TestSample, TestSample]]:
    """Pair the tests of both sides: by CPU if both sides have several CPUs; otherwise a test on one CPU is paired with
    that test on each CPU of the other side.
    """
    pairs = []
    for test in dict.fromkeys(sample.test for sample in first):
        mine = [sample for sample in first if sample.test == test]
        theirs = [sample for sample in second if test in (sample.test, sample.name)]
        several = min(len(mine), len(theirs)) > 1
        fit = [(x, y) for x in mine for y in theirs if not several or (x.cpu == y.cpu and x.like(y))]
        # if a test has several units, pair only equal units
        same = {id(each) for x, y in fit if x.unit == y.unit for each in (x, y)}
        pairs += [(x, y) for x, y in fit if x.unit == y.unit or not same & {id(x), id(y)}]
    matched = {sample.name for sample, _ in pairs}
    by_name = {sample.name: sample for sample in second}
    pairs += [(x, by_name[x.name]) for x in first if x.name not in matched and x.name in by_name]
    return pairs


def file_pairs(old: str, new: Sequence[str]) -> list[FilePair]:
    """Pair OLD with each NEW. Raises UsageError for a file that cannot be read, and for a NEW that is given twice or
    has no test in common with OLD.
    """
    if twice := [path for path in new if list(new).count(path) > 1]:
        raise UsageError(f"{twice[0]}: is given twice; give each NEW once")
    olds, one = load(old)
    first = tuple(each for each in olds if each.processes)
    files = []
    for path in new:
        news, other = load(path)
        failed = [*_failed("OLD", olds), *_failed("NEW" if len(new) == 1 else f"NEW ({path})", news)]
        second = tuple(each for each in news if each.processes)
        named = one and other and len(first) == len(second) == 1
        pairs = [(first[0], second[0])] if named else pair(first, second)
        if not pairs and failed and not (first and second):
            raise UsageError(f"nothing to compare: all tests of a side failed: {failed[0]}")
        if not pairs:
            has = [_some([each.name for each in side], 4) for side in (first, second)]
            raise UsageError(
                f"no test is in both: {old} has {has[0]}; {path} has {has[1]}; select one of each with FILE:TEST"
            )
        used = {id(sample) for each in pairs for sample in each}
        left = [tuple(sample.name for sample in side if id(sample) not in used) for side in (first, second)]
        files.append(FilePair(path, tuple(pairs), left[0], left[1], len(new) > 1, tuple(failed), _note(old, path)))
    return files


def _note(old: str, new: str) -> str:
    """The note on two sides from the same store of `cbench ab`, whose blocks and noise floor are not used here; "" for
    any other two sides.
    """
    path, other = file_of(old)[0], file_of(new)[0]
    if path.is_dir() or not path.samefile(other) or not is_store(path):
        return ""
    with Store.open(path) as store, reading(path):
        if not any("comparison" in each.facts for each in store.series()):
            return ""
    return (
        f"compared without the blocks and the noise floor of cbench ab: `cbench ab --resume {shlex.quote(str(path))}` "
        "shows its verdict"
    )


def _failed(side: str, samples: Sequence[TestSample]) -> list[str]:
    """A line for each test that failed in at least one process."""
    return [
        f"{each.name} in {len(each.failed)} of {len(each.failed) + len(each.processes)} processes of {side}: "
        f"{each.failed[0]}"
        for each in samples
        if each.failed
    ]


def possible_renames(only_in_old: Sequence[str], only_in_new: Sequence[str]) -> tuple[PossibleRename, ...]:
    """Pairs of names that differ only in case, punctuation or a few letters, if each name has only one such partner;
    partners that differ only in case and punctuation take precedence. Numbers must agree, because a test with different
    parameters is a different test.
    """
    forward = {old: _like(old, only_in_new) for old in only_in_old}
    backward = {new: _like(new, only_in_old) for new in only_in_new}
    return tuple(PossibleRename(old, new) for old, new in forward.items() if new is not None and backward[new] == old)


def _like(name: str, others: Sequence[str]) -> str | None:
    """The one name in `others` that differs from `name` only in case and punctuation or, if none does, the one similar
    name; None if there is none or more than one.
    """
    candidates = [other for other in others if _numbers(other) == _numbers(name)]
    same = [other for other in candidates if _plain(other) == _plain(name)]
    close = same or [other for other in candidates if get_close_matches(_plain(name), [_plain(other)], 1, CLOSE)]
    return close[0] if len(close) == 1 else None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _numbers(name: str) -> list[str]:
    return re.findall(r"\d+", name)

"""Split a kernel command line into words as the kernel does.

Source: kernel document admin-guide/kernel-parameters ("double-quotes can be used to protect spaces in values"; "-" and
"_" are equal in names; words after "--" are for init); lib/cmdline.c, next_arg().
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quiet import cpulist
from quiet.errors import UsageError
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts

# characters that are literal in a shell and in a boot loader's own language
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+/@%~-")

_OFF = ("0", "n", "N", "f", "F", "no", "false", "off", "OFF", "Off")  # the kernel's false values (lib/kstrtox.c)


def split(line: str) -> list[str]:
    """The words of a line. Double quotes protect spaces; an unclosed quote reaches to the end of the line."""
    words, word, quoted = [], "", False
    for letter in line.strip():
        if letter.isspace() and not quoted:
            if word:
                words.append(word)
            word = ""
            continue
        quoted ^= letter == '"'
        word += letter
    return [*words, word] if word else words


def name(word: str) -> str:
    """The name of a word's parameter, with "_" for "-": "nohz-full=3" -> "nohz_full"."""
    return word.strip('"').partition("=")[0].replace("-", "_")


def value(word: str) -> str | None:
    """The value after the "=", without quotes; None for a word without "="."""
    _, equals, text = word.partition("=")
    return text.replace('"', "") if equals else None


def same(word: str, other: str) -> bool:
    """Whether a word is equivalent to `other`: quotes, and "-" or "_" in the name, do not matter.

    If the value of `other` is "off", the kernel's other false values are equivalent too.
    """
    if name(word) != name(other):
        return False
    return value(word) == value(other) or (value(other) == "off" and value(word) in _OFF)


class CommandLine(NamedTuple):
    """The words for the kernel, and the "--" with the words for init (empty if there is no "--")."""

    words: tuple[str, ...]
    init: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((*self.words, *self.init))

    def of(self, parameter: str) -> list[str]:
        """The words that set one parameter, in the order of the line."""
        return [word for word in self.words if name(word) == name(parameter)]

    def changed(self, drop: Iterable[str], add: Iterable[str]) -> CommandLine:
        """The line without the words to drop and with the new words at the end, before init's words."""
        away = set(drop)
        return CommandLine((*(word for word in self.words if word not in away), *add), self.init)


def parse(line: str) -> CommandLine:
    """Parse a command line."""
    words = split(line)
    end = words.index("--") if "--" in words else len(words)
    return CommandLine(tuple(words[:end]), tuple(words[end:]))


def check(word: str, source: str) -> str:
    """Return `word` unchanged. Raises UsageError if it is not a parameter that every boot loader stores verbatim."""
    if not word or not _PLAIN.issuperset(word) or word.startswith(("-", "=")):
        raise UsageError(
            f"{source}: '{word}' is not a valid kernel parameter; write NAME or NAME=VALUE without spaces, quotes or $"
        )
    return word


def fill_in(parameters: Iterable[str], cpus: CpuPartition, facts: Facts, source: str) -> list[str]:
    """The parameters with this host's values in place of the placeholders.

    {isolated}, {housekeeping}: CPU lists. {domain}: "domain," on hosts without a cgroup v2 hierarchy that can create a
    partition at run time, else "". Raises UsageError for an unknown placeholder or an invalid parameter.
    """
    values = {
        "{isolated}": cpulist.format(cpus.isolated),
        "{housekeeping}": cpulist.format(cpus.housekeeping),
        "{domain}": "" if facts.cgroup[0] == 2 else "domain,",
    }
    words = []
    for parameter in parameters:
        word = parameter
        for placeholder, value in values.items():
            word = word.replace(placeholder, value)
        if "{" in word:
            raise UsageError(
                f"{source}: '{parameter}': unknown placeholder; the known placeholders are {', '.join(values)}"
            )
        words.append(check(word, source))
    return words

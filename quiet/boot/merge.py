"""What a profile wants with what stands on the command line already: no duplicate, no contradiction.

The rules are the kernel's (kernel/sched/isolation.c, kernel/rcu/tree_nocb.h): of two isolcpus= with different lists the
second is dropped, and so is nohz_full= when it differs from isolcpus=nohz; rcu_nocbs= are taken together; the boot CPU
keeps its tick; one CPU has to be in none of them. Elsewhere the last word counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quiet import cpulist
from quiet.boot.parameter import HOUSEKEEPING, ISOLATED
from quiet.boot.parameters import known
from quiet.boot.words import Line, name, value
from quiet.cpulist import CpuSet
from quiet.errors import Refused, UsageError
from quiet.facts import Facts

KEEP, ADD, CHANGE, DROP, SKIP = "keep", "add", "change", "drop", "skip"
_UNTIL = "no CPU would be left for everything else"


class Row(NamedTuple):
    """What becomes of one parameter: `current` are the words that stand there, `wanted` the one to come."""

    action: str
    parameter: str
    current: str
    wanted: str
    why: str


class Merged(NamedTuple):
    """The line to be, with the words that go and those that come."""

    line: Line
    rows: tuple[Row, ...]
    drop: tuple[str, ...]
    add: tuple[str, ...]


def cpus(text: str, facts: Facts) -> tuple[tuple[str, ...], CpuSet]:
    """The flags and the CPUs of a parameter's value; "all" and "N" (the last CPU) are the kernel's words."""
    flags: list[str] = []
    found: CpuSet = frozenset()
    for part in filter(None, text.split(",")):
        try:
            found |= facts.possible if part == "all" else cpulist.parse(part.replace("N", str(max(facts.possible))))
        except UsageError:
            flags.append(part)
    return tuple(flags), found


def merge(line: Line, wanted: Sequence[str], facts: Facts) -> Merged:
    """Merge. Raises Refused when what stands there leaves no housekeeping CPU together with the wish."""
    merger = _Merger(line, facts)
    for word in wanted:
        merger.ask(word)
    return merger.end()


class _Merger:
    def __init__(self, line: Line, facts: Facts) -> None:
        self.line, self.facts = line, facts
        self.rows: list[Row] = []
        self.taken: CpuSet = frozenset()  # by isolcpus= and nohz_full= together
        self.isolated: dict[str, tuple[tuple[str, ...], CpuSet]] = {}
        self.later: list[str] = []
        self.order: dict[str, int] = {}

    def ask(self, word: str) -> None:
        self.order.setdefault(name(word), len(self.order))
        item = known(word)
        reason = item.needs(self.facts) if item else ""
        takes = item.takes if item else ""
        if reason:
            self.rows.append(Row(SKIP, name(word), "", word, reason))
        elif takes == ISOLATED:
            flags, found = cpus(value(word) or "", self.facts)
            old_flags, old = self._present(name(word))
            # without flags, isolcpus= means domain
            kept = old_flags or (("domain",) if name(word) == "isolcpus" and old else ())
            self.isolated[name(word)] = (tuple(dict.fromkeys((*flags, *kept))), found | old)
        elif takes == HOUSEKEEPING:
            self.later.append(word)
        else:
            self._plain(word)

    def _present(self, parameter: str) -> tuple[tuple[str, ...], CpuSet]:
        flags: list[str] = []
        found: CpuSet = frozenset()
        for word in self.line.of(parameter):
            here, more = cpus(value(word) or "", self.facts)
            flags += here
            found |= more
        return tuple(dict.fromkeys(flags)), found

    def _plain(self, word: str) -> None:
        item = known(word)
        why = item.why if item else "the profile asks for it"
        for other in item.covered if item else ():
            if other in self.line.words:
                self.rows.append(Row(KEEP, name(word), other, word, "does it already"))
                return
        for other in item.against if item else ():
            if other in self.line.words:
                self._row(DROP, other, "", f"it contradicts {word}")
        self._settle(word, why)

    def _settle(self, word: str, why: str) -> None:
        there = self.line.of(name(word))
        if there and all((name(other), value(other)) == (name(word), value(word)) for other in there):
            self._row(KEEP, there[0], there[0], why)
        else:
            self._row(CHANGE if there else ADD, " ".join(there), word, why)

    def _row(self, action: str, current: str, wanted: str, why: str) -> None:
        self.rows.append(Row(action, name(wanted or current), current, wanted, why))

    def end(self) -> Merged:
        self._agree()
        for parameter in ("isolcpus", "nohz_full"):
            self.taken |= self.isolated.get(parameter, ((), self._present(parameter)[1]))[1]
        if self.isolated and not self.facts.online - self.taken:
            there = " ".join(word for p in self.isolated for word in self.line.of(p))
            raise Refused(f"together with {there or 'the command line'} {_UNTIL}; give --cpus fewer CPUs")
        for parameter, (flags, found) in self.isolated.items():
            self._listed(parameter, flags, found)
        for word in self.later:
            self._housekeeping(word)
        self.rows.sort(key=lambda row: self.order.get(row.parameter, -1))
        drop = [w for row in self.rows if row.action in (CHANGE, DROP) for w in row.current.split()]
        add = [row.wanted for row in self.rows if row.action in (CHANGE, ADD)]
        return Merged(self.line.changed(drop, add), tuple(self.rows), tuple(drop), tuple(add))

    def _agree(self) -> None:
        if "nohz_full" not in self.isolated:
            return
        flags, found = self.isolated["nohz_full"]
        found -= {min(self.facts.online)}
        if not found:
            del self.isolated["nohz_full"]
            why = f"CPU {min(self.facts.online)} is the boot CPU, which keeps its tick"
            self.rows.append(Row(SKIP, "nohz_full", "", "nohz_full", why))
            return
        self.isolated["nohz_full"] = flags, found
        own, isolated = self.isolated.get("isolcpus", self._present("isolcpus"))
        if "nohz" in own:  # the kernel takes only one of two lists: nohz_full= alone says it
            self.isolated["isolcpus"] = tuple(flag for flag in own if flag != "nohz") or ("domain",), isolated
            self.isolated["nohz_full"] = flags, found | isolated - {min(self.facts.online)}
        item = known("nohz_full")
        for other in item.against if item else ():
            if other in self.line.words:
                self._row(DROP, other, "", "it contradicts nohz_full=")

    def _listed(self, parameter: str, flags: tuple[str, ...], found: CpuSet) -> None:
        item = known(parameter)
        why = item.why if item else ""
        there = self.line.of(parameter)
        old_flags, old = self._present(parameter)
        same = old == found and set(flags) == set(old_flags or (("domain",) if parameter == "isolcpus" else ()))
        if len(there) == 1 and same:
            self._row(KEEP, there[0], there[0], why)
            return
        if old - found:  # only the boot CPU can go
            why += f"; CPU {cpulist.format(old - found)} is the boot CPU, which keeps its tick"
        word = f"{parameter}={','.join((*flags, cpulist.format(found)))}"
        self._row(CHANGE if there else ADD, " ".join(there), word, why)

    def _housekeeping(self, word: str) -> None:
        item = known(word)
        wanted = cpus(value(word) or "", self.facts)[1] - self.taken
        there, (_, old) = self.line.of(name(word)), self._present(name(word))
        why = item.why if item else ""
        if not wanted:
            self.rows.append(Row(SKIP, name(word), "", word, _UNTIL))
        elif there and old and old <= wanted:
            self._row(KEEP, there[-1], there[-1], why)
        else:
            self._row(CHANGE if there else ADD, " ".join(there), f"{name(word)}={cpulist.format(wanted)}", why)

"""Merge a profile's kernel parameters into a command line, without duplicates or contradictions.

The rules are the kernel's (kernel/sched/isolation.c, kernel/rcu/tree_nocb.h, mm/hugetlb.c): of two isolcpus= with
different lists the second is dropped, and so is nohz_full= if it differs from isolcpus=nohz; the lists of several
rcu_nocbs= are united; the boot CPU keeps its tick; at least one CPU must be in no list; hugepages= counts pages of the
size in the hugepagesz= before it. For some names, all words count (BootParameter.adds); for others, only the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quiet import cpulist
from quiet.boot.parameters.cmdline import CommandLine, fill_in, name, parse, same, split, value
from quiet.boot.parameters.parameter import HOUSEKEEPING, ISOLATED, BootParameter
from quiet.boot.parameters.registry import known
from quiet.cpulist import CpuSet
from quiet.errors import Refused, UsageError
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts

KEEP, ADD, CHANGE, DROP, SKIP = "keep", "add", "change", "drop", "skip"
_HUGE = ("hugepagesz", "hugepages")  # these words form a series, whose order matters
_UNTIL = "no CPU would be left for everything else"


class MergeRow(NamedTuple):
    """The action for one parameter. `current`: its words in the line; `wanted`: the new word; "" if there is none."""

    action: str
    parameter: str
    current: str
    wanted: str
    why: str


class Merged(NamedTuple):
    """The merged line, with the removed and added words."""

    line: CommandLine
    rows: tuple[MergeRow, ...]
    drop: tuple[str, ...]
    add: tuple[str, ...]

    @property
    def unchanged(self) -> bool:
        """Whether the merge neither adds nor removes a word."""
        return not self.add and not self.drop


def cpus(text: str, facts: Facts) -> tuple[tuple[str, ...], CpuSet]:
    """The flags and the CPUs of a parameter's value, including the kernel's words "all" and "N" (the last CPU)."""
    flags: list[str] = []
    numbers: CpuSet = frozenset()
    for part in filter(None, text.split(",")):
        try:
            numbers |= facts.possible if part == "all" else cpulist.parse(part.replace("N", str(max(facts.possible))))
        except UsageError:
            flags.append(part)
    return tuple(flags), numbers


def merge(line: CommandLine, wanted: Sequence[str], facts: Facts) -> Merged:
    """Merge the wanted words into the line. Raises Refused if the result leaves no housekeeping CPU."""
    words = _without_repeats(wanted)
    merger = _Merger(line, facts, words)
    for word in words:
        merger.add(word)
    return merger.end()


def missing(parameters: Sequence[str], cpus: CpuPartition, facts: Facts, source: str) -> tuple[str, ...]:
    """The parameters of a profile that this host supports and that the running kernel's command line lacks.

    Returns all parameters if they would leave no housekeeping CPU.
    """
    if not parameters:
        return ()
    wanted = fill_in(parameters, cpus, facts, source)
    try:
        return merge(parse(facts.command_line), wanted, facts).add
    except Refused:  # no CPU would be left for housekeeping; `quiet boot plan` reports this
        return tuple(wanted)


def _without_repeats(wanted: Sequence[str]) -> list[str]:
    """Keep the last of equal words; a number of huge pages may occur once for each size."""
    return [word for at, word in enumerate(wanted) if name(word) in _HUGE or word not in wanted[at + 1 :]]


class _Merger:
    def __init__(self, line: CommandLine, facts: Facts, words: Sequence[str]) -> None:
        self.line, self.facts, self.words = line, facts, words
        self.rows: list[tuple[int, MergeRow]] = []  # each with the position of its wanted word
        self.taken: CpuSet = frozenset()  # the CPUs of isolcpus= and nohz_full=
        self.isolated: dict[str, tuple[tuple[str, ...], CpuSet]] = {}
        self.later: list[str] = []
        self.order: dict[str, int] = {}
        self.at = -1

    def add(self, word: str) -> None:
        self.at += 1
        first = self.order.setdefault(name(word), self.at) == self.at
        item = known(word)
        reason = (item.needs(self.facts) or self._yields(item, word)) if item else ""
        takes = item.takes if item else ""
        series = [] if item and (item.adds or item.cpus) else self._series(word)
        if reason:
            self._row(SKIP, "", word, reason)
        elif takes == ISOLATED:
            flags, wanted = cpus(value(word) or "", self.facts)
            old_flags, old = self._present(name(word))
            # isolcpus= without flags means domain
            kept = old_flags or (("domain",) if name(word) == "isolcpus" and old else ())
            self.isolated[name(word)] = (tuple(dict.fromkeys((*flags, *kept))), wanted | old)
        elif takes == HOUSEKEEPING:
            self.later.append(word)
        elif series:
            if first and word == series[0]:
                self._in_order(series)
        else:
            self._plain(word)

    def _yields(self, item: BootParameter, word: str) -> str:
        """Why a word is omitted: the line contains a safeguard that an administrator has chosen; "" if it does not."""
        guards = [w for w in self.line.words for other in item.yields if same(w, other) and not same(w, word)]
        return (
            f"{' '.join(guards)} is on the command line; remove it yourself if it is no longer needed" if guards else ""
        )

    def _series(self, word: str) -> list[str]:
        """The wanted words that take effect only together, in order; [] for an independent word."""
        names = _HUGE if name(word) in _HUGE else (name(word),)
        series = [other for other in self.words if name(other) in names]
        return series if names == _HUGE or len(series) > 1 else []

    def _in_order(self, series: list[str]) -> None:
        names = {name(word) for word in series} | ({*_HUGE} if name(series[0]) in _HUGE else set())
        there = [word for word in self.line.words if name(word) in names]
        why = item.why if (item := known(series[0])) else "the profile requests it"
        if [(name(w), value(w)) for w in there] == [(name(w), value(w)) for w in series]:
            for word in there:
                self._row(KEEP, word, word, why)
            return
        for word in series:
            self._row(CHANGE if there else ADD, " ".join(there), word, why)
            there = []

    def _present(self, parameter: str) -> tuple[tuple[str, ...], CpuSet]:
        flags: list[str] = []
        present: CpuSet = frozenset()
        for word in self.line.of(parameter):
            here, more = cpus(value(word) or "", self.facts)
            flags += here
            present |= more
        return tuple(dict.fromkeys(flags)), present

    def _plain(self, word: str) -> None:
        item = known(word)
        why = item.why if item else "the profile requests it"
        for there in self.line.words:
            if any(same(there, other) for other in (item.covered if item else ())):
                self._row(KEEP, there, word, "already has the same effect")
                return
        self._contradicted(item, word)
        there_already = self.line.of(name(word))
        if item and item.adds:
            holds = [other for other in there_already if value(word) in (value(other) or "").split(",")]
            self._row(KEEP if holds else ADD, "".join(holds[:1]), holds[0] if holds else word, why)
        else:
            equal = all((name(other), value(other)) == (name(word), value(word)) for other in there_already)
            self._replace(there_already, word, why, there_already != [] and equal)

    def _replace(self, current: list[str], word: str, why: str, keep: bool) -> None:
        """Keep the first of the current words, or replace all of them."""
        if keep:
            self._row(KEEP, current[0], current[0], why)
        else:
            self._row(CHANGE if current else ADD, " ".join(current), word, why)

    def _contradicted(self, item: BootParameter | None, word: str) -> None:
        for there in self.line.words:
            if any(same(there, other) for other in (item.against if item else ())):
                self._row(DROP, there, "", f"it contradicts {word}")

    def _row(self, action: str, current: str, wanted: str, why: str) -> None:
        self.rows.append((self.at if wanted else -1, MergeRow(action, name(wanted or current), current, wanted, why)))

    def end(self) -> Merged:
        self._agree()
        for parameter in ("isolcpus", "nohz_full"):
            self.taken |= self.isolated.get(parameter, ((), self._present(parameter)[1]))[1]
        if self.isolated and not self.facts.online - self.taken:
            there = " ".join(word for p in ("isolcpus", "nohz_full") for word in self.line.of(p))
            known = f", together with {there} on the kernel command line," if there else ""
            fewer = f"list fewer CPUs with --cpus{f', or remove {there}' if there else ''}"
            raise Refused(f"isolcpus= and nohz_full={known} would cover every online CPU; {fewer}")
        for parameter, (flags, wanted) in self.isolated.items():
            self.at = self.order.get(parameter, -1)
            self._listed(parameter, flags, wanted)
        for word in self.later:
            self.at = self.order[name(word)]
            self._housekeeping(word)
        rows = [row for _, row in sorted(self.rows, key=lambda placed: placed[0])]
        drop = [w for row in rows if row.action in (CHANGE, DROP) for w in split(row.current)]
        add = [row.wanted for row in rows if row.action in (CHANGE, ADD)]
        return Merged(self.line.changed(drop, add), tuple(rows), tuple(drop), tuple(add))

    def _agree(self) -> None:
        if "nohz_full" not in self.isolated:
            if not self.line.of("nohz_full") or "nohz" not in self.isolated.get("isolcpus", ((), 0))[0]:
                return
            self.isolated["nohz_full"] = self._present("nohz_full")  # the line already has it, with a different list
        flags, tickless = self.isolated["nohz_full"]
        tickless -= {min(self.facts.online)}
        if not tickless:
            del self.isolated["nohz_full"]
            why = f"CPU {min(self.facts.online)} is the boot CPU, which keeps its tick"
            self.at = self.order.get("nohz_full", self.at)
            self._row(SKIP, "", "nohz_full", why)
            return
        self.isolated["nohz_full"] = flags, tickless
        own, isolated = self.isolated.get("isolcpus", self._present("isolcpus"))
        if "nohz" in own:  # of two different lists the kernel uses only one: nohz_full= alone is enough
            self.isolated["isolcpus"] = tuple(flag for flag in own if flag != "nohz") or ("domain",), isolated
            self.isolated["nohz_full"] = flags, tickless | isolated - {min(self.facts.online)}
        self._contradicted(known("nohz_full"), "nohz_full=")

    def _listed(self, parameter: str, flags: tuple[str, ...], wanted: CpuSet) -> None:
        item = known(parameter)
        why = item.why if item else ""
        there = self.line.of(parameter)
        old_flags, old = self._present(parameter)
        same = old == wanted and set(flags) == set(old_flags or (("domain",) if parameter == "isolcpus" else ()))
        if old - wanted:  # only the boot CPU can be removed
            why += f"; CPU {cpulist.format(old - wanted)} is the boot CPU, which keeps its tick"
        word = f"{parameter}={','.join((*flags, cpulist.format(wanted)))}"
        self._replace(there, word, why, len(there) == 1 and same)

    def _housekeeping(self, word: str) -> None:
        item = known(word)
        wanted = cpus(value(word) or "", self.facts)[1] - self.taken
        there, (_, old) = self.line.of(name(word)), self._present(name(word))
        why = item.why if item else ""
        if not wanted:
            self._row(SKIP, "", word, _UNTIL)
        else:
            keep = bool(there and old and old <= wanted)
            self._replace(there[-1:] if keep else there, f"{name(word)}={cpulist.format(wanted)}", why, keep)

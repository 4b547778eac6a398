"""Report the facts about the study: its design and, for a study's store, its host and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cbench.order.result import ORDERS, OrderResult
from cbench.store.database import reads_store
from cbench.store.kind import is_store
from cbench.study import config
from cbench.study.model import Study
from cbench.study.records import Header, Verified, host_names
from cbench.study.store import StudyStore

FAILURES = {
    "trial": "excludes only itself",
    "run": "excludes its whole run",
    "published": "excludes its whole run in fixed order, but only itself in random order, as in OrderSage",
}


OF_HOSTS = ("time", "host", "runs", "boots", "quiet")
"""Facts that differ from host to host."""


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """The facts about a study for its report. `name`: the study's name; `rows`: the facts in its store, as pairs of a
    name and a text.
    """

    name: str
    rows: tuple[tuple[str, str], ...] = ()


@reads_store
def about(path: Path) -> StudyFacts:
    """The facts about a file's study beyond its trials; only the name if the file is not a store."""
    if not is_store(path):
        return StudyFacts(path.stem)
    with StudyStore.open(path, kind="order") as store:
        header, runs, known = store.header(), store.runs(), store.run_facts()
    study = config.parse(header.source, str(path), header.folder, check=False)
    begun = sum(run.begun_ns is not None for run in runs)
    lost = sum(run.failure is not None for run in runs)
    rows = [
        ("design", f"{study.design}, {study.repetitions:,} repetitions, seed {header.seed}"),
        ("time", _times(header)),
        ("host", _host(header)),
        ("reset before each run", _reset(study)),
        ("runs", f"{len(runs):,} planned, {begun:,} started" + (f", {lost:,} left out" if lost else "")),
    ]
    boots = {each.boot_id for each in known if each.boot_id}
    rows += [("boots", f"the runs span {len(boots):,} boots of the host")] if len(boots) > 1 else []
    rows.append(("quiet", _quiet(study, [each.verified for each in known])))
    return StudyFacts(header.name or path.stem, tuple(rows))


def about_hosts(paths: Sequence[Path]) -> StudyFacts:
    """The facts about a study from the stores of its hosts: the machine, time and runs of each host. For a table in
    several files, only the name.
    """
    every = [about(path) for path in paths]
    if len(every) == 1 or not is_store(paths[0]):
        return every[0]
    headers = []
    for path in paths:
        with StudyStore.open(path, kind="order") as store:
            headers.append(store.header())
    found = [each for each in every[0].rows if each[0] not in OF_HOSTS]
    for name, each in zip(host_names(paths, headers), every, strict=True):
        found.append((name, "; ".join(f"{title}: {fact}" for title, fact in each.rows if title in OF_HOSTS)))
    return StudyFacts(every[0].name, tuple(found))


def rows(result: OrderResult, about: StudyFacts) -> list[tuple[str, str]]:
    """The facts as pairs of a name and a text."""
    tests = result.tests.values()
    used = sum(test.n_fixed + test.n_random for test in tests)
    failed = sum(test.failed for test in tests)
    lonely = sum(test.without_partner for test in tests)
    every = used + failed + lonely
    found = [("tests", f"{len(tests):,} with {used:,} values that count"), ("sequence", _sequence(result))]
    if failed:
        found.append(("left out", f"{failed:,} of {every:,} values; a failed trial {FAILURES[result.failures]}"))
    if lonely:
        found.append(("not compared", f"{lonely:,} of {every:,} values, whose pairs have a value in only one order"))
    return [*found, *about.rows]


def _sequence(result: OrderResult) -> str:
    design, (fixed, random) = result.design, result.arms
    if design.interleaved is None:
        return "unknown: the data do not show when each run took place, so drift and blocked designs cannot be detected"
    if not design.runs_fixed:
        return f"{design.runs_random:,} runs, each in its own order"
    if result.arms == ORDERS:
        said = f"{design.runs_fixed:,} runs in fixed and {design.runs_random:,} in random order"
    else:
        said = f"{design.runs_fixed:,} {fixed} and {design.runs_random:,} {random} runs"
    if not design.runs_random:
        return said
    what = ("orders", "order") if result.arms == ORDERS else ("kinds of runs", "kind")
    how = "interleaved" if design.interleaved else f"blocked: the {what[0]} are confounded with time"
    return f"{said}, {how} ({design.stretches:,} stretches of one {what[1]})"


def _times(header: Header) -> str:
    begin = datetime.fromtimestamp(header.made_ns // 10**9, UTC)
    if header.ended_ns is None:
        return f"started {begin:%Y-%m-%d %H:%M} UTC, not finished"
    minutes = (header.ended_ns - header.made_ns) / 60e9
    took = f"{minutes / 60:.1f} h" if minutes > 120 else f"{minutes:.1f} min"
    return f"started {begin:%Y-%m-%d %H:%M} UTC, took {took}"


def _host(header: Header) -> str:
    governor = header.host.get("governor")
    return ", ".join([*header.machine, *([f"governor {governor}"] if governor else [])])


def _reset(study: Study) -> str:
    reset = study.reset
    what = reset.command or reset.unit
    settle = f", then {reset.settle_s:g} s to settle" if reset.settle_s else ""
    return reset.kind + (f": {what}" if what else "") + settle


def _quiet(study: Study, found: Sequence[Verified | None]) -> str:
    """The verdicts of `quiet verify` before each run, as text, or the fact that the study requested no profile."""
    if not study.profile:
        return "no: the study requested no profile, so it ran on the host as it was"
    known = [each for each in found if each is not None]
    good = sum(each.quiet for each in known)
    said = f"profile {study.profile}: quiet before {good:,} of {len(found):,} runs"
    worst = max((lost for each in known for lost in each.lost_pct), default=None)
    said += "" if worst is None else f", at worst {worst:.3g} % of a CPU's time lost"
    drifted = sum(each.drift for each in known)
    said += f", settings had drifted before {drifted:,} of them" if drifted else ""
    missing = len(found) - len(known)
    return said + (f"; unknown before {missing:,} of them" if missing else "")

"""Which knobs and files `quiet watch` checks follows from fields of the knobs, never from their texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet.host.reader import Reader
from quiet.knobs.knob import RuleContext, Trigger
from quiet.knobs.registry import BY_NAME, KNOBS
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.settings.applied_state import AppliedState
from quiet.settings.profile import Profile, bundled, load
from quiet.watch import watched_files
from quiet.watch.watched_files import interrupts, targets
from tests import hosts

TRIGGERS: dict[str, Trigger] = {  # by the type of a target; other types have no source of events
    "unit": "service",
    "process": "service",
    "task": "task",
    "cpuset": "task",
    "irq": "device",
    "net": "device",
}


@pytest.fixture(params=hosts.ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def facts(request: pytest.FixtureRequest, tmp_path: Path) -> Facts:
    return Facts(Reader(str(hosts.unpack(request.param, tmp_path))))


def last_cpu(facts: Facts) -> CpuPartition:
    """The highest CPU isolated, all others for housekeeping."""
    last = frozenset({max(facts.online)})
    return CpuPartition(last, facts.online - last, frozenset(), "")


def watched(facts: Facts, profile: Profile) -> dict[str, set[str]]:
    record = AppliedState(profile.name, profile.name, last_cpu(facts), "", 0.0, passing=False)
    return watched_files.files(facts.reader, (*targets(profile, record, facts), *interrupts(profile, facts)))


@pytest.mark.parametrize(
    ("trigger", "names"),
    [
        ("service", "services rivals irqbalance thermald"),
        ("task", "tasks cpuset.members"),
        (
            "device",
            "irq net.adaptive net.busy_poll net.channels net.defer net.rfs net.rps net.rps_default net.rss "
            "net.threaded net.xps",
        ),
    ],
)
def test_an_event_triggers_a_check_of_the_knobs_that_it_may_affect(trigger: Trigger, names: str) -> None:
    assert watched_files.rechecked_on(trigger) == set(names.split())


@pytest.mark.slow
@pytest.mark.parametrize("profile", bundled())
def test_other_words_in_the_knobs_change_no_watched_file(
    facts: Facts, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everything() -> tuple[object, ...]:
        rechecked = [watched_files.rechecked_on(trigger) for trigger in ("service", "task", "device")]
        return watched(facts, load(profile)), watched_files.folders(), rechecked

    before = everything()
    assert before[0]
    words = "unit:x process:1 task:1 cpuset:1 irq:1 net:x /net/"
    for text in ("", words):
        reworded = tuple(knob._replace(title=text, why=text, doc=text, targets=text, moves=text) for knob in KNOBS)
        monkeypatch.setattr(watched_files, "KNOBS", reworded)
        assert everything() == before


@pytest.mark.slow
def test_a_knob_is_checked_again_on_events_that_its_targets_depend_on(facts: Facts) -> None:
    found = set()
    for knob in KNOBS:
        for choice in knob.choices:
            items = knob.rule(RuleContext(facts, last_cpu(facts), choice))
            found |= {(knob.name, TRIGGERS.get(item.target.partition(":")[0])) for item in items}
    expected = {(name, trigger) for name, trigger in found if trigger}
    assert expected
    assert {(name, BY_NAME[name].recheck_on) for name, _ in expected} == expected

"""The screening around the search: stored application by application, resumed after a kill, and what it reports."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cbench.knobs import run, stored
from cbench.knobs.design import Application, LeftOut, ScreenedKnob
from cbench.knobs.host import KnobPlan
from cbench.knobs.options import KnobOptions
from cbench.knobs.page import page
from cbench.knobs.result import MATTERS, NEEDED, UNKNOWN, WORSE, knobs_result
from cbench.knobs.search import Search
from cbench.knobs.stored import StoredScreening
from quiet import QuietError, Refused, UsageError
from tests.cbench.knobs.simulated import SimulatedHost, knobs, one_each

MATTER = ["k02", "k09", "k13"]


class KilledError(Exception):
    pass


def plan_of(every: Sequence[ScreenedKnob]) -> KnobPlan:
    names = {knob.name: "quiet" for knob in every}
    return KnobPlan("bench", "1", "0", tuple(every), (), 3, names, {}, ("isolcpus=1",))


def screening(number: int = 24, **options: object) -> StoredScreening:
    return StoredScreening.new(KnobOptions(**options), plan_of(knobs(number)))  # type: ignore[arg-type]


@contextlib.contextmanager
def nothing(left_out: LeftOut) -> Iterator[None]:
    yield


def values() -> SimulatedHost:
    return SimulatedHost(one_each(MATTER, 3.0), noise=0.02)


def conducted(path: Path, before: StoredScreening, host: SimulatedHost, kill_after: int | None = None) -> Search:
    """Applications in this store; the process is killed in the middle of the one after `kill_after`."""
    made = 0

    def measure(step: Application) -> tuple[float, Sequence[str]]:
        nonlocal made
        if made == kill_after:
            raise KilledError
        made += 1
        return host(step.left_out), ["k09", "k03"] if step.why == "no knob" else ()

    with stored.kept(path, before, ["test"]) as keeper:
        return run.conduct(before, nothing, measure, keeper, lambda *_: None)


def test_a_kill_at_each_application_does_not_change_the_answer(tmp_path: Path) -> None:
    whole = tmp_path / "whole.db"
    begun = screening()
    conducted(whole, begun, values())
    wanted = stored.read(whole)
    total = len(wanted.applications)
    for kill in range(0, total, 9):
        path, host = tmp_path / f"{kill}.db", values()
        with pytest.raises(KilledError):
            conducted(path, begun, host, kill)
        assert len(stored.read(path).applications) == kill
        conducted(path, stored.read(path), host)
        again = stored.read(path)
        assert [(each.left_out, each.value) for each in again.applications] == [
            (each.left_out, each.value) for each in wanted.applications
        ]


@pytest.mark.slow
def test_a_screening_that_is_killed_again_and_again_ends(tmp_path: Path) -> None:
    path, host = tmp_path / "k.db", values()
    begun = screening()
    before = begun
    for _ in range(40):
        try:
            search = conducted(path, before, host, 1)
            break
        except KilledError:
            before = stored.read(path)
    assert set(search.matter) == set(MATTER)


def test_the_result_names_what_matters_with_effect_and_profile(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    search = conducted(path, screening(), values())
    found = knobs_result(stored.read(path), search, {})
    assert set(found.matter) == set(MATTER) == set(found.written)
    assert len(found.inert) == 21
    assert found.undecided == found.conflicts == ()
    assert all(each.verdict == MATTERS and each.effect == pytest.approx(3.0, rel=0.1) for each in found.effects)
    assert found.finished
    assert found.check.pairs >= 1


def test_the_page_names_a_knob_that_makes_the_host_noisier_among_those_left_out(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    search = conducted(path, screening(), SimulatedHost(one_each(["k02"], 3.0), worse={"k05": 2.0}, noise=0.02))
    found = knobs_result(stored.read(path), search, {})
    assert [each.knob for each in found.effects if each.verdict == WORSE] == ["k05"]
    assert "<dt>left out</dt><dd>k05, k00, " in page(found)


def test_applications_that_are_too_few_leave_knobs_undecided(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    search = conducted(path, screening(applications=15), values())
    found = knobs_result(stored.read(path), search, {})
    assert found.applications == 15
    assert found.undecided
    assert set(found.undecided) <= set(found.written)


def test_a_budget_of_time_ends_the_search_with_a_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.db"
    before = screening(budget=17.0)
    ticks = iter(range(1000))  # each application begins at one tick and ends at the next
    monkeypatch.setattr(run.time, "monotonic", lambda: float(next(ticks)))
    search = conducted(path, before, values())
    made = stored.read(path).applications
    assert [each.phase for each in made] == ["search"] * 15 + ["verify"] * 2
    found = knobs_result(stored.read(path), search, {})
    assert found.undecided
    assert found.check.pairs == 1


def test_a_budget_for_two_applications_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.db"
    ticks = iter(range(1000))
    monkeypatch.setattr(run.time, "monotonic", lambda: float(next(ticks)))
    search = conducted(path, screening(budget=2.0), values())
    found = knobs_result(stored.read(path), search, {})
    assert found.applications == 2
    assert found.check.outcome == UNKNOWN
    assert len(found.undecided) == len(found.written) == 24


def test_data_of_another_search_are_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    conducted(path, screening(), values())
    before = stored.read(path)
    other = StoredScreening(before.identity, KnobOptions(seed=2), before.plan, before.applications)
    with pytest.raises(QuietError, match="do not fit this search"):
        run.replayed(other)


def test_a_needed_knob_is_in_the_profile_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    before = StoredScreening.new(KnobOptions(), plan_of(knobs(12, {"k02": "k07"})))
    search = conducted(path, before, SimulatedHost(one_each(["k02"], 3.0), noise=0.02))
    found = knobs_result(stored.read(path), search, {})
    assert found.written == ("k02", "k07")
    assert [(each.knob, each.verdict) for each in found.effects] == [("k02", MATTERS), ("k07", NEEDED)]
    assert found.conflicts[0].kind == "needs"


def test_a_screening_that_has_ended_is_shown_again_without_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "k.db"
    conducted(path, screening(), values())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert set(run.resume(path, lambda *_: None, lambda _: None).matter) == set(MATTER)


def test_only_root_can_start_and_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.db"
    with pytest.raises(KilledError):
        conducted(path, screening(), values(), 3)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Refused, match="run it with sudo"):
        run.start(KnobOptions(), tmp_path / "new.db", lambda *_: None, lambda _: None)
    with pytest.raises(Refused, match="run it with sudo"):
        run.resume(path, lambda *_: None, lambda _: None)
    assert not (tmp_path / "new.db").exists()


def test_a_store_without_a_screening_says_how_to_begin_one(tmp_path: Path) -> None:
    from cbench.store.store import Store

    with Store.create(tmp_path / "other.db", {}, ["test"]):
        pass
    with pytest.raises(UsageError, match="start one with: cbench screen knobs"):
        stored.read(tmp_path / "other.db")

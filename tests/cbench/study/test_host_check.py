"""The facts that a study stores about its host."""

from __future__ import annotations

import pytest

from cbench.machine import noise
from cbench.machine.passport import Passport
from cbench.study import host_check


def test_the_store_of_a_study_has_the_passport_of_its_host() -> None:
    known = Passport.parse(host_check.described(None))
    assert known is not None
    assert (known.cpu, known.kernel) != (None, None)
    assert known.profile is not None


@pytest.mark.parametrize(("quiet", "messages"), [(True, 0), (False, 1), (None, 0)])
def test_a_run_has_the_verdict_of_quiet_where_a_profile_is_applied(
    quiet: bool | None, messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = noise.NoiseVerdict(quiet, "", {"quiet": quiet, "drift": []})
    monkeypatch.setattr(noise, "verified", lambda: verdict)
    said: list[str] = []
    assert host_check.look(said.append)["quiet"] == verdict.details
    assert len(said) == messages


def test_without_a_profile_a_run_has_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "verified", lambda: None)
    assert "quiet" not in host_check.look(lambda _line: None)

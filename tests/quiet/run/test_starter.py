"""What starts a helper, and the reason when nothing does."""

from __future__ import annotations

import pytest

from quiet.run import starter


@pytest.mark.parametrize(("here", "said"), [("sudo", "sudo did"), ("doas", "doas did"), ("", "neither sudo, doas nor")])
def test_a_refusal_names_the_program_that_refused(monkeypatch: pytest.MonkeyPatch, here: str, said: str) -> None:
    monkeypatch.setattr(starter, "_which", lambda name: f"/usr/bin/{name}" if name == here else "")
    monkeypatch.setattr(starter, "_has_terminal", lambda: True)
    assert said in str(starter.refusal())

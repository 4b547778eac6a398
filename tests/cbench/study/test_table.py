"""What a study and an experiment report before they begin."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cbench.cli import app
from cbench.study import records, table


def test_without_numpy_a_terminal_shows_what_the_analysis_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = "cbench: analyzing the results will need numpy: pip install 'quiet-cbench[order]'\n"
    for terminal, installed, said in ((True, None, needed), (True, "numpy", ""), (False, None, "")):
        monkeypatch.setattr(table.sys.stderr, "isatty", lambda answer=terminal: answer)
        monkeypatch.setattr(table, "find_spec", lambda _, answer=installed: answer)
        table.warn_without_numpy()
        assert capsys.readouterr().err == said


@pytest.mark.parametrize("kind", ["order", "screen"])
def test_a_study_and_an_experiment_show_it_before_they_begin(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(table, "warn_without_numpy", lambda: shown.append(kind))
    assert CliRunner().invoke(app, [kind, "run", "no-such-file.toml"]).exit_code != 0
    assert shown == [kind]


def test_the_last_line_of_a_study_names_the_tests_that_failed() -> None:
    failures = (
        records.TestFailure("./nope", "no such program"),
        records.TestFailure("./nope", "exited with 1"),
        records.TestFailure("b", "x"),
    )
    counts = {"runs": 4, "runs_over": 4, "runs_left_out": 0, "runs_resumed": 0, "trials": 12, "trials_done": 12}
    status = records.StudyStatus(
        name="s",
        data="s.db",
        **counts,
        trials_failed=5,
        failures=failures,
        left_out=(),
        running=False,
        finished=True,
        last_ended_s_ago=1.0,
        left_s=0.0,
        trial_s_mean=1.0,
    )
    assert table.finished(status) == "finished (5 trials of ./nope, b failed); next: cbench order analyze s.db"

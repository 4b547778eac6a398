"""Messages about an experiment use its terms, and name the next command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cbench.compare import pairs as compare_pairs
from cbench.screen.config.file import parse
from cbench.screen.config.model import SCREEN
from cbench.screen.config.plan import Planned
from cbench.screen.run import study_of
from cbench.study import lock
from cbench.study.auto_resume import unit
from cbench.study.lifecycle import check
from quiet.errors import QuietError, Refused, UsageError
from quiet.settings.journal import isolated_cpus
from tests.cbench.screen.running import experiment, factor, screen, written
from tests.cbench.study.running import Command

ENV = factor("e", {"0": "environment = { V = '10' }", "1": "environment = { V = '20' }"})
QUICK = "workload = 'hash'\nparams = { n = 1000 }"


def test_compare_names_the_command_that_reads_an_experiment(tmp_path: Path) -> None:
    written(tmp_path, experiment(ENV))
    assert screen("run", "e.toml", folder=tmp_path).returncode == 0
    data = tmp_path / "e.db"
    with pytest.raises(UsageError) as caught:
        compare_pairs.load(str(data))
    said = f"{data}: the store of a screening experiment: `cbench screen analyze {data}` compares its treatments"
    assert str(caught.value) == said


@pytest.mark.slow
def test_the_hint_about_unisolated_cpus_names_the_table_of_the_workloads_file(tmp_path: Path) -> None:
    text = experiment(ENV, head="iterations = 1").replace("command = '''echo 1'''", QUICK)
    written(tmp_path, text)
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[study]" not in done.stderr
    assert isolated_cpus() or 'set profile = "bench" in [screen] to isolate them' in done.stderr


def test_a_treatment_that_cannot_be_sampled_is_called_a_treatment(monkeypatch: pytest.MonkeyPatch) -> None:
    text = experiment(ENV).replace("name = 'y'", "name = 'y'\nread = 'samples:fp'")
    made = parse(text, "e.toml", "/")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(QuietError, match=r"^e\.toml: treatment 'e=0': samples are unavailable here"):
        check(study_of(made, Planned(made).treatments), "e.toml", SCREEN)


def test_messages_about_a_changed_file_and_a_lock_name_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.0)
    path = written(tmp_path, experiment(ENV))
    assert screen("run", "e.toml", folder=tmp_path).returncode == 0
    path.write_text(path.read_text() + "# later\n")
    done = screen("resume", "e.db", folder=tmp_path)
    assert "e.toml has changed: the experiment resumes with the original file" in done.stderr
    with lock.alone(tmp_path / "e.db"), pytest.raises(Refused, match="is running this experiment"):  # noqa: SIM117
        with lock.alone(tmp_path / "e.db", kind=SCREEN):
            pass
    assert "resumes the experiment" in unit(tmp_path / "e.db", os.environ, SCREEN)


def test_a_workload_without_a_command_is_not_called_a_test() -> None:
    text = experiment(ENV).replace("command = '''echo 1'''", "timeout = 5")
    with pytest.raises(
        UsageError, match="write either a `command` or a `workload` of cbench: write exactly one of them"
    ):
        parse(text, "e.toml", "/")


def test_allowed_profilers_are_reported_in_the_form_of_a_level() -> None:
    level = factor("p", {"0": "profiler = 'none'", "1": "profiler = 'frames'"})
    with pytest.raises(UsageError, match=r"such as fp,event=cycles,period=1000000$") as caught:
        parse(experiment(level), "e.toml", "/")
    assert "samples:" not in str(caught.value)


def test_the_help_of_export_names_experiments(tmp_path: Path) -> None:
    out, _ = Command(("--help",), tmp_path, "export").communicate()
    assert "screen" in " ".join(out.split())

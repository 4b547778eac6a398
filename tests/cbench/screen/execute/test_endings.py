"""An experiment that is cut short, or whose levels cannot be set or restored: the host is restored, the data kept."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cbench.screen.data.load_store import read
from tests.cbench.running import alive
from tests.cbench.screen.running import experiment, factor, screen, started, written

HOLD = factor(
    "c",
    {
        "off": "found = true",
        "on": "command = 'echo on >>steps; touch set'\nrestore = 'rm -f set; echo off >>steps'\ncheck = 'test -e set'",
    },
)
ENV = factor("e", {"0": "environment = { V = '10' }", "1": "environment = { V = '20' }"})
WAITS = "echo $$ >>pids; until test -e go || rm once 2>/dev/null; do sleep 0.02; done; test -e set && echo 1 || echo 0"
"""A trial that ends on request: this one alone (`once`), or all from now on (`go`)."""
LONG_S = 120.0


def until(path: Path, lines: int = 1) -> None:
    limit = time.monotonic() + LONG_S
    while not path.exists() or len(path.read_text().splitlines()) < lines:
        assert time.monotonic() < limit, f"{path.name} does not come"
        time.sleep(0.01)


def trials(folder: Path) -> list[tuple[int, int]]:
    return [(trial.run, trial.position) for trial in read(folder / "e.db").trials]


def begun(folder: Path, text: str) -> tuple[int, str]:
    """Killed with -9 in its first trial with the level set; the number of that trial's process."""
    written(folder, text)
    process = started("run", "e.toml", folder=folder)
    until(folder / "pids")
    if not (folder / "set").exists():  # the first treatment is the other one
        (folder / "once").touch()
        until(folder / "pids", 2)
    process.send_signal(signal.SIGKILL)
    assert process.wait(LONG_S) == -signal.SIGKILL
    return int((folder / "pids").read_text().split()[-1]), process.communicate()[1]


def test_after_a_kill_9_in_a_trial_the_next_start_restores_its_level_and_resumes_at_the_next_trial(
    tmp_path: Path,
) -> None:
    left, _ = begun(tmp_path, experiment(HOLD, command=WAITS, head="iterations = 3\nseed = 2"))
    assert (tmp_path / "set").exists()
    done_before = trials(tmp_path)
    (tmp_path / "go").touch()
    done = screen("resume", "e.db", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "restored the levels of an earlier, killed process: c=on" in done.stderr
    assert not (tmp_path / "set").exists()
    assert not alive(left)
    assert trials(tmp_path)[: len(done_before)] == done_before
    assert trials(tmp_path) == [(run, position) for run in range(3) for position in range(2)]
    found = read(tmp_path / "e.db")
    assert {(t.treatment, t.values["y"]) for t in found.trials} == {(0, 0.0), (1, 1.0)}
    steps = (tmp_path / "steps").read_text().split()
    assert steps == ["on", "off"] * (len(steps) // 2)
    assert not (tmp_path / "e.db.set").exists()


def test_after_a_kill_9_between_iterations_of_a_batch_its_level_is_set_again(tmp_path: Path) -> None:
    hard = HOLD.replace("name = 'c'\n", "name = 'c'\nhard = true\n", 1)
    text = experiment(hard, ENV, command=WAITS, head="iterations = 2\nsequence = ['on', 'off']")
    begun(tmp_path, text)
    (tmp_path / "go").touch()
    done = screen("resume", "e.db", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = read(tmp_path / "e.db")
    assert [t.values["y"] for t in found.trials] == [1.0] * 4 + [0.0] * 4
    assert (tmp_path / "steps").read_text().split() == ["on", "off", "on", "off"]


def test_ctrl_c_restores_the_level_at_once(tmp_path: Path) -> None:
    written(tmp_path, experiment(HOLD, command=WAITS, head="iterations = 1\nseed = 1"))
    process = started("run", "e.toml", folder=tmp_path)
    until(tmp_path / "pids")
    if not (tmp_path / "set").exists():
        (tmp_path / "once").touch()
        until(tmp_path / "pids", 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(LONG_S) == 130
    assert "finished trials are kept; resume with: cbench screen resume e.db" in process.communicate()[1]
    assert not (tmp_path / "set").exists()
    assert not (tmp_path / "e.db.set").exists()


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("command = 'touch set; echo no such luck >&2; exit 3'\nrestore = 'rm set'", "exited with 3: no such luck"),
        ("command = 'touch set'\nrestore = 'rm set'\ncheck = 'false'", "cannot be confirmed: false: exited with 1"),
    ],
)
def test_a_level_that_cannot_be_set_ends_the_experiment_with_the_host_restored_and_the_data_kept(
    tmp_path: Path, way: str, words: str
) -> None:
    text = experiment(factor("c", {"off": "found = true", "on": way}), head="iterations = 9\nseed = 1")
    written(tmp_path, text)
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 3
    assert "c=on cannot be" in done.stderr
    assert words in done.stderr
    assert "finished trials are kept; resume with: cbench screen resume e.db" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "set").exists()
    assert all(found == (0, number) for number, found in enumerate(trials(tmp_path)))


@pytest.mark.slow
def test_a_level_that_cannot_be_restored_ends_it_with_4_and_the_next_start_tries_again(tmp_path: Path) -> None:
    way = "command = 'touch set'\nrestore = 'test -e may && rm -f set'"
    written(tmp_path, experiment(factor("c", {"off": "found = true", "on": way}), head="iterations = 2"))
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 4
    assert "c=on cannot be restored: test -e may && rm -f set: exited with 1" in done.stderr
    before = trials(tmp_path)
    assert before  # the trial itself is kept
    assert screen("resume", "e.db", folder=tmp_path).returncode == 4
    assert trials(tmp_path) == before
    (tmp_path / "may").touch()
    done = screen("resume", "e.db", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(trials(tmp_path)) == 4
    assert not (tmp_path / "set").exists()


@pytest.mark.slow
def test_a_restore_that_never_succeeds_is_reported_with_its_file_and_a_way_out_that_works(tmp_path: Path) -> None:
    way = "command = 'true'\nrestore = 'false'"
    head = "iterations = 1\nsequence = ['off', 'on']"
    written(tmp_path, experiment(factor("c", {"off": "found = true", "on": way}, "hard = true"), ENV, head=head))
    for arguments in (("run", "e.toml"), ("resume", "e.db")):
        done = screen(*arguments, folder=tmp_path)
        assert done.returncode == 4
        assert "e.db.set lists the remaining settings: restore them by hand and remove the file" in done.stderr
    assert json.loads(screen("status", "e.db", "--json", folder=tmp_path).stdout)["set"] == ["c=on"]
    said = screen("status", "e.db", folder=tmp_path).stdout
    assert "still set on this host: c=on; `cbench screen resume e.db` restores these settings first" in said
    (tmp_path / "e.db.set").unlink()
    assert screen("resume", "e.db", folder=tmp_path).returncode == 0
    assert json.loads(screen("status", "e.db", "--json", folder=tmp_path).stdout)["set"] == []


@pytest.mark.slow
def test_after_a_kill_9_status_and_the_analysis_name_the_levels_still_set(tmp_path: Path) -> None:
    begun(tmp_path, experiment(HOLD, command=WAITS, head="iterations = 3\nseed = 2"))
    assert "still set on this host: c=on;" in screen("status", "e.db", folder=tmp_path).stdout
    said = "c=on is still set on this host: `cbench screen resume` restores it"
    assert said in read(tmp_path / "e.db").warnings
    (tmp_path / "go").touch()
    assert screen("resume", "e.db", folder=tmp_path).returncode == 0
    assert "still set" not in screen("status", "e.db", folder=tmp_path).stdout
    assert said not in read(tmp_path / "e.db").warnings


def test_a_failed_build_leaves_no_store_and_names_the_level(tmp_path: Path) -> None:
    levels = {"good": "build = 'true'", "bad": "build = 'echo not C >&2; exit 1'"}
    written(tmp_path, experiment(factor("opt", levels)))
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 2
    assert "opt=bad cannot be built: echo not C >&2; exit 1: exited with 1: not C" in done.stderr
    assert not (tmp_path / "e.db").exists()
    written(tmp_path, experiment(factor("opt", levels | {"bad": "build = 'touch $CBENCH_BUILD/x'"})))
    assert screen("run", "e.toml", folder=tmp_path).returncode == 0


def test_an_experiment_whose_setup_fails_leaves_no_store(tmp_path: Path) -> None:
    levels = {"0": "environment = { A = '0' }", "1": "environment = { A = '1' }"}
    written(tmp_path, experiment(factor("a", levels), head="iterations = 1\nsetup = ['false']"))
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 2
    assert "nothing was measured and e.db was removed; `cbench screen run` starts again" in done.stderr
    assert not (tmp_path / "e.db").exists()


def test_a_folder_with_other_files_is_not_treated_as_a_build(tmp_path: Path) -> None:
    (tmp_path / "e.db.builds").mkdir()
    (tmp_path / "e.db.builds" / "letter").touch()
    written(tmp_path, experiment(factor("b", {"0": "build = 'true'", "1": "build = ':'"})))
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 3
    assert "e.db.builds/letter: not created by a build; move it away" in done.stderr
    assert (tmp_path / "e.db.builds" / "letter").exists()


def test_settings_left_by_a_deleted_experiment_are_restored_by_the_next_one_of_the_same_name(tmp_path: Path) -> None:
    begun(tmp_path, experiment(HOLD, command=WAITS, head="iterations = 1"))
    (tmp_path / "go").touch()  # its trial ends: no process knows it any more
    (tmp_path / "e.db").unlink()
    written(tmp_path, experiment(ENV))
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "restored the levels of an earlier, killed process: c=on" in done.stderr
    assert not (tmp_path / "set").exists()


@pytest.mark.slow
def test_changed_build_artifacts_prevent_a_resume(tmp_path: Path) -> None:
    levels = {"0": "build = 'echo 1 >$CBENCH_BUILD/n'", "1": "build = 'echo 2 >$CBENCH_BUILD/n'"}
    text = experiment(factor("b", levels), HOLD, command=f"{WAITS}; cat $CBENCH_BUILD/n")
    begun(tmp_path, text)
    (tmp_path / "go").touch()
    (tmp_path / "e.db.builds" / "0001" / "n").write_text("3\n")
    done = screen("resume", "e.db", folder=tmp_path)
    assert done.returncode == 3
    assert "e.db.builds/0001: the files or the build commands have changed since the build" in done.stderr
    (tmp_path / "e.db.builds" / "0001" / "n").write_text("2\n")
    assert screen("resume", "e.db", folder=tmp_path).returncode == 0
    assert {(t.treatment // 2, t.values["y"]) for t in read(tmp_path / "e.db").trials} == {(0, 1.0), (1, 2.0)}


def test_a_batch_that_could_not_be_reset_is_skipped_as_a_whole_and_the_others_run(tmp_path: Path) -> None:
    hard = factor("h", {"0": "environment = { H = '0' }", "1": "environment = { H = '1' }"}, "hard = true")
    more = "[reset]\nkind = 'command'\ncommand = 'echo x >>resets; test $CBENCH_LEVEL_H = 0'\n"
    text = experiment(hard, ENV, command="echo $H", head="iterations = 3\nsequence = ['1', '0']", more=more)
    written(tmp_path, text)
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = read(tmp_path / "e.db")
    assert {t.batch for t in found.trials} == {1}
    assert len((tmp_path / "resets").read_text().split()) == 2
    assert "3 of 6 iterations were left out: not reset: echo x" in found.warnings[0]


def test_missing_cpus_are_refused_before_anything_runs(tmp_path: Path) -> None:
    written(tmp_path, experiment(factor("cpu", {"0": "found = true", "1": "cpus = '4000'"})))
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 3
    assert "e.toml: cpu=1 cannot be set here: CPUs 4000: Invalid argument" in done.stderr
    assert not (tmp_path / "e.db").exists()


def test_an_existing_store_is_not_overwritten(tmp_path: Path) -> None:
    written(tmp_path, experiment(ENV))
    assert screen("run", "e.toml", folder=tmp_path).returncode == 0
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 2
    assert "e.db: already exists; `cbench screen resume e.db` continues it" in done.stderr
    done = screen("status", "e.db", folder=tmp_path)
    assert "4 of 4 trials, 2 of 2 runs\nfinished\n" in done.stdout


@pytest.mark.slow
def test_kill_9_at_random_moments_loses_nothing_doubles_nothing_and_leaves_nothing_set(tmp_path: Path) -> None:
    """Each moment is drawn over some trials' time; a killed process is resumed until it is done."""
    draw = random.Random(1855)
    written(
        tmp_path,
        experiment(HOLD, ENV, command="sleep 0.02; test -e set && echo 1$V || echo $V", head="iterations = 40"),
    )
    kills, arguments = 0, ("run", "e.toml")
    while kills < 20:
        process = started(*arguments, folder=tmp_path)
        try:
            process.wait(draw.uniform(0.02, 0.6))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(LONG_S)
            kills += 1
        if screen("status", "e.db", folder=tmp_path).returncode == 0:
            arguments = ("resume", "e.db")
    assert kills >= 5
    done = screen(*arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = read(tmp_path / "e.db")
    assert [(t.run, t.position) for t in found.trials] == [
        (run, position) for run in range(40) for position in range(4)
    ]
    expected = {0: 10.0, 1: 20.0, 2: 110.0, 3: 120.0}
    assert all(t.values["y"] == expected[t.treatment] for t in found.trials)
    assert not (tmp_path / "set").exists()
    assert not (tmp_path / "e.db.set").exists()

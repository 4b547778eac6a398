"""An experiment that ran, as the data of its analysis: everything that its file declares is there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import typer

from cbench.screen.analysis.analysis import analyse
from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.command import end
from cbench.screen.data.read_table import read
from cbench.screen.data.roles import Chosen
from cbench.study.store import StudyStore
from quiet.errors import UsageError
from tests.cbench.screen.running import experiment, factor, screen, written
from tests.cbench.study.running import Command

ENV = factor("size", {"small": "environment = { S = '1' }", "large": "environment = { S = '3' }"})
WAY = factor("way", {"a": "environment = { W = '0' }", "b": "environment = { W = '1' }"})
MORE = """
[[response]]
name = "z"
read = "regex:z=(.*)"
unit = "ms"
better = "higher"
[[constraint]]
kind = "questionable"
where = "size=large way=b"
reason = "nobody runs it so"
[[constraint]]
kind = "unobtainable"
where = "way=a"
responses = ["z"]
reason = "there is none"
[[abridgment]]
name = "only small"
only = ["size=small"]
"""
COMMAND = 'test "$W" = 1 && echo z=$((S * 2)); echo $((S * 10 + W))'


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("screen")
    written(folder, experiment(ENV, WAY, command=COMMAND, head="iterations = 8\nseed = 5\nalpha = 0.1", more=MORE))
    done = screen("run", "e.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder / "e.db"


def test_a_store_contains_the_declarations_of_the_file(store: Path) -> None:
    data = read(store)
    assert [(each.name, each.levels) for each in data.factors] == [("size", ("small", "large")), ("way", ("a", "b"))]
    assert [each.name for each in data.series] == ["y", "z"]
    assert (data.alpha, data.seed, len(data.treatments)) == (0.1, 5, 4)
    assert {data.label(number): why for number, why in data.questionable.items()} == {
        "size=large way=b": "nobody runs it so"
    }
    (chosen,) = data.filters
    assert (chosen.name, chosen.words, chosen.keep.tolist()) == (
        "only small",
        "only size=small",
        [True, True, False, False],
    )
    first, second = data.series
    assert first.of(0).tolist() == [10.0] * 8
    assert first.of(3).tolist() == [31.0] * 8
    assert (second.unit, second.better, second.unobtainable) == ("ms", "higher", {0, 2})
    assert second.of(3).tolist() == [6.0] * 8
    assert first.sequence.tolist() == list(range(32))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_exported_experiment_is_the_same_experiment(store: Path, kind: str) -> None:
    folder = store.parent
    command = Command(("e.db", "--format", kind, "-o", f"e.{kind}"), folder, "export")
    _, said = command.communicate()
    assert command.returncode == 0
    assert said == (
        "cbench: note: the table omits the units and directions of the responses, the order of the levels, alpha and "
        "the abridgments; e.db contains them\n"
    )
    kept, table = read(store), read(folder / f"e.{kind}")
    assert [each.name for each in table.factors] == ["size", "way"]
    assert [each.name for each in table.series] == ["y", "z"]
    assert list(table.questionable.values()) == ["nobody runs it so"]
    for one, other in zip(kept.series, table.series, strict=True):
        names = [{data.label(number) for number in each.unobtainable} for data, each in ((kept, one), (table, other))]
        assert names[0] == names[1]
        for number in range(4):
            same = next(at for at in range(4) if table.label(at) == kept.label(number))
            assert one.of(number).tolist() == other.of(same).tolist()


def test_an_experiment_is_analyzed_with_its_own_alpha_and_its_filters(store: Path) -> None:
    done = screen("analyze", "e.db", "--json", "--subsamples", "0", folder=store.parent)
    made = json.loads(done.stdout)
    assert (done.returncode, made["alpha"], made["factors_matter"]) == (1, 0.1, True)
    assert [each["name"] for each in made["design"]["sets"]] == [
        "complete",
        "without questionable treatments",
        "only small",
    ]
    assert made["responses"]["y"]["effects"]["size"]["effect"] == 20
    assert made["responses"]["z"]["unobtainable"] == ["size=small way=a", "size=large way=a"]
    small = screen("analyze", "e.db", "--json", "--abridgment", "only small", folder=store.parent)
    assert json.loads(small.stdout)["filter"] == {"name": "only small", "words": "only size=small", "treatments": 2}


def unfinished(store: Path, path: Path, change: str) -> Path:
    """A copy of a store, in which the last six of eight iterations have not ended. `change`: how values change."""
    shutil.copy(store, path)
    with StudyStore.open(path, writing=True) as opened:
        opened._connection.execute("UPDATE study_run SET ended_ns = NULL WHERE run > 1")
        opened._connection.execute(f"UPDATE study_value SET value = {change}")
    return path


def test_an_unfinished_experiment_without_an_effect_has_no_answer(store: Path, tmp_path: Path) -> None:
    path = unfinished(store, tmp_path / "e.db", "(run * 7919 + position * 31) % 101")
    result = analyse(read(path), ScreenOptions(subsamples=0))
    assert result.design.iterations_left == 6
    assert result.verdict[0].startswith("effects that matter: none found so far, with 6 iterations left (")
    said = f"the experiment is not finished: 6 of 8 iterations are left; to complete it: cbench screen resume {path}"
    assert f"beware: {said}" in result.verdict
    with pytest.raises(typer.Exit) as ended:
        end("e.db", result)
    assert ended.value.exit_code == 2


def test_an_unfinished_experiment_that_shows_an_effect_has_an_answer(store: Path, tmp_path: Path) -> None:
    result = analyse(read(unfinished(store, tmp_path / "e.db", "value")), ScreenOptions(subsamples=0))
    assert result.design.iterations_left == 6
    assert result.verdict[0].startswith("effects that matter: size (")
    with pytest.raises(typer.Exit) as ended:
        end("e.db", result)
    assert ended.value.exit_code == 1


@pytest.mark.slow
def test_a_report_of_an_experiment_is_written(store: Path) -> None:
    done = screen("report", "e.db", "-o", "e.html", folder=store.parent)
    assert done.returncode == 1, done.stderr
    text = (store.parent / "e.html").read_text()
    assert "nobody runs it so" in text
    assert "only small" in text


def test_columns_are_for_tables_only(store: Path) -> None:
    with pytest.raises(UsageError, match=r"apply only to a table, but .* is a store"):
        read(store, Chosen(values=("y",)))


def test_failed_trials_are_named_with_their_reason(tmp_path: Path) -> None:
    written(tmp_path, experiment(ENV, command='test "$S" = 1 && echo 1', head="iterations = 3"))
    screen("run", "e.toml", folder=tmp_path)
    data = read(tmp_path / "e.db")
    (series,) = data.series
    assert (series.of(0).size, series.of(1).size) == (3, 0)
    assert any(line.startswith("failed trials: size=large (3); first failure: ") for line in data.warnings)
    done = screen("analyze", "e.db", folder=tmp_path)
    assert done.returncode == 2
    assert "beware: y has no values of size=large" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("factors", "runs"), [(3, 12), (4, 12), (5, 16)])
def test_rows_that_a_design_repeats_are_one_treatment_with_more_values(tmp_path: Path, factors: int, runs: int) -> None:
    head = f"iterations = 2\ndesign = 'plackett-burman'\nruns = {runs}"
    levels = {
        name: {"0": f"environment = {{{name.upper()}='0'}}", "1": f"environment = {{{name.upper()}='1'}}"}
        for name in "abcde"
    }
    text = experiment(*(factor(name, levels[name]) for name in "abcde"[:factors]), command="echo $A.$RANDOM", head=head)
    ran = screen("run", written(tmp_path, text), folder=tmp_path)
    assert ran.returncode == 0
    data = read(tmp_path / "e.db")
    assert len(set(data.treatments)) == len(data.treatments) < runs
    assert data.series[0].value.size == 2 * runs
    shown = screen("analyze", tmp_path / "e.db", "--json", folder=tmp_path)
    assert json.loads(shown.stdout)["design"]["sets"][0]["treatments"] == len(data.treatments)

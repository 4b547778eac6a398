"""The experiments of docs/screens: their files load, plan what they state, and run for real."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cbench.screen.config import treatments
from cbench.screen.config.file import load
from cbench.screen.data.load_store import read
from tests import CHECKOUT
from tests.cbench.running import cbench
from tests.cbench.study.instruments.perf import NEEDS_PERF

SCREENS = CHECKOUT / "docs" / "screens"
FILES = sorted(SCREENS.glob("*/screen.toml"))
NAMES = [file.parent.name for file in FILES]
SHIPPED = ["planted", "tn1855"]
each_screen = pytest.mark.parametrize("file", FILES, ids=NAMES)
CFLAGS = ["-O2", "-Wall", "-Wextra", "-Werror"]


def screen(*arguments: str, folder: Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return cbench("screen", *arguments, env={} if path is None else {"PATH": path}, cwd=folder)


def shortened(name: str, folder: Path, iterations: int) -> Path:
    """A copy of an experiment with fewer iterations."""
    made = Path(shutil.copytree(SCREENS / name, folder / name)) / "screen.toml"
    head, line, rest = made.read_text().partition("iterations = ")
    made.write_text(f"{head}{line}{iterations}\n#{rest}")
    return made


def test_every_promised_experiment_exists_and_is_in_the_table() -> None:
    assert NAMES == SHIPPED
    page = (SCREENS / "README.md").read_text()
    for name in SHIPPED:
        assert f"| [{name}](#{name}) |" in page
        assert f"\n## {name}\n" in page


@each_screen
def test_an_experiment_loads_and_has_its_folders_name(file: Path) -> None:
    found = load(file)
    assert found.name == file.parent.name
    assert found.alpha == 0.05
    assert found.iterations >= 12


@pytest.mark.parametrize("source", sorted(SCREENS.glob("*/*.c")), ids=lambda path: path.name)
def test_their_programs_compile_without_a_warning(source: Path, tmp_path: Path) -> None:
    subprocess.run(["cc", *CFLAGS, "-c", "-o", str(tmp_path / "made.o"), str(source)], check=True)


def test_the_technical_notes_design_has_its_treatments_and_its_constraints() -> None:
    found = treatments.treatments(load(SCREENS / "tn1855" / "screen.toml"))
    assert len(found) == 12
    assert [each.levels["prf"] for each in found if "samples" in each.unobtainable] == ["0"] * 4
    assert [each.levels for each in found if each.questionable] == [
        {"env": env, "fp": "0", "prf": "2"} for env in ("0", "1")
    ]


@pytest.mark.parametrize(
    ("number", "kept", "counts"),
    [
        (0, 10, {"env": [5, 5], "fp": [4, 6], "prf": [4, 4, 2]}),
        (1, 8, {"env": [4, 4], "fp": [4, 4], "prf": [4, 4, 0]}),
        (2, 4, {"env": [2, 2], "fp": [2, 2], "prf": [0, 2, 2]}),
    ],
)
def test_its_abridgments_keep_what_the_technical_note_keeps(
    number: int, kept: int, counts: dict[str, list[int]]
) -> None:
    made = load(SCREENS / "tn1855" / "screen.toml")
    left = [each for each in treatments.treatments(made) if made.abridgments[number].keeps(each.levels)]
    assert len(left) == kept
    for factor in made.factors:
        assert [sum(each.levels[factor.name] == level for each in left) for level in factor.names] == (
            counts[factor.name]
        )


@pytest.mark.slow
def test_the_aliquot_program_has_frame_pointers_on_request(tmp_path: Path) -> None:
    levels = load(SCREENS / "tn1855" / "screen.toml").factor("fp").levels
    source, program = SCREENS / "tn1855" / "aliquot.c", tmp_path / "aliquot"
    kept = []
    for level in levels:
        assert level.flags is not None
        command = ["cc", *CFLAGS, level.flags]
        subprocess.run([*command, "-o", str(program), str(source)], check=True)
        done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
        assert done.stdout == "32812701817256 154\n"
        made = subprocess.run([*command, "-S", "-o", "-", str(source)], capture_output=True, text=True, check=True)
        kept.append("movq\t%rsp, %rbp" in made.stdout or "mov\tx29, sp" in made.stdout)
    assert kept == [False, True]


def test_a_sequence_that_ends_or_repeats_is_followed_to_that_point(tmp_path: Path) -> None:
    program = tmp_path / "aliquot"
    subprocess.run(["cc", *CFLAGS, "-o", str(program), str(SCREENS / "tn1855" / "aliquot.c")], check=True)
    for start, said in (("12", "16 8\n"), ("1", "1 2\n"), ("0", "0 1\n"), ("6", "6 10000\n"), ("220", "284 10000\n")):
        assert subprocess.run([str(program), start], capture_output=True, text=True, check=True).stdout == said


@pytest.mark.slow
def test_without_perf_the_technical_notes_experiment_is_refused_in_one_line(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "cc", "as", "ld"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    done = screen("run", str(shortened("tn1855", tmp_path, 1)), folder=tmp_path, path=str(tools))
    assert done.returncode == 2
    assert "perf is not installed (Debian: apt install linux-perf)" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.db*"))


@NEEDS_PERF
@pytest.mark.slow
def test_the_technical_notes_experiment_runs_here(tmp_path: Path) -> None:
    done = screen("run", str(shortened("tn1855", tmp_path, 1)), "-o", "tn.db", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = read(tmp_path / "tn.db")
    assert len(found.trials) == 12
    assert not [each.failure for each in found.trials if each.failure]
    for each in found.trials:
        assert ("samples" in each.values) == (found.treatments[each.treatment].levels["prf"] != "0")
        assert each.values["elapsed"] > 0
    assert {name: found.units[name] for name in ("elapsed", "samples")} == {"elapsed": "s", "samples": "samples"}


@pytest.mark.slow
@pytest.mark.long
def test_the_planted_experiment_shows_the_planted_effects_and_nothing_else(tmp_path: Path) -> None:
    # twice as often as in the file, so that one false alarm in a thousand runs is enough to find the effects
    file = str(shortened("planted", tmp_path, 40))
    for data in ("p.db", "q.db"):  # two false alarms, one after the other, are one in a million
        done = screen("run", file, "-o", data, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        said = screen("analyze", data, "--alpha", "0.001", "--json", folder=tmp_path)
        found = json.loads(said.stdout)["responses"]["duration"]
        effects = {name for name, each in found["effects"].items() if each["significant"]}
        interactions = [each["factors"] for each in found["interactions"] if each["significant"]]
        if (effects, interactions) == ({"work", "step"}, [["work", "step"]]):
            return
    raise AssertionError((effects, interactions))

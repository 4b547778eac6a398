"""docs/schemas: up to date, and real files and real outputs validate."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cbench.compare.result import compare
from cbench.fleet.state import FleetState, NodeState
from cbench.results import to_json
from cbench.screen.config.example import EXAMPLE as SCREEN
from cbench.study.example import EXAMPLE as STUDY
from tests import CHECKOUT
from tests.cbench.screen.screens import analysed, pilot, table
from tests.cbench.store.storing import noisy
from tests.cbench.store.storing import stored as stored_run
from tests.cbench.study.storing import stored as stored_study
from tests.reference import schema_examples as examples
from tests.reference import schemas

FLEET = '[fleet]\ncommand = "cbench run hash"\nboot = "bench"\n'
FILES = {
    "study": [STUDY, examples.STUDY, examples.SUITE, examples.OTHER_SUITE],
    "screen": [SCREEN, examples.SCREEN, examples.FRACTION],
    "gate": [examples.GATE],
    "fleet": [FLEET],
    "profile": [],
}
SHIPPED = [
    *(("study", path) for path in sorted(CHECKOUT.glob("docs/studies/*/study.toml"))),
    *(("screen", path) for path in sorted(CHECKOUT.glob("docs/screens/*/screen.toml"))),
    *(("profile", path) for path in sorted(CHECKOUT.glob("quiet/profiles/*.toml"))),
]
MEASURING = [
    "quiet noise --cpus 0 --duration 0.2",
    "quiet noise --cpus 0 --duration 0.2 --max-gap 1ns",
    "quiet verify --duration 0.2",
    "quiet why -- true",
    "cbench run hash --quick --trials 5 --processes 2",
    "cbench run --trials 3 -- true",
    "cbench ab --blocks 2 -- true true",
    "cbench ab --blocks 10 -- true true",
    "cbench doctor --quick",
    "cbench gate gate.toml",
]


def errors(name: str, value: object) -> list[str]:
    """The errors of the schema of this name for a value."""
    schema = json.loads((schemas.FOLDER / f"{name}.json").read_text())
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(value)]


def output(words: str, folder: Path) -> Any:
    """The output of a real command with --json in a directory."""
    program, *arguments = words.split()
    command = [sys.executable, "-P", "-m", program, arguments[0], "--json", *arguments[1:]]
    if arguments[0] == "order":
        command = [sys.executable, "-P", "-m", program, *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, check=False)
    assert done.stdout, done.stderr  # the exit code may say that nothing can be judged
    return json.loads(done.stdout)


def test_the_schemas_are_up_to_date() -> None:
    kept = {path.name: path.read_text() for path in schemas.FOLDER.glob("*.json")}
    assert kept == schemas.written(), "run: python -m tests.reference.schemas"


@pytest.mark.parametrize("path", sorted(schemas.FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_a_schema_is_valid(path: Path) -> None:
    Draft202012Validator.check_schema(json.loads(path.read_text()))


@pytest.mark.parametrize("name", FILES)
def test_examples_validate_and_a_wrong_key_is_rejected(name: str) -> None:
    for text in FILES[name] or [schemas.PROFILE.read_text()]:
        content = tomllib.loads(text)
        assert errors(name, content) == []
        assert errors(name, {**content, "repetition": 3})
        inner = next((key for key, value in content.items() if isinstance(value, dict)), None)
        if inner is not None:
            assert errors(name, {**content, inner: {**content[inner], "knots": "quiet"}})


@pytest.mark.parametrize(("name", "path"), SHIPPED, ids=lambda value: str(value).removeprefix(f"{CHECKOUT}/"))
def test_a_shipped_file_validates(name: str, path: Path) -> None:
    assert errors(name, tomllib.loads(path.read_text())) == []


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("study", "[study]\ndesign = 'williams'\n"),
        ("study", "[study]\nrepetitions = 0\n"),
        ("profile", "[knobs]\nirqbalance = 'loud'\n"),
        ("gate", "blocks = 'many'\n"),
        ("screen", "[screen]\niterations = 2\n[[factor]]\nname = 'a'\n[[factor.level]]\naslr = true\n"),
    ],
)
def test_a_wrong_value_is_rejected(name: str, wrong: str) -> None:
    assert errors(name, tomllib.loads(wrong))


def test_the_example_of_the_gate_page_validates() -> None:
    page = (CHECKOUT / "docs" / "gate.md").read_text()
    example = page.split("\n## gate.toml\n")[1].split("\n\n")[1]
    assert "threshold" in example
    assert errors("gate", tomllib.loads("\n".join(line.strip() for line in example.splitlines()))) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["quiet status", "quiet plan", "quiet plan --profile strict", "quiet verify --duration 0"]
)
def test_output_of_quiet_on_this_host_validates(words: str, tmp_path: Path) -> None:
    assert errors("-".join(words.split()[:2]), output(words, tmp_path)) == []


@pytest.mark.slow
def test_output_of_cbench_for_stored_trials_validates(tmp_path: Path) -> None:
    stored_run(tmp_path / "a.db", noisy(1000, 4, 20, 1))
    stored_run(tmp_path / "b.db", noisy(1100, 4, 20, 2))
    compared = compare(tmp_path / "a.db", tmp_path / "b.db")
    assert errors("cbench-compare", json.loads(json.dumps(to_json(compared)))) == []
    assert errors("cbench-status", output("cbench status a.db b.db", tmp_path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("design", ["shuffled", "random"])
def test_the_analysis_of_a_study_validates(design: str, tmp_path: Path) -> None:
    stored_study(tmp_path / "s.db", 3, design, 8, lambda test, place, *_: 100.0 + test + place)
    assert errors("cbench-order-analyze", output("cbench order analyze s.db", tmp_path)) == []


def test_the_analysis_of_a_screening_experiment_validates(tmp_path: Path) -> None:
    rows = [
        {**row, "iteration": iteration, "value": row["value"] + (7 * iteration + number) % 5}
        for iteration in range(8)
        for number, row in enumerate(pilot())
    ]
    table(tmp_path / "pilot.csv", rows)
    result = analysed(tmp_path / "pilot.csv")[0]
    assert errors("cbench-screen-analyze", result) == []
    assert errors("cbench-screen-analyze", {**result, "verdicts": []})


def test_the_state_of_a_fleet_validates() -> None:
    fleet = FleetState("f", "study.toml", "hosts.ini").with_node("n1", NodeState(trials=5, left_s=1.5))
    assert errors("cbench-fleet-status", to_json(fleet)) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", MEASURING)
def test_output_of_a_measurement_validates(words: str, tmp_path: Path) -> None:
    (tmp_path / "gate.toml").write_text('old = "true"\nnew = "true"\nblocks = 6\nconfirm = false\n')
    assert errors("-".join(words.split()[:2]), output(words, tmp_path)) == []

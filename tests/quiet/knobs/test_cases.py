"""One file in cases/ is one behavior of the knobs: a machine made of files, and the exact plan for it.

sentence  what is shown            knobs    the profile's choices, as in a profile
cpus      the isolated CPUs        machine  arguments of tests.trees.machine; cpufreq: of tests.trees.cpufreq
nic       network interfaces: of tests.trees.nic
task      threads                  files    further files, or other contents; absent: files that are not there
services  the profile's [services]
modes     files' modes             change, skip: all that the plan has, in order; a skip's reason is a part of it
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from quiet.host.reader import Reader
from quiet.knobs.registry import KNOBS
from quiet.machine.facts import Facts
from quiet.settings import plan
from quiet.settings.profile import check
from tests import trees

FOLDER = Path(__file__).with_name("cases")
CASES = {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}
KEYS = {
    *("sentence", "knobs", "services", "cpus", "machine", "cpufreq", "nic", "task", "files", "absent", "modes"),
    *("change", "skip"),
}


def tree(root: Path, case: dict[str, Any]) -> Path:
    files = trees.machine(**case.get("machine", {}))
    if frequency := case.get("cpufreq"):
        files |= trees.cpufreq(**frequency)
    for fields in case.get("nic", []):
        files |= trees.nic(**fields)
    for fields in case.get("task", []):
        files |= trees.task(**fields)
    files |= case.get("files", {})
    trees.plant(root, {name: text for name, text in files.items() if name not in case.get("absent", [])})
    for name, mode in case.get("modes", {}).items():
        (root / name).chmod(mode)
    return root


def _profile(case: dict[str, Any]) -> dict[str, Any]:
    return {"cpus": {"isolated": case["cpus"]}, "knobs": case["knobs"], "services": case.get("services", {})}


@pytest.mark.parametrize("name", CASES)
def test_a_case_gives_exactly_its_changes_and_skips(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    reader = Reader(str(tree(tmp_path, case)))
    profile = check(_profile(case), "profile case", "case")
    facts = Facts(reader)
    made = plan.make(reader, profile, profile.choose(facts), facts=facts)
    labelled = [{"current": None, "label": ""} | change for change in case.get("change", [])]
    fields = ("target", "current", "wanted", "label")
    assert [{name: getattr(c, name) for name in fields} for c in made.changes] == labelled, case["sentence"]
    skips = [(skip.target, skip.reason, skip.label) for skip in made.skips]
    expected = case.get("skip", [])
    assert [skip[0] for skip in skips] == [skip["target"] for skip in expected], case["sentence"]
    for (_, reason, label), skip in zip(skips, expected, strict=True):
        assert skip["reason"] in reason
        assert skip.get("label", label) == label
    assert all(change.why for change in made.changes)


@pytest.mark.parametrize("name", CASES)
def test_a_case_has_a_sentence_and_no_other_key_than_the_known(name: str) -> None:
    assert CASES[name].keys() <= KEYS
    assert len(CASES[name]["sentence"]) > 20


TELLING = {"modules"}  # it names what it finds, and never changes anything


@pytest.mark.parametrize("knob", [knob.name for knob in KNOBS if knob.name not in TELLING])
def test_every_knob_has_a_case_in_which_it_changes_something(knob: str) -> None:
    assert any(knob in case["knobs"] and case.get("change") for case in CASES.values())

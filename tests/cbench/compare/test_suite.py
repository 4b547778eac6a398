"""`cbench compare` over whole suites: outcomes, exit codes, the table, and what belongs to no other test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cbench.compare.pairs import PossibleRename, possible_renames
from cbench.compare.result import CompareResult, compare
from cbench.compare.suite import LARGER, SLOWER, SMALLER, worse
from cbench.results import to_json
from tests.cbench.compare.comparing import fails
from tests.cbench.compare.suites import names, suite
from tests.cbench.running import cbench
from tests.cbench.store.storing import CYCLES, HOST, noisy, stored


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return suite(tmp_path / "old.json", names(6), seed=1)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    changed = names(6) | {"test_b": 1.05, "test_d": 0.9, "test_e": 1.004}
    return suite(tmp_path / "new.json", changed, seed=2)


def outcomes(result: CompareResult) -> dict[str, str]:
    return {name: test.outcome for name, test in result.tests.items()}


def test_each_test_has_an_outcome_and_regressions_come_first(old: Path, new: Path) -> None:
    found = compare(old, new)
    assert list(outcomes(found).items())[:3] == [("test_b", "slower"), ("test_e", "slower"), ("test_d", "faster")]
    assert {outcomes(found)[f"test_{letter}"] for letter in "acf"} == {"no difference shown"}
    assert (found.regressions, found.improvements, found.cannot_tell) == (("test_b", "test_e"), ("test_d",), ())
    assert (found.exit_code, found.threshold_pct) == (1, None)
    assert found.counted == "6 tests: 2 slower, 1 faster, 3 no difference shown; alpha 5 % over all tests (Holm)"


def test_a_threshold_ignores_smaller_slowdowns_and_makes_same_a_claim(old: Path, new: Path) -> None:
    found = compare(old, new, threshold="1%")
    assert outcomes(found)["test_b"] == "slower"
    assert {outcomes(found)[f"test_{letter}"] for letter in "acef"} == {"same"}
    assert found.regressions == ("test_b",)
    assert found.counted == "6 tests: 1 slower, 1 faster, 4 same within 1 %; alpha 5 % over all tests (Holm)"
    same = found.tests["test_a"]
    assert same.p_same_adjusted is not None
    assert same.p_same_adjusted <= 0.05
    assert same.interval_pct is not None
    assert -1 < same.interval_pct[0] < same.interval_pct[1] < 1


def test_a_shown_slowdown_below_the_threshold_that_is_not_shown_to_be_the_same_is_undecided(
    old: Path, new: Path
) -> None:
    found = compare(old, new, threshold="0.6%")
    assert outcomes(found)["test_e"] == "cannot tell"
    assert found.tests["test_e"].p_adjusted is not None
    assert found.tests["test_e"].p_adjusted <= 0.05
    (verdict,) = [row.verdict for row in found.comparisons if row.test == "test_e"]
    assert verdict.startswith("cannot tell: B is slower, but the measured difference is below the threshold: +0.")
    assert verdict.endswith("not shown to be the same within 0.6 %")


def test_a_suite_without_regressions_ends_with_0(old: Path, tmp_path: Path) -> None:
    again = suite(tmp_path / "again.json", names(6), seed=3)
    assert compare(old, again).exit_code == 0
    assert compare(old, again, threshold="1%").exit_code == 0
    assert compare(old, suite(tmp_path / "faster.json", dict.fromkeys(names(6), 0.9), seed=3)).exit_code == 0


def test_a_suite_without_a_judgeable_test_ends_with_2(old: Path, tmp_path: Path) -> None:
    few = compare(old, suite(tmp_path / "few.json", names(6), seed=3, processes=2))
    assert (few.exit_code, len(few.cannot_tell)) == (2, 6)
    wide = suite(tmp_path / "wide.json", names(6), seed=3, spread=0.2)
    assert compare(old, wide, threshold="1%").exit_code == 2
    assert compare(old, wide).exit_code == 0
    fails(old, suite(tmp_path / "other.json", {"another": 1}, seed=3), "no test is in both: ")


@pytest.mark.slow
def test_tests_that_cannot_be_judged_are_one_line_beside_the_result(old: Path, tmp_path: Path) -> None:
    few = suite(tmp_path / "few.json", names(6), seed=3, processes=2)
    done = cbench("compare", str(old), str(few), "--json")
    assert done.returncode == 2
    assert len(json.loads(done.stdout)["cannot_tell"]) == 6
    assert done.stderr == (
        "cbench: error: nothing can be judged: too few processes in 6 of 6 tests: measure at least 5 per side "
        "(pyperf's --processes 5)\n"
    )
    wide = suite(tmp_path / "wide.json", names(6), seed=3, spread=0.2)
    done = cbench("compare", str(old), str(wide), "--threshold", "1%")
    assert done.returncode == 2
    assert done.stderr.startswith("cbench: error: nothing can be judged: 6 tests: 6 cannot tell; alpha 5 %")


def test_a_test_with_enough_processes_is_judged_beside_one_with_too_few(old: Path, tmp_path: Path) -> None:
    content = json.loads(suite(tmp_path / "mixed.json", names(6), seed=3).read_text())
    del content["benchmarks"][0]["runs"][2:]
    (tmp_path / "mixed.json").write_text(json.dumps(content))
    found = compare(old, tmp_path / "mixed.json")
    assert (found.cannot_tell, found.exit_code) == (("test_a",), 0)


def test_several_files_are_compared_with_the_first_as_one_family(old: Path, new: Path, tmp_path: Path) -> None:
    third = suite(tmp_path / "third.json", names(5) | {"test_z": 1.0}, seed=4)
    found = compare(old, new, third)
    assert len(found.tests) == 11
    assert outcomes(found)[f"test_b ({new})"] == "slower"
    assert outcomes(found)[f"test_b ({third})"] == "no difference shown"
    assert (found.only_in_old, found.only_in_new) == ((f"test_f ({third})",), (f"test_z ({third})",))
    alone = compare(old, new).tests["test_d"]
    together = found.tests[f"test_d ({new})"]
    assert alone.p == together.p
    assert (alone.p_adjusted or 0) < (together.p_adjusted or 0)


def test_json_has_the_documented_keys(old: Path, new: Path) -> None:
    done = cbench("compare", str(old), str(new), "--threshold", "1%", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["alpha"], found["correction"], found["threshold_pct"]) == (pytest.approx(0.05), "holm", 1)
    assert found["margin"] == 0.01
    test = found["tests"]["test_b"]
    assert {"outcome", "delta_pct", "interval_pct", "p", "p_adjusted", "n"} <= test.keys()
    assert (test["outcome"], test["n"]) == ("slower", [10, 10])
    assert test["interval_pct"][0] < test["delta_pct"] < test["interval_pct"][1]
    assert test["delta_pct"] == pytest.approx(5, abs=0.5)
    for key in ("regressions", "improvements", "cannot_tell", "only_in_old", "only_in_new"):
        assert isinstance(found[key], list)


def test_the_table_has_a_line_for_each_test_within_the_width_of_the_terminal(old: Path, new: Path) -> None:
    done = cbench("compare", str(old), str(new), "--threshold", "1%")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["test", "change"]
    assert lines[1].split()[0] == "test_b"
    assert lines[1].rstrip().endswith("slower")
    assert lines[-1] == "6 tests: 1 slower, 1 faster, 4 same within 1 %; alpha 5 % over all tests (Holm)"
    assert max(map(len, lines)) <= 120
    assert "Mann-Whitney U" not in done.stdout


def test_verbose_has_a_verdict_for_each_test(old: Path, new: Path) -> None:
    done = cbench("compare", str(old), str(new), "--verbose")
    assert done.stdout.count("Mann-Whitney U") == 6
    assert "B is slower: +" in done.stdout
    assert done.stdout.splitlines()[:2] == [f"A (OLD): {old}", f"B (NEW): {new}"]


def test_remarks_on_a_and_b_say_which_side_is_which(tmp_path: Path) -> None:
    old, new = (suite(tmp_path / f"{name}.json", names(6), processes=1, seed=1) for name in "ab")
    lines = cbench("compare", str(old), str(new)).stdout.splitlines()
    note = next(at for at, line in enumerate(lines) if "one process in A and B" in line)
    assert lines[:note].count("A is OLD, B is NEW") == 1


def test_missing_and_new_tests_are_listed_and_a_rename_is_suggested(old: Path, tmp_path: Path) -> None:
    other = suite(tmp_path / "n.json", names(4) | {"TestE": 1.0, "fresh": 1.0}, seed=3)
    found = compare(old, other)
    assert (found.only_in_old, found.only_in_new) == (("test_e", "test_f"), ("TestE", "fresh"))
    assert found.possible_renames == (PossibleRename("test_e", "TestE"),)
    assert "test_e" not in found.tests
    done = cbench("compare", str(old), str(other))
    assert "only in OLD: test_e, test_f" in done.stdout
    assert "possibly renamed (compare OLD:NAME with NEW:NAME): test_e is now TestE" in done.stdout


RENAMES = [
    (["sort_list"], ["sort-list"], [("sort_list", "sort-list")]),
    (["parse_json"], ["parse_jsons"], [("parse_json", "parse_jsons")]),
    (["hash n=1000"], ["hash n=2000"], []),
    (["sort"], ["unrelated"], []),
    (["sort_list"], ["sort-list", "Sort List"], []),
    (["sort_list", "sort-list"], ["Sort List"], []),
    ([], [], []),
]


@pytest.mark.parametrize(("old", "new", "expected"), RENAMES)
def test_a_rename_is_suggested_if_exactly_one_missing_and_one_new_test_are_alike(
    old: list[str], new: list[str], expected: list[tuple[str, str]]
) -> None:
    assert [(each.old, each.new) for each in possible_renames(old, new)] == expected


@pytest.mark.parametrize(
    ("outcome", "unit", "bad"),
    [
        (SLOWER, "second", True),
        (LARGER, "byte", True),
        (SMALLER, "instructions", False),
        (LARGER, "ops/s", False),
        (SMALLER, "MB/s", True),
        *((SMALLER, unit, True) for unit in ("GFLOPS", "Gflops", "MHz", "Hz", "fps", "FPS", "qps", "IOPS", "Mbps")),
        *((SMALLER, unit, True) for unit in ("tokens per second", "items_per_second", "req/sec", "pages/hour", "MOPS")),
        *((LARGER, unit, True) for unit in ("GFLOPs", "ops", "hops", "B/op", "percent", "steps", "caps", "")),
        (LARGER, "ns/op", True),
        ("same", "second", None),
    ],
)
def test_a_larger_count_is_a_regression_and_a_larger_rate_an_improvement(
    outcome: str, unit: str, bad: bool | None
) -> None:
    assert worse(outcome, unit) is bad


def test_the_better_direction_can_be_given_for_all_units_but_times(tmp_path: Path) -> None:
    assert worse(SMALLER, "score", "higher") is worse(LARGER, "MB/s", "lower") is True
    assert worse("slower", "ns", "higher") is True
    a, b = (suite(tmp_path / f"{seed}.json", {"t": change}, seed, unit="byte") for seed, change in ((1, 1), (2, 1.5)))
    assert compare(a, b).regressions == compare(b, a, better="higher").regressions == ("t",)
    assert compare(a, b, better="higher").exit_code == 0
    fails(a, b, "--better more: use higher or lower", better="more")


def test_a_larger_count_fails_the_gate(tmp_path: Path) -> None:
    a = suite(tmp_path / "a.json", names(2), seed=1, unit="byte")
    b = suite(tmp_path / "b.json", names(2) | {"test_a": 1.1}, seed=2, unit="byte")
    assert outcomes(compare(a, b))["test_a"] == "larger"
    assert compare(a, b).regressions == ("test_a",)


def test_differences_between_the_hosts_are_reported_in_one_line(tmp_path: Path) -> None:
    passport = {"cpu": "Some CPU", "kernel": "6.12", "microcode": "0x1", "profile": "none"}
    files = []
    for name, host in (("a", passport), ("b", passport | {"kernel": "6.13", "profile": "bench"})):
        about = {**HOST, "kernel": host["kernel"], "passport": host}
        files.append(stored(tmp_path / f"{name}.db", noisy(1e6, 6, 9, seed=1), host=about))
    assert compare(*files).hosts_differ == ("kernel 6.12 and 6.13", "profile none and bench")
    done = cbench("compare", *map(str, files))
    assert "hosts differ: kernel 6.12 and 6.13; profile none and bench" in done.stdout
    assert compare(files[0], files[0]).hosts_differ == ()


def test_hosts_of_other_harnesses_are_compared_as_far_as_they_are_known(old: Path, tmp_path: Path) -> None:
    other = suite(tmp_path / "o.json", names(6), seed=3, cpu_model_name="Another CPU")
    assert compare(old, other).hosts_differ == ("cpu Some CPU and Another CPU",)
    assert compare(old, suite(tmp_path / "p.json", names(6), seed=3, platform="Darwin")).hosts_differ == ()


def test_a_damaged_passport_is_reported_in_one_line(tmp_path: Path) -> None:
    good = stored(tmp_path / "a.db", noisy(1e6, 6, 9, seed=1))
    bad = stored(tmp_path / "b.db", noisy(1e6, 6, 9, seed=1), host={**HOST, "passport": 7})
    fails(good, bad, "b.db: damaged: the host's passport is not an object")


@pytest.mark.slow
def test_ticks_against_cycles_are_refused_unless_forced(tmp_path: Path) -> None:
    ticks = stored(tmp_path / "t.db", noisy(1e6, 6, 9, seed=1))
    cycles = stored(tmp_path / "c.db", noisy(2e6, 6, 9, seed=2), counter=CYCLES)
    fails(ticks, cycles, "A is in TSC ticks, B in cycles; use --force to compare the numbers anyway")
    assert cbench("compare", str(ticks), str(cycles)).returncode == 2
    forced = compare(ticks, cycles, force=True)
    assert forced.other_units == ()
    (row,) = forced.comparisons
    assert row.outcome == "higher"
    assert row.notes[0] == "forced: tsc in A and cycles in B measure different quantities"
    assert cbench("compare", str(ticks), str(cycles), "--force").returncode == 1


def test_a_test_in_another_unit_is_named_and_not_counted_as_missing(tmp_path: Path) -> None:
    ticks = stored(tmp_path / "t.db", noisy(1e6, 6, 9, seed=1))
    stored(ticks, noisy(1e6, 6, 9, seed=1), workload="sieve")
    other = stored(tmp_path / "c.db", noisy(1e6, 6, 9, seed=2), counter=CYCLES)
    stored(other, noisy(1e6, 6, 9, seed=2), workload="sieve")
    found = compare(ticks, other)
    assert list(found.tests) == ["sieve n=1000"]
    assert found.other_units == ("hash n=1000: A is in TSC ticks, B in cycles",)
    assert (found.only_in_old, found.only_in_new) == ((), ())


def test_the_result_of_a_suite_is_json(old: Path, new: Path) -> None:
    assert json.loads(json.dumps(to_json(compare(old, new, threshold="1%"))))["tests"]["test_a"]["outcome"] == "same"


def test_with_several_new_each_is_searched_for_renames_and_old_s_failures_are_reported_once(tmp_path: Path) -> None:
    for name, test in (("old", "sort_list"), ("new1", "sort-list"), ("new2", "Sort list")):
        (tmp_path / name).mkdir()
        for process in range(6):
            rows = [{"name": each, "run_type": "iteration", "real_time": 100 + process} for each in ("a", "b", test)]
            if name == "old" and process > 3:
                rows[1] |= {"error_occurred": True, "error_message": "out of memory"}
            document = {"context": {"date": f"2026-11-27T10:0{process}:00+00:00"}, "benchmarks": rows}
            (tmp_path / name / f"{process}.json").write_text(json.dumps(document))
    found = compare(tmp_path / "old", tmp_path / "new1", tmp_path / "new2")
    assert found.failed == ("b in 2 of 6 processes of OLD: out of memory",)
    assert found.possible_renames == (
        PossibleRename("sort_list", f"sort-list ({tmp_path}/new1)"),
        PossibleRename("sort_list", f"Sort list ({tmp_path}/new2)"),
    )


def test_a_benchmark_that_failed_is_reported_with_its_error(tmp_path: Path) -> None:
    for side, broken in (("old", ()), ("new", (2, 3, 5))):
        (tmp_path / side).mkdir()
        for process in range(6):
            rows = [{"name": name, "run_type": "iteration", "real_time": 100 + process} for name in "ab"]
            if process in broken:
                rows[1] |= {"error_occurred": True, "error_message": "out of memory"}
            if process == 5 and broken:
                rows = rows[1:]  # nothing else in this file
            document = {"context": {"date": f"2026-11-27T10:0{process}:00+00:00"}, "benchmarks": rows}
            (tmp_path / side / f"{process}.json").write_text(json.dumps(document))
    found = compare(tmp_path / "old", tmp_path / "new")
    assert found.failed == ("b in 3 of 6 processes of NEW: out of memory",)
    assert [(row.test, row.a.processes, row.b.processes) for row in found.comparisons] == [("a", 6, 5), ("b", 6, 3)]
    done = cbench("compare", str(tmp_path / "old"), str(tmp_path / "new"))
    assert "failed: b in 3 of 6 processes of NEW: out of memory" in done.stdout
    fails(
        f"{tmp_path}/new/5.json", tmp_path / "old", f"{tmp_path}/new/5.json: every benchmark failed: b: out of memory"
    )

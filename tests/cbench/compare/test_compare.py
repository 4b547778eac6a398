"""`cbench compare`: what belongs to each other, what is said of it, and what cannot be compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cbench.compare.result import compare, share
from cbench.export.export import ExportOptions, export
from cbench.results import to_json
from cbench.store.store import Store
from quiet.errors import UsageError
from tests.cbench.compare.comparing import fails
from tests.cbench.running import cbench, error_line
from tests.cbench.store.storing import CYCLES, HOST, TICKS, facts, noisy, stored, trials

FINE = {**TICKS, "quantum": 1}


def answer(a: object, b: object, **changes: Any) -> Any:
    """As JSON."""
    return to_json(compare(str(a), str(b), **changes))


def rows(a: object, b: object, **changes: Any) -> list[dict[str, Any]]:
    found: Any = answer(a, b, **changes)["comparisons"]
    return list(found)


def one(a: object, b: object, **changes: Any) -> dict[str, Any]:
    (row,) = rows(a, b, **changes)
    return row


def remarks(row: dict[str, Any]) -> list[str]:
    """Its notes, without the one that A was measured before B, as all files of these tests were."""
    return [
        each for each in row["notes"] if not each.startswith(("A was measured before B", "B was measured before A"))
    ]


def exported(path: Path) -> Path:
    export(ExportOptions(str(path), "pyperf", str(path.with_suffix(".json"))))
    return path.with_suffix(".json")


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return stored(tmp_path / "a.db", noisy(1e6, 8, 40, seed=1))


@pytest.fixture
def b(tmp_path: Path) -> Path:
    return stored(tmp_path / "b.db", noisy(1.03e6, 8, 40, seed=2))


def test_slower_is_said_with_interval_and_test(a: Path, b: Path) -> None:
    row = one(a, b)
    assert row["outcome"] == "higher"
    assert row["by"] == "process"
    assert row["headline"] == "median"
    assert row["interval"][0] < 1.03 < row["interval"][1]
    assert row["p"] < 0.001
    assert row["p_from"] == "permutations"
    assert row["verdict"].startswith("B is slower: +")
    assert one(b, a)["verdict"].startswith("B is faster: -")


def test_no_difference_says_what_would_have_shown(a: Path, tmp_path: Path) -> None:
    row = one(a, stored(tmp_path / "c.db", noisy(1e6, 8, 40, seed=3)))
    assert row["outcome"] == "no difference shown"
    assert 0 < row["detectable"] < 0.02
    assert "would have shown in 80% of such comparisons" in row["verdict"]
    same = one(a, tmp_path / "c.db", threshold="0.01")
    assert same["verdict"].startswith("same within 1 %")
    small = one(a, tmp_path / "c.db", threshold="0.0001")
    assert small["verdict"].endswith("not shown to be the same within 0.01 %")


def test_a_file_against_itself_is_no_difference(a: Path) -> None:
    assert one(a, a)["ratio"] == 1


def test_the_same_data_as_pyperfs_file_give_the_same_answer(a: Path, b: Path) -> None:
    direct = one(a, b)
    file = {"new": str(b.with_suffix(".json"))}
    assert one(exported(a), exported(b)) == direct | file
    assert one(a, exported(b)) == direct | file
    assert direct["measured_first"] == "A"


@pytest.mark.slow
def test_pyperfs_own_files_are_compared(tmp_path: Path) -> None:
    files = []
    for name, statement in (("x", "sum(range(100))"), ("y", "sum(range(20_000))")):
        files.append(tmp_path / f"{name}.json")
        run = [sys.executable, "-m", "pyperf", "timeit", "-q", "-p4", "-n3", "-w1", "-l20", "--name=sum"]
        subprocess.run([*run, f"--output={files[-1]}", statement], check=True, capture_output=True)
    row = one(*files)
    assert (row["test"], row["unit"], row["by"]) == ("sum", "second", "process")
    assert row["a"]["processes"] == 4
    assert row["outcome"] == "higher"
    assert row["ratio"] > 2


def test_a_size_is_larger_and_not_slower(tmp_path: Path) -> None:
    content = {
        "version": "1.0",
        "metadata": {"name": "memory", "unit": "byte"},
        "benchmarks": [{"runs": [{"values": [1000 + i]} for i in range(5)]}],
    }
    (tmp_path / "x.json").write_text(json.dumps(content))
    content["benchmarks"] = [{"runs": [{"values": [2000 + i]} for i in range(5)]}]
    (tmp_path / "y.json").write_text(json.dumps(content))
    assert one(tmp_path / "x.json", tmp_path / "y.json")["verdict"].startswith("B is larger: +99.")


def test_cycle_exact_data_have_an_exact_difference_by_their_floor(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", [[8432476] * 5] * 4, counter=CYCLES)
    b = stored(tmp_path / "b.db", [[8432502] * 5] * 4, counter=CYCLES)
    row = one(a, b)
    assert (row["headline"], row["difference"], row["interval"]) == ("floor", 26, None)
    assert row["verdict"] == (
        "B is slower, exactly: the floor of every process is 8,432,476 in A and 8,432,502 in B: "
        "+26 cycles (+0.000308 %), if the host stayed the same: A was measured first"
    )
    assert one(a, a)["verdict"] == "equal: the floor of every process is 8,432,476 in A and in B"


def test_few_processes_differ_in_nothing_though_all_their_trials_are_one_value(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", [[100] * 5] * 3, counter=CYCLES)
    b = stored(tmp_path / "b.db", [[110] * 5] * 2, counter=CYCLES)
    assert one(a, b)["verdict"] == (
        "cannot tell: B differs from A by +10 % (+10 % to +10 % at 80 %), but processes of one program differ too, and "
        "3 processes and 2 processes are too few: take at least 4 and 4 (cbench run --processes 4)"
    )
    assert (one(a, b)["difference"], one(a, b)["outcome"]) == (None, "too few to tell")


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_one_trial_a_process_is_nothing_exact_below_four(processes: int, tmp_path: Path) -> None:
    a, b = (stored(tmp_path / f"{v}.db", [[v]] * processes, counter=CYCLES) for v in (100, 110))
    assert one(a, b)["verdict"].startswith("cannot tell: ")


def test_counts_of_different_counters_are_not_compared_though_their_unit_is_the_same(tmp_path: Path) -> None:
    user = {**CYCLES, "name": "cycles:u"}
    a = stored(tmp_path / "a.db", [[100] * 5] * 4, counter=CYCLES)
    b = stored(tmp_path / "b.db", [[90] * 5] * 4, counter=user)
    words = "hash n=1000: A is in cycles by counter cycles, B in cycles by counter cycles:u"
    fails(a, b, words)
    fails(exported(a), b, words)
    fails(exported(a), exported(b), words)
    stored(b, [[100] * 5] * 4, counter=CYCLES)
    found = answer(a, b)
    (row,) = rows(a, b)
    assert (row["test"], row["outcome"]) == ("hash n=1000 / hash n=1000 [cycles]", "equal")
    assert found["other_units"] == [words]


def test_one_counter_that_was_read_in_two_ways_is_noted(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", noisy(1e6, 4, 9, seed=1), counter={**CYCLES, "method": "by system call"})
    b = stored(tmp_path / "b.db", noisy(1e6, 4, 9, seed=2), counter={**CYCLES, "method": "in user space"})
    words = "read differently, by system call in A, in user space in B: what a read costs is in each value"
    assert words in one(a, b)["notes"]
    assert words in one(a, exported(b))["notes"]
    assert words not in one(a, a)["notes"]


UNITS = [
    ("cycles", "slower"),
    ("TSC ticks", "slower"),
    ("cntvct ticks", "slower"),
    ("ns", "slower"),
    ("instructions", "larger"),
    ("misses", "larger"),
    ("faults", "larger"),
    ("", "larger"),
]


@pytest.mark.parametrize(("unit", "word"), UNITS)
def test_only_time_is_slower_and_a_count_is_larger(unit: str, word: str, tmp_path: Path) -> None:
    counter = {**CYCLES, "name": "some", "unit": unit}
    for values in ([[[v] * 5] * 4 for v in (100, 110)], [noisy(v, 5, 9, seed=1) for v in (1e5, 2e5)]):
        a, b = (stored(tmp_path / f"{i}.db", one_side, counter=counter) for i, one_side in enumerate(values))
        assert one(a, b)["verdict"].startswith(f"B is {word}")
        a.unlink()
        b.unlink()


@pytest.mark.slow
def test_a_test_with_a_zero_is_left_out_with_its_reason_and_the_others_are_compared(tmp_path: Path) -> None:
    faults = {**CYCLES, "name": "page-faults", "unit": "faults"}
    a = stored(tmp_path / "a.db", noisy(1e6, 6, 9, seed=1))
    b = stored(tmp_path / "b.db", noisy(2e6, 6, 9, seed=2))
    for name, left, right in (("none", [0] * 5, [0] * 5), ("some", [0] * 5, [3] * 5), ("one", [0], [0])):
        stored(a, [left] * 4, workload=name, counter=faults)
        stored(b, [right] * 4, workload=name, counter=faults)
    found = answer(a, b)
    assert [(row["test"], row["outcome"]) for row in rows(a, b)] == [
        ("hash n=1000", "higher"),
        ("none n=1000", "equal"),
        ("one n=1000", "equal"),
    ]
    assert rows(a, b)[1]["verdict"] == "equal: the floor of every process is 0 in A and in B"
    assert found["skipped"] == ["some n=1000: a value of 0; ratios need values above 0"]
    done = cbench("compare", str(a), str(b))
    assert done.returncode == 1
    assert "not compared: some n=1000: a value of 0; ratios need values above 0" in done.stdout


@pytest.mark.parametrize(("processes", "said"), [(1, "cannot tell: "), (2, "cannot tell: "), (4, "equal: ")])
@pytest.mark.parametrize("values", [[0], [0, 0, 0]])
def test_nothing_against_nothing_is_equal_in_enough_processes(
    processes: int, said: str, values: list[int], tmp_path: Path
) -> None:
    path = stored(tmp_path / "a.db", [values] * processes)
    assert one(path, path)["verdict"].startswith(said)


@pytest.mark.slow
def test_a_pipe_is_refused_before_it_is_opened(a: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for sides in ((a, tmp_path / "pipe"), (tmp_path / "pipe", a)):
        done = cbench("compare", *map(str, sides))
        assert done.returncode == 2
        assert error_line(done) == f"{tmp_path}/pipe: not an ordinary file"


def test_a_step_of_the_counter_is_no_difference(tmp_path: Path) -> None:
    a, b = (stored(tmp_path / f"{v}.db", [[v] * 5] * 4) for v in (8432476, 8432501))
    assert one(a, b)["verdict"].startswith("equal to one step of the counter (25): ")


def test_polluted_trials_do_not_spoil_what_is_exact(tmp_path: Path) -> None:
    files = []
    for value in (1000, 1100):
        files.append(tmp_path / f"{value}.db")
        with Store.create(files[-1], HOST, []) as store:
            for process in range(4):
                series = store.begin(facts(process, counter=FINE))
                store.add(series, trials([value, value, 5000, value, value], {2: "interrupt LOC"}))
    row = one(*files)
    assert (row["difference"], row["a"]["polluted"]) == (100, 4)
    assert row["verdict"].startswith("B is slower, exactly: the floor of every process is 1,000 in A and 1,100 in B")
    assert one(*files, headline="median", clean_only=True)["difference"] == 100


@pytest.mark.parametrize("headline", ["auto", "mean", "median"])
def test_one_process_a_side_is_undecided_and_names_the_next_command(headline: str, tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", noisy(1e6, 1, 300, seed=1))
    b = stored(tmp_path / "b.db", noisy(1.1e6, 1, 300, seed=2))
    row = one(a, b, headline=headline)
    assert (row["outcome"], row["interval"], row["interval_level"], row["p"]) == ("too few to tell", None, None, 1)
    assert row["verdict"].startswith("cannot tell: B differs from A by +")
    assert row["verdict"].endswith(
        ", but processes of one program differ too, and 1 process and 1 process are too few: take at least 4 and 4 "
        "(cbench run --processes 4)"
    )
    assert row["notes"][0].startswith("one process in A and B: the spread between processes is unknown")


def test_too_few_processes_are_undecided_and_the_needed_number_is_reported(tmp_path: Path) -> None:
    a, b = (stored(tmp_path / f"{v}.db", noisy(v, 3, 20, seed=v)) for v in (1_000_000, 2_000_000))
    assert one(a, b)["verdict"].startswith("cannot tell: B differs from A by +")
    assert "3 processes and 3 processes are too few: take at least 4 and 4" in one(a, b)["verdict"]


def test_sides_that_were_measured_one_after_the_other_make_the_verdict_conditional(a: Path, b: Path) -> None:
    row = one(a, b)
    assert row["measured_first"] == "A"
    assert row["verdict"].endswith(", if the host stayed the same: A was measured first")
    assert "A was measured before B: what changed on the host in between looks like a difference" in row["notes"][-1]


def test_processes_measured_in_turn_need_no_condition(tmp_path: Path) -> None:
    files = tmp_path / "a.db", tmp_path / "b.db"
    for number in range(8):
        for file, scale in zip(files, (1e6, 1.03e6), strict=True):
            stored(file, noisy(scale, 1, 40, seed=number + int(scale)))
    row = one(*files)
    assert (row["measured_first"], row["notes"], row["outcome"]) == (None, [], "higher")
    assert "if the host" not in row["verdict"]


@pytest.mark.slow
def test_the_outcomes_of_many_tests_are_counted_and_corrected_for_their_number(tmp_path: Path) -> None:
    a, b = tmp_path / "a.db", tmp_path / "b.db"
    for number, scale in enumerate((1e6, 1.0002e6, 1.2e6)):
        stored(a, noisy(1e6, 8, 20, seed=number), params={"n": number})
        stored(b, noisy(scale, 8, 20, seed=number + 50), params={"n": number})
    found = answer(a, b)
    assert found["summary"]["comparisons"] == 3
    assert found["summary"]["correction"] == "holm"
    assert found["summary"]["outcomes"]["higher"] == 1
    assert [row["p_holm"] >= row["p"] for row in rows(a, b)] == [True] * 3
    assert rows(a, b)[2]["p_holm"] == pytest.approx(3 * rows(a, b)[2]["p"])
    done = cbench("compare", str(a), str(b))
    assert "3 tests: 1 slower, " in done.stdout
    assert "; alpha 5 % over all (Holm)" in done.stdout


def test_tests_are_matched_by_workload_and_parameters(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", noisy(1e6, 4, 9, seed=1))
    stored(a, noisy(2e6, 4, 9, seed=2), params={"n": 2000})
    stored(a, noisy(2e6, 4, 9, seed=2), workload="sieve")
    b = stored(tmp_path / "b.db", noisy(2e6, 4, 9, seed=3), params={"n": 2000})
    stored(b, noisy(1e6, 4, 9, seed=4))
    stored(b, noisy(1e6, 4, 9, seed=4), workload="memory")
    found = answer(a, b)
    assert [row["test"] for row in rows(a, b)] == ["hash n=1000", "hash n=2000"]
    assert (found["only_in_a"], found["only_in_b"]) == (["sieve n=1000"], ["memory n=1000"])


def test_cpus_are_matched_where_both_have_several_and_else_compared(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", noisy(1e6, 4, 9, seed=1), cpu=1)
    stored(a, noisy(2e6, 4, 9, seed=2), cpu=2)
    assert [row["test"] for row in rows(a, a)] == ["hash n=1000 CPU 1", "hash n=1000 CPU 2"]
    b = stored(tmp_path / "b.db", noisy(1e6, 4, 9, seed=3), cpu=2)
    found = rows(a, b)
    assert [row["test"] for row in found] == ["hash n=1000 CPU 1 / hash n=1000", "hash n=1000 CPU 2 / hash n=1000"]
    assert remarks(found[0]) == ["on CPU 1 and on CPU 2"]


def test_two_tests_of_one_file_can_be_compared_by_name(tmp_path: Path) -> None:
    path = stored(tmp_path / "a:b.db", noisy(1e6, 4, 9, seed=1), workload="mine.c:work")
    stored(path, noisy(2e6, 4, 9, seed=2), workload="mine.c:more")
    row = one(f"{path}:mine.c:work", f"{path}:mine.c:more n=1000")
    assert row["outcome"] == "higher"
    assert remarks(row) == ["two different tests"]


def test_floors_that_differ_much_less_than_medians_are_recommended(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        processes = [[1000, 1000, *(2000 + 100 * p + i for i in range(9))] for p in range(5)]
        files.append(stored(tmp_path / f"{name}.db", processes))
    row = one(*files)
    assert row["headline"] == "median"
    assert remarks(row) == [
        "between processes the floors differ not at all, unlike the medians: --headline floor shows smaller differences"
    ]
    assert one(*files, headline="floor")["verdict"].startswith("equal: the floor of every process is 1,000")


def test_different_hosts_are_noted(a: Path, tmp_path: Path) -> None:
    other = stored(tmp_path / "o.db", noisy(1e6, 4, 9, seed=3), host={**HOST, "cpu": "Another CPU"})
    assert remarks(one(a, other)) == [
        "different CPUs: Some CPU and Another CPU; their ticks may be of different length"
    ]


def test_a_process_that_was_cut_short_is_noted(a: Path, tmp_path: Path) -> None:
    path = stored(tmp_path / "c.db", noisy(1e6, 4, 9, seed=3))
    with Store.create(path, HOST, []) as store:
        store.add(store.begin(facts(4)), trials([1_000_000, 1_000_001]))
    assert remarks(one(a, path)) == ["B: 1 of 5 processes cut short"]


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.01", 0.01), ("2.5 %", 0.025), (" 5% ", 0.05)])
def test_a_threshold_is_a_share(text: str, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "%", "0", "-1%", "100%", "1", "nan", "inf", "much"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a share such as"):
        share(text)


@pytest.mark.parametrize("level", [0.0, 49.0, 100.0, -5.0, float("nan"), float("inf")])
def test_a_level_is_a_percentage(level: float) -> None:
    with pytest.raises(UsageError, match="--level"):
        compare("a.db", "b.db", level=level)


def test_a_headline_is_one_of_those_there_are() -> None:
    with pytest.raises(UsageError, match="--headline best: use auto, median, floor, min, mean"):
        compare("a.db", "b.db", headline="best")


def test_the_command_prints_a_table_and_the_verdict_of_a_single_test(a: Path, b: Path) -> None:
    done = cbench("compare", str(a), str(b), "--threshold", "0.1%")
    assert done.returncode == 1
    assert done.stderr == ""
    for text in ("hash n=1000 (TSC ticks)", "processes", "Mann-Whitney U", "B is slower: +"):
        assert text in done.stdout


def test_the_command_prints_one_json_object(a: Path, b: Path) -> None:
    done = cbench("compare", str(a), str(b), "--json", "--level", "99")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["level"] == pytest.approx(0.99)
    assert found["comparisons"][0]["interval_level"] >= 0.99
    assert found["comparisons"][0]["a"]["processes"] == 8


def test_the_command_says_in_one_line_what_is_wrong(a: Path, tmp_path: Path) -> None:
    done = cbench("compare", str(a), str(tmp_path / "none"))
    assert done.returncode == 2
    assert error_line(done) == f"{tmp_path}/none: no such file"

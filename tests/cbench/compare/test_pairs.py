"""Which tests of two files are compared, and which are not."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cbench.compare.comparing import answer, exported, fails, one, remarks, rows
from tests.cbench.running import cbench, error_line
from tests.cbench.store.storing import CYCLES, noisy, stored


def test_tests_are_matched_by_workload_and_parameters(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", noisy(1e6, 4, 9, seed=1))
    stored(a, noisy(2e6, 4, 9, seed=2), params={"n": 2000})
    stored(a, noisy(2e6, 4, 9, seed=2), workload="sieve")
    b = stored(tmp_path / "b.db", noisy(2e6, 4, 9, seed=3), params={"n": 2000})
    stored(b, noisy(1e6, 4, 9, seed=4))
    stored(b, noisy(1e6, 4, 9, seed=4), workload="memory")
    found = answer(a, b)
    assert [row["test"] for row in rows(a, b)] == ["hash n=1000", "hash n=2000"]
    assert (found["only_in_old"], found["only_in_new"]) == (["sieve n=1000"], ["memory n=1000"])


def test_cpus_are_matched_where_both_have_several_and_else_compared(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", noisy(1e6, 4, 9, seed=1), cpu=1)
    stored(a, noisy(2e6, 4, 9, seed=2), cpu=2)
    assert [row["test"] for row in rows(a, a)] == ["hash n=1000 CPU 1", "hash n=1000 CPU 2"]
    b = stored(tmp_path / "b.db", noisy(1e6, 4, 9, seed=3), cpu=2)
    found = rows(a, b)
    assert [row["test"] for row in found] == ["hash n=1000 CPU 1 / hash n=1000", "hash n=1000 CPU 2 / hash n=1000"]
    assert remarks(found[0]) == ["measured on CPU 1 in A and on CPU 2 in B"]


def test_two_tests_of_one_file_can_be_compared_by_name(tmp_path: Path) -> None:
    path = stored(tmp_path / "a:b.db", noisy(1e6, 4, 9, seed=1), workload="mine.c:work")
    stored(path, noisy(2e6, 4, 9, seed=2), workload="mine.c:more")
    row = one(f"{path}:mine.c:work", f"{path}:mine.c:more n=1000")
    assert row["outcome"] == "higher"
    assert remarks(row) == ["two different tests"]


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


def test_a_change_from_or_to_zero_is_compared_and_a_zero_beside_other_values_is_left_out(tmp_path: Path) -> None:
    faults = {**CYCLES, "name": "page-faults", "unit": "faults"}
    a = stored(tmp_path / "a.db", noisy(1e6, 6, 9, seed=1))
    b = stored(tmp_path / "b.db", noisy(2e6, 6, 9, seed=2))
    sides = {"from": ([0, 0], [3, 3]), "none": ([0, 0], [0, 0]), "one": ([0], [0]), "to": ([3, 3], [0, 0])}
    for name, (left, right) in {**sides, "some": ([0, 3, 3], [3, 3])}.items():
        stored(a, [left] * 6, workload=name, counter=faults)
        stored(b, [right] * 6, workload=name, counter=faults)
    found = answer(a, b)
    assert [(row["test"], row["outcome"]) for row in rows(a, b)] == [
        ("hash n=1000", "higher"),
        ("from n=1000", "higher"),
        ("none n=1000", "equal"),
        ("one n=1000", "equal"),
        ("to n=1000", "lower"),
    ]
    _, first, *_, last = rows(a, b)
    assert first["verdict"].startswith(
        "B is larger, exactly: the floor of every process is 0 in A and 3 in B: +3 faults (from 0)"
    )
    assert (first["ratio"], found["tests"]["from n=1000"]["delta_pct"]) == (None, None)
    assert (last["ratio"], found["tests"]["to n=1000"]["delta_pct"]) == (0, -100)
    assert found["regressions"] == ["hash n=1000", "from n=1000"]
    assert found["skipped"] == ["some n=1000: a value of 0 among other values; ratios need values above 0"]
    done = cbench("compare", str(a), str(b))
    assert done.returncode == 1
    assert "not compared: some n=1000: a value of 0 among other values" in done.stdout


def test_a_test_in_two_units_of_time_is_compared_in_each(tmp_path: Path) -> None:
    table = tmp_path / "two.csv"
    lines = [
        f"a,{value}{number},{unit},{number}" for number in range(6) for value, unit in (("1.00", "ms"), ("2.00", "s"))
    ]
    table.write_text("\n".join(["test,value,unit,process", *lines]) + "\n")
    assert [row["ratio"] for row in rows(table, table)] == [1, 1]
    assert answer(table, table)["tests"].keys() == {"a", "a #2"}


def test_counts_that_are_all_equal_weaken_no_claim_and_judge_no_time(tmp_path: Path) -> None:
    counts = {"B/op": 64, "allocs/op": 2}
    sides = []
    for side, slower in (("old", 1.0), ("new", 1.03)):
        sides.append(tmp_path / side)
        sides[-1].mkdir()
        for process in range(6):
            lines = []
            for test in range(10):
                time = (1000 + 3 * process + test) * (slower if test == 0 else 1)
                cells = " ".join(f"{value} {unit}" for unit, value in counts.items())
                lines.append(f"BenchmarkA{test} 100 {time:.3f} ns/op {cells}")
            (sides[-1] / f"{process}.txt").write_text("\n".join(lines) + "\n")
    found = answer(*sides)
    assert found["regressions"] == ["BenchmarkA0"]
    assert (found["summary"]["comparisons"], found["summary"]["counting"]) == (30, 10)
    for side in sides:
        for file in sorted(side.iterdir())[4:]:
            file.unlink()
    assert cbench("compare", *map(str, sides)).returncode == 2


def test_a_pipe_is_refused_before_it_is_opened(a: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for sides in ((a, tmp_path / "pipe"), (tmp_path / "pipe", a)):
        done = cbench("compare", *map(str, sides))
        assert done.returncode == 2
        assert error_line(done) == f"{tmp_path}/pipe: not an ordinary file"

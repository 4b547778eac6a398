"""The verdict of `cbench compare` on a test, and its notes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cbench.store.records import EACH_TRIAL
from cbench.store.store import Store
from tests.cbench.compare.comparing import exported, one, remarks
from tests.cbench.store.storing import CYCLES, HOST, TICKS, facts, noisy, stored, trials

FINE = {**TICKS, "quantum": 1}


def test_slower_is_reported_with_interval_and_test(a: Path, b: Path) -> None:
    row = one(a, b)
    assert row["outcome"] == "higher"
    assert row["by"] == "process"
    assert row["headline"] == "median"
    assert row["interval"][0] < 1.03 < row["interval"][1]
    assert row["p"] < 0.001
    assert row["p_from"] == "permutations"
    assert row["verdict"].startswith("B is slower: +")
    assert one(b, a)["verdict"].startswith("B is faster: -")


def test_no_difference_reports_the_detectable_difference(a: Path, tmp_path: Path) -> None:
    row = one(a, stored(tmp_path / "c.db", noisy(1e6, 8, 40, seed=3)))
    assert row["outcome"] == "no difference shown"
    assert 0 < row["detectable"] < 0.02
    assert "would be detected in 80% of such comparisons" in row["verdict"]
    same = one(a, tmp_path / "c.db", threshold="0.01")
    assert same["verdict"].startswith("same within 1 %")
    small = one(a, tmp_path / "c.db", threshold="0.0001")
    assert small["verdict"].endswith("not shown to be the same within 0.01 %")


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


def test_too_few_processes_show_no_difference_even_if_all_their_trials_agree(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", [[100] * 5] * 3, counter=CYCLES)
    b = stored(tmp_path / "b.db", [[110] * 5] * 2, counter=CYCLES)
    assert one(a, b)["verdict"] == (
        "cannot tell: B differs from A by +10 % (+10 % to +10 % at 80 %), but processes of one program differ too, and "
        "3 processes and 2 processes are too few: measure at least 4 per side (cbench run --processes 4)"
    )
    assert (one(a, b)["difference"], one(a, b)["outcome"]) == (None, "too few to tell")


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_with_one_trial_per_process_fewer_than_four_are_not_exact(processes: int, tmp_path: Path) -> None:
    a, b = (stored(tmp_path / f"{v}.db", [[v]] * processes, counter=CYCLES) for v in (100, 110))
    assert one(a, b)["verdict"].startswith("cannot tell: ")


@pytest.mark.parametrize(("processes", "said"), [(1, "cannot tell: "), (2, "cannot tell: "), (4, "equal: ")])
@pytest.mark.parametrize("values", [[0], [0, 0, 0]])
def test_zero_equals_zero_in_enough_processes(processes: int, said: str, values: list[int], tmp_path: Path) -> None:
    path = stored(tmp_path / "a.db", [values] * processes)
    assert one(path, path)["verdict"].startswith(said)


def test_a_step_of_the_counter_is_not_a_difference(tmp_path: Path) -> None:
    a, b = (stored(tmp_path / f"{v}.db", [[v] * 5] * 4) for v in (8432476, 8432501))
    assert one(a, b)["verdict"].startswith("equal to within one step of the counter (25): ")


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
def test_one_process_per_side_is_undecided_and_names_the_next_command(headline: str, tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", noisy(1e6, 1, 300, seed=1))
    b = stored(tmp_path / "b.db", noisy(1.1e6, 1, 300, seed=2))
    row = one(a, b, headline=headline)
    assert (row["outcome"], row["interval"], row["interval_level"], row["p"]) == ("too few to tell", None, None, 1)
    assert row["verdict"].startswith("cannot tell: B differs from A by +")
    assert row["verdict"].endswith(
        ", but processes of one program differ too, and 1 process and 1 process are too few: "
        "measure at least 4 per side (cbench run --processes 4)"
    )
    assert row["notes"][0].startswith("one process in A and B: the spread between processes is unknown")


def test_too_few_processes_are_undecided_and_the_needed_number_is_reported(tmp_path: Path) -> None:
    a, b = (stored(tmp_path / f"{v}.db", noisy(v, 3, 20, seed=v)) for v in (1_000_000, 2_000_000))
    assert one(a, b)["verdict"].startswith("cannot tell: B differs from A by +")
    assert "3 processes and 3 processes are too few: measure at least 4 per side" in one(a, b)["verdict"]


def test_sides_that_were_measured_one_after_the_other_make_the_verdict_conditional(a: Path, b: Path) -> None:
    row = one(a, b)
    assert row["measured_first"] == "A"
    assert row["verdict"].endswith(", if the host stayed the same: A was measured first")
    assert "A was measured before B: a change on the host in between looks like a difference" in row["notes"][-1]


def test_processes_measured_in_turn_need_no_condition(tmp_path: Path) -> None:
    files = tmp_path / "a.db", tmp_path / "b.db"
    for number in range(8):
        for file, scale in zip(files, (1e6, 1.03e6), strict=True):
            stored(file, noisy(scale, 1, 40, seed=number + int(scale)))
    row = one(*files)
    assert (row["measured_first"], row["notes"], row["outcome"]) == (None, [], "higher")
    assert "if the host" not in row["verdict"]


def test_one_counter_that_was_read_in_two_ways_is_noted(tmp_path: Path) -> None:
    a = stored(tmp_path / "a.db", noisy(1e6, 4, 9, seed=1), counter={**CYCLES, "method": "by system call"})
    b = stored(tmp_path / "b.db", noisy(1e6, 4, 9, seed=2), counter={**CYCLES, "method": "in user space"})
    words = "the counter is read by system call in A and in user space in B: each value includes the cost of a read"
    assert words in one(a, b)["notes"]
    assert words in one(a, exported(b))["notes"]
    assert words not in one(a, a)["notes"]


def test_floors_that_differ_much_less_than_medians_are_recommended(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        processes = [[1000, 1000, *(2000 + 100 * p + i for i in range(9))] for p in range(5)]
        files.append(stored(tmp_path / f"{name}.db", processes))
    row = one(*files)
    assert row["headline"] == "median"
    assert remarks(row) == [
        "the floors of the processes do not vary, unlike their medians: --headline floor detects smaller differences"
    ]
    assert one(*files, headline="floor")["verdict"].startswith("equal: the floor of every process is 1,000")


def test_different_hosts_are_noted(a: Path, tmp_path: Path) -> None:
    other = stored(tmp_path / "o.db", noisy(1e6, 4, 9, seed=3), host={**HOST, "cpu": "Another CPU"})
    assert remarks(one(a, other)) == ["different CPUs: Some CPU and Another CPU; their ticks may differ in length"]


def test_a_process_that_was_cut_short_is_noted(a: Path, tmp_path: Path) -> None:
    path = stored(tmp_path / "c.db", noisy(1e6, 4, 9, seed=3))
    with Store.create(path, HOST, []) as store:
        store.add(store.begin(facts(4)), trials([1_000_000, 1_000_001]))
    assert remarks(one(a, path)) == ["B: 1 of 5 processes were cut short"]


def test_a_measurement_of_processes_that_was_interrupted_has_whole_processes(tmp_path: Path) -> None:
    paths = []
    for name in "ab":
        paths.append(tmp_path / f"{name}.db")
        with Store.create(paths[-1], HOST, []) as store:
            store.add(store.begin(facts(processes=EACH_TRIAL)), trials([1_000_000 + at for at in range(30)]))
    assert not any("cut short" in each for each in remarks(one(*paths)))

"""OrderSage's own result files, as its authors' data sets have them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from cbench.order.analyze import read
from tests.cbench.order.studies import analyze, refused

HEAD_2021 = (
    "run_uuid,hostname,run_num,total_runs,exp_command,exp_number,order_number,order_type,time_start,time_stop,"
    "completion_status,result"
)
HEAD_2022 = HEAD_2021.replace("exp_", "test_")
NPB = tuple(f"./{name}.C.sh" for name in ("bt", "cg", "ep", "ft", "is", "lu", "mg", "sp", "ua"))
STREAM_NPB = ("./run_memory.sh", *NPB)
STREAM = ["copy_omp", "scale_omp", "add_omp", "triad_omp"]
UFS = tuple(f"./ufs.{name}.sh" for name in (f"T{number:02}" for number in range(20)))

Result = Callable[[str, int], str]


def uuid_of(number: int) -> str:
    """A UUID of version 1, so many minutes later."""
    time = 0x1EC2BD2896B4AFC + number * 600_000_000
    return str(UUID(fields=(time & 0xFFFFFFFF, time >> 32 & 0xFFFF, time >> 48 & 0x0FFF | 0x1000, 0x96, 0x9C, 7)))


def study(
    path: Path,
    tests: Sequence[str],
    runs: int,
    blocked: bool,
    result: Result,
    head: str = HEAD_2022,
    failed: Sequence[int] = (),
) -> Path:
    """So many runs of each order; in a blocked one their numbers start again. `failed`: lines, from 2."""
    rng = random.Random(7)
    lines, time = [head], 0.0
    for number in range(2 * runs):
        fixed = number < runs if blocked else number % 2 == 0
        order = list(range(len(tests))) if fixed else rng.sample(range(len(tests)), len(tests))
        counted, total = (number % runs, runs) if blocked else (number, 2 * runs)
        for place, test in enumerate(order):
            status, value = "Success", result(tests[test], number)
            if len(lines) + 1 in failed:
                status, value = "Failure", "0"
            time += 0.05
            kind = "fixed" if fixed else "random"
            lines.append(
                f"{uuid_of(number)},hp065.utah,{counted},{total},{tests[test]},{test},{place},{kind},{time:.6f},"
                f"{time + 0.04:.6f},{status},{value}"
            )
    path.write_text("\n".join(lines) + "\n")
    return path


def measured(test: str, run: int) -> str:
    noise = random.Random(f"{test}{run}")
    if "run_memory" in test:
        return f'"[{", ".join(f"{10_000 * kind + noise.gauss(0, 50):.1f}" for kind in range(1, 5))}]"'
    return f"{100 + noise.gauss(0, 1):.2f}"


@pytest.mark.parametrize("blocked", [True, False])
def test_stream_gives_four_metrics_beside_nine_tests(tmp_path: Path, blocked: bool) -> None:
    path = study(tmp_path / "20211014_all_exp_results.csv", STREAM_NPB, 24, blocked, measured, HEAD_2021)
    found, warnings = read(path)
    assert not warnings
    assert list(found.names) == [*STREAM, *(name[2:-3] for name in NPB)]
    assert found.test_names[0] == "run_memory"
    assert found.value.size == 48 * 13
    made, _ = analyze(path)
    assert all(each["n_fixed"] == each["n_random"] == 24 for each in made["tests"].values())
    assert 9_800 < made["tests"]["copy_omp"]["median_fixed"] < 10_200
    assert 39_800 < made["tests"]["triad_omp"]["median_random"] < 40_200
    assert made["design"]["interleaved"] is not blocked
    assert made["design"]["runs_fixed"] == made["design"]["runs_random"] == 24
    assert [group["label"] for group in made["tests"]["copy_omp"]["position"]["groups"]] == sorted(
        {int(place) for place in found.position[(found.series == 0) & found.random]}
    )
    after = {group["label"] for group in made["tests"]["bt.C"]["predecessor"]["groups"]}
    assert "run_memory" in after  # as one test, not as four
    assert made["across"]["pairs"] == 36  # among the nine; each of STREAM's has no other of its kind


def test_the_twenty_tests_of_the_file_system_study(tmp_path: Path) -> None:
    made, _ = analyze(study(tmp_path / "20221012_all_test_results.csv", UFS, 10, False, measured))
    assert len(made["tests"]) == 20
    assert made["alpha_bonferroni"] == 0.0025
    assert made["tests"]["ufs.T00"]["ci_fixed"] is not None
    published, _ = analyze(tmp_path / "20221012_all_test_results.csv", "--as-published")
    assert published["intervals"]["level"] == 0.9975


def test_the_cleaned_file_with_an_index_and_a_row_for_each_metric(tmp_path: Path) -> None:
    """Its rows are in another order; runs are put in time by their UUID, and STREAM's four share their place."""
    whole = study(tmp_path / "x_all_exp_results.csv", STREAM_NPB, 12, False, measured, HEAD_2021)
    rows = []
    for line in whole.read_text().splitlines()[1:]:
        front, _, result = line.partition(",Success,")
        for kind, value in zip(STREAM, result.strip('"[]').split(", "), strict=False):
            command = kind if "run_memory" in front else None
            rows.append(f"{front.replace('./run_memory.sh', command) if command else front},Success,{value}")
    random.Random(1).shuffle(rows)
    clean = tmp_path / "x_all_exp_results_clean.csv"
    clean.write_text("\n".join([f",{HEAD_2021}", *(f"{number},{row}" for number, row in enumerate(rows))]) + "\n")
    made, _ = analyze(clean)
    first, _ = analyze(whole)
    assert set(made["tests"]) == set(first["tests"])
    for name, each in made["tests"].items():
        for key in ("p", "median_fixed", "ci_random", "position_p", "drift_p"):
            assert each[key] == first["tests"][name][key]
    assert made["design"]["interleaved"]
    assert made["tests"]["bt.C"]["predecessor_p"] is None
    assert "several tests have the same position" in made["design"]["warnings"][0]


def test_several_numbers_in_one_cell_are_read_without_brackets_too(tmp_path: Path) -> None:
    """As in the published STREAM results: "33888.15,33794.10,38016.58,38157.31"."""
    path = study(tmp_path / "a.csv", STREAM_NPB[:2], 6, False, measured)
    before = analyze(path)[0]
    path.write_text(path.read_text().replace('"[', '"').replace(']"', '"').replace(", ", ","))
    assert "[" not in path.read_text()
    assert analyze(path)[0] == before
    assert set(before["tests"]) == {*STREAM, NPB[0][2:-3]}


@pytest.mark.slow
def test_a_failure_of_a_test_with_several_metrics_is_one_in_each(tmp_path: Path) -> None:
    """Line 2 is STREAM's first trial, in a fixed run; line 13 is in a random one."""
    path = study(tmp_path / "a.csv", STREAM_NPB, 6, False, measured, HEAD_2021, failed=(2, 13))
    names = set(analyze(path)[0]["tests"])
    assert names == {*STREAM, *(name[2:-3] for name in NPB)}
    trial, published = (
        [
            (each["n_fixed"], each["n_random"], each["failed_fixed"], each["failed_random"])
            for each in analyze(path, *options)[0]["tests"].values()
        ]
        for options in ((), ("--as-published",))
    )
    assert trial[:4] == [(5, 6, 1, 0)] * 4
    assert sum(each[3] for each in trial) == 1
    assert all(each[0] == 5 for each in published)  # a whole fixed run is left out
    assert sum(each[1] for each in published) == sum(each[1] for each in trial)  # of a random one, only the trial
    assert any("2 of 120 trials failed" in line for line in analyze(path)[0]["verdict"])


def test_uuids_without_a_time_are_used_in_row_order(tmp_path: Path) -> None:
    path = study(tmp_path / "a.csv", UFS[:3], 20, False, measured)
    text = path.read_text()
    for number in range(40):
        text = text.replace(uuid_of(number), str(uuid4()))
    path.write_text(text)
    made, _ = analyze(path)
    assert made["design"]["interleaved"]
    assert made["design"]["stretches"] == 40


def test_names_that_differ_only_in_their_ends_stay_whole(tmp_path: Path) -> None:
    found, _ = read(study(tmp_path / "a.csv", ("./a.sh", "./a"), 6, False, measured))
    assert found.names == ("./a.sh", "./a")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Success,1", "Done,1", "line 3: completion_status is 'Done', neither Success nor Failure"),
        ("Success,1", "Success,fast1", "line 3: result 'fast1"),
        ("Success,1.5", "Success,-Infinity", "line 3: result '-Infinity' is not a number"),
        ("Success,1.5", "Success,1_5", "line 3: result '1_5' is not a number"),
        ("Success,1.5", "Success,[]", "line 3: result '[]' is not a number"),
        ("Success,1.5", 'Success,"[1, [2]]"', "line 3: result '[1, [2]]' is not a number"),
        ("Success,1.5", 'Success,"[1, 2"', "line 3: result '[1, 2' is not a number"),
        (",fixed,", ",sorted,", "line 3: column order_type: 'sorted': must be fixed, random or williams"),
        (",1,1,fixed", ",1,first,fixed", "line 3: column order_number: 'first' is not a number"),
        (",1,1,fixed", ",1,-1,fixed", "line 3: column order_number: is not a whole number from 0 to 2147483646"),
        ("hp065.utah,", "", "line 3: 11 columns, not 12"),
    ],
)
def test_an_error_is_reported_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = study(tmp_path / "a.csv", ("./a.sh", "./b.sh"), 3, False, lambda *_: "1.5")
    lines = path.read_text().split("\n")
    assert old in lines[2]
    lines[2] = lines[2].replace(old, new)
    path.write_text("\n".join(lines))
    refused(path, message)


@pytest.mark.parametrize("missing", ["", "nan", "NaN", '"[1.0, NaN]"', "None"])
def test_a_success_without_its_number_counts_as_failed(tmp_path: Path, missing: str) -> None:
    path = study(tmp_path / "a.csv", ("./a.sh", "./b.sh"), 3, False, lambda *_: "1.5")
    lines = path.read_text().split("\n")
    lines[2] = lines[2].replace("Success,1.5", f"Success,{missing}")
    path.write_text("\n".join(lines))
    made, _ = analyze(path)
    assert (made["tests"]["b"]["n_fixed"], made["tests"]["b"]["failed_fixed"]) == (2, 1)
    assert "1 trials failed" not in made["verdict"][0]
    assert any("1 of 12 trials failed" in line for line in made["verdict"])


def test_results_with_different_counts_of_numbers_are_refused(tmp_path: Path) -> None:
    path = study(tmp_path / "a.csv", ("./a.sh",), 3, False, lambda _, run: "1.5" if run else '"[1.0, 2.0]"')
    refused(path, "line 3: 1 number; other results of this test have 2")


def test_a_header_alone_has_no_trials(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEAD_2021 + "\n")
    refused(path, "contains no trials")


def test_hosts_are_strata_and_pooled_only_as_published(tmp_path: Path) -> None:
    path = study(tmp_path / "a.csv", UFS[:2], 6, False, measured)
    assert not read(path)[1]
    lines = path.read_text().splitlines()
    path.write_text("\n".join([line.replace("hp065", "hp066") if at > 9 else line for at, line in enumerate(lines)]))
    found, warnings = read(path)
    assert found.hosts == ("hp065.utah", "hp066.utah")
    assert not warnings


def test_a_duplicate_trial_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = study(tmp_path / "a.csv", STREAM_NPB[:3], 6, False, measured)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1]]))
    refused(path, "line 38: column order_number: run, position, test and metric are the same as in line 2")


@pytest.mark.parametrize("column", ["run_uuid", "order_type", "completion_status", "result", "test_command"])
def test_a_column_that_is_missing_is_named_as_this_format_has_it(tmp_path: Path, column: str) -> None:
    path = study(tmp_path / "a.csv", UFS[:2], 6, False, measured)
    head, rest = path.read_text().split("\n", 1)
    path.write_text(f"{head.replace(column, 'other')}\n{rest}")
    refused(path, f"looks like OrderSage's results, but has no column {column.replace('test_', 'exp_')}")


def test_a_column_cannot_be_chosen(tmp_path: Path) -> None:
    path = study(tmp_path / "a.csv", UFS[:2], 6, False, measured)
    refused(path, "--value result: selects a table's column, but", "--value", "result")

"""Labels keep the differing parts of names and drop the common ones."""

from __future__ import annotations

from cbench.report.labels import labels

LONG = "taskset -c 3 /opt/suite/bin/runner --benchmark={} --repetitions=30 --format=json"


def test_of_long_commands_only_the_differing_part_is_kept() -> None:
    assert labels([LONG.format(each) for each in ("quick-sort", "merge-sort", "heap")]) == [
        "quick-sort",
        "merge-sort",
        "heap",
    ]


def test_names_that_fit_are_unchanged() -> None:
    assert labels(["bench/a", "bench/b"]) == ["bench/a", "bench/b"]
    assert labels(["alone"]) == ["alone"]
    assert labels([]) == []


def test_a_name_that_is_the_common_part_of_all_is_kept_whole() -> None:
    one, other = labels(["x" * 40, "x" * 40 + " more"])
    assert one
    assert one != other

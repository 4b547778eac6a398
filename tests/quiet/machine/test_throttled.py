"""Whether heat has slowed a CPU down while it was measured."""

from __future__ import annotations

from pathlib import Path

from quiet.host.reader import Reader
from quiet.machine.virtualization import throttled
from quiet.noise.measure_and_judge import slowed
from tests.trees import CPU, plant


def counts(root: Path, cpu: int, **files: str) -> None:
    plant(root, {f"{CPU}/cpu{cpu}/thermal_throttle/{name}_throttle_count": text for name, text in files.items()})


def test_core_and_package_counts_are_added_and_only_increases_count(tmp_path: Path) -> None:
    counts(tmp_path, 2, core="3", package="10")
    counts(tmp_path, 3, core="0", package="10")
    before = throttled(Reader(str(tmp_path)), frozenset({2, 3}))
    counts(tmp_path, 2, core="4", package="12")
    assert slowed(before, throttled(Reader(str(tmp_path)), frozenset({2, 3}))) == {2: 3, 3: 0}


def test_a_cpu_without_a_counter_is_omitted_and_not_called_cool(tmp_path: Path) -> None:
    counts(tmp_path, 2, core="3")
    assert throttled(Reader(str(tmp_path)), frozenset({2, 3})) == {2: 3}


def test_a_cpu_that_went_offline_is_not_compared() -> None:
    assert slowed({2: 1, 3: 1}, {2: 1}) == {2: 0}

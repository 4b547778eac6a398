"""Writing in passes: until all is as wanted, or a pass makes no progress."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from quiet.host.host import Host
from quiet.settings.engine import MAX_PASSES, Failure, Write, settle
from quiet.targets.value_types import NUMBER, TEXT
from tests.quiet.kernels import Kernel, refuse
from tests.trees import plant


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return plant(tmp_path, {"a": "1", "b": "1"})


def run(host: Host, *writes: Write) -> tuple[list[Failure], list[str]]:
    steps: list[str] = []
    left = settle(
        host,
        writes,
        lambda write: steps.append(f"before {write.target} {write.wanted}"),
        lambda write, found: steps.append(f"after {write.target} {found}"),
    )
    return left, steps


def test_targets_with_the_wanted_value_are_not_written(root: Path) -> None:
    host = Kernel(root)
    assert run(host, Write("file:/a", "0x1", NUMBER)) == ([], [])
    assert host.written == []


def test_the_intent_is_logged_before_each_write_and_the_value_after_it(root: Path) -> None:
    left, steps = run(Kernel(root), Write("file:/a", "2", NUMBER), Write("file:/b", "3", NUMBER))
    assert left == []
    assert steps == ["before file:/a 2", "after file:/a 2", "before file:/b 3", "after file:/b 3"]


def test_a_write_that_waits_for_another_succeeds_in_a_later_pass(root: Path) -> None:
    def locked(kernel: Kernel, path: str, value: str) -> str:
        if path == "/a" and kernel.text("/b") != "2":
            raise OSError(errno.EBUSY, "Device or resource busy")
        return value

    host = Kernel(root, locked)
    assert run(host, Write("file:/a", "2", TEXT), Write("file:/b", "2", TEXT))[0] == []
    assert host.written == [("/b", "2"), ("/a", "2")]


def test_a_value_that_a_later_write_disturbs_is_written_again(root: Path) -> None:
    def disturbing(kernel: Kernel, path: str, value: str) -> str:
        if path == "/b":
            Path(kernel.root, "a").write_text("9\n")
        return value

    host = Kernel(root, disturbing)
    assert run(host, Write("file:/a", "2", TEXT), Write("file:/b", "2", TEXT))[0] == []
    assert host.text("/a") == "2"


def test_a_refusal_is_left_with_the_kernels_number_and_words(root: Path) -> None:
    left, steps = run(Kernel(root, refuse("/a", errno.EPERM)), Write("file:/a", "2", TEXT))
    assert [(item.write.target, item.errno, item.text) for item in left] == [
        ("file:/a", errno.EPERM, "Operation not permitted")
    ]
    assert set(steps) == {"before file:/a 2"}


def test_a_value_that_the_kernel_rounds_is_left_unless_rounding_is_expected(root: Path) -> None:
    host = Kernel(root, lambda kernel, path, value: "7")
    left, _ = run(host, Write("file:/a", "8", NUMBER))
    assert [(item.errno, item.text) for item in left] == [(0, "the kernel reports '7'")]
    assert run(host, Write("file:/b", "8", NUMBER, clamps=True))[0] == []


def test_a_value_that_the_kernel_keeps_changing_ends_the_attempts(root: Path) -> None:
    counter = iter(range(10, 1000))
    host = Kernel(root, lambda kernel, path, value: str(next(counter)))
    assert run(host, Write("file:/a", "2", TEXT))[0]
    assert len(host.written) <= MAX_PASSES


def test_a_missing_file_is_skipped(root: Path) -> None:
    left, _ = run(Kernel(root), Write("file:/gone", "2", TEXT))
    assert [item.errno for item in left] == [errno.ENOENT]


@pytest.mark.parametrize("target", ["task:812", "process:812", "cpuset:812"])
def test_a_task_that_has_ended_needs_nothing(root: Path, target: str) -> None:
    assert run(Kernel(root), Write(target, "0-3", TEXT)) == ([], [])


def test_a_value_that_another_write_keeps_reverting_is_left_and_reported(root: Path) -> None:
    def rivals(kernel: Kernel, path: str, value: str) -> str:
        Path(kernel.root, "b" if path == "/a" else "a").write_text("9\n")
        return value

    left, _ = run(Kernel(root, rivals), Write("file:/a", "2", TEXT), Write("file:/b", "2", TEXT))
    assert [(item.write.target, item.text) for item in left] == [("file:/a", "the kernel reports '9'")]

"""The snapshot detects changes left by a quieting tool, and ignores those of the kernel itself. Boots nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.guest import snapshot

KTHREAD, FIXED = snapshot.PF_KTHREAD, snapshot.PF_NO_SETAFFINITY


def taken(root: Path, name: str, flags: int, allowed: str) -> snapshot.Snapshot:
    """The snapshot of a machine with CPUs 0-3 and one task."""
    folder = root / "proc/10/task/10"
    folder.mkdir(parents=True, exist_ok=True)
    fields = ["S", "2", "0", "0", "0", "-1", str(flags), *["0"] * 12, "85", *["0"] * 30]
    (folder / "stat").write_text(f"10 ({name}) {' '.join(fields)}\n")
    (folder / "status").write_text(f"Name:\t{name}\nCpus_allowed_list:\t{allowed}\n")
    (folder / "cgroup").write_text("0::/\n")
    possible = root / "sys/devices/system/cpu/possible"
    possible.parent.mkdir(parents=True, exist_ok=True)
    possible.write_text("0-3\n")
    return snapshot.take(str(root))


@pytest.mark.parametrize(
    ("what", "name", "flags", "before", "after", "differs"),
    [
        ("a task that lost CPUs", "sleep", 0, "0-3", "0-1", True),
        ("a task that came to all CPUs", "sleep", 0, "3", "0-3", True),
        ("a kernel thread that lost CPUs", "kauditd", KTHREAD, "0-3", "0-1", True),
        ("a kernel thread that came to all CPUs", "kauditd", KTHREAD, "3", "0-3", True),
        ("a rescuer after it has helped a pool", "mm_percpu_wq", KTHREAD | FIXED, "0-3", "2", False),
        ("a rescuer after a cpuset has changed", "mm_percpu_wq", KTHREAD | FIXED, "3", "0-3", False),
        ("a rescuer that lost CPUs", "mm_percpu_wq", KTHREAD | FIXED, "0-3", "0-1", True),
        ("a thread of one CPU that left it", "cpuhp/3", KTHREAD | FIXED, "3", "0-3", True),
        ("a worker", "kworker/u8:1", KTHREAD | FIXED, "0-3", "0-1", False),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) and value.startswith("a ") else "",
)
def test_a_changed_mask_counts_as_a_conflict_unless_the_kernel_set_it(
    tmp_path: Path, what: str, name: str, flags: int, before: str, after: str, differs: bool
) -> None:
    first = taken(tmp_path, name, flags, before)
    left = snapshot.compare(first, taken(tmp_path, name, flags, after))
    assert bool(left) is differs, what
    assert snapshot.compare(first, taken(tmp_path, name, flags, before)) == []


def test_a_rescuer_may_have_the_cpus_of_an_unbound_pool_that_it_helped(tmp_path: Path) -> None:
    mask = tmp_path / "sys/devices/virtual/workqueue/writeback/cpumask"
    mask.parent.mkdir(parents=True)
    mask.write_text("5\n")
    first = taken(tmp_path, "writeback", KTHREAD | FIXED, "0,2")
    assert snapshot.compare(first, taken(tmp_path, "writeback", KTHREAD | FIXED, "0-3")) == []
    assert snapshot.compare(first, taken(tmp_path, "writeback", KTHREAD | FIXED, "0-1")) != []

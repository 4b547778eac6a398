"""The use of a CPU's idle states is the difference of two readings of the kernel's counts."""

from __future__ import annotations

from pathlib import Path

from quiet.host.reader import Reader
from quiet.noise.wake import idle_states
from quiet.noise.wake.idle_states import IdleState
from tests.trees import plant


def tree(root: Path, usage: int, time_us: int) -> Reader:
    base = "sys/devices/system/cpu/cpu2/cpuidle/state1"
    texts = {"name": "C6", "latency": "133", "usage": str(usage), "time": str(time_us), "disable": "0"}
    plant(root, {f"{base}/{name}": text for name, text in texts.items()})
    return Reader(str(root))


def test_usage_and_time_are_differences(tmp_path: Path) -> None:
    before = idle_states.read(tree(tmp_path, 10, 100), [2])
    after = idle_states.read(tree(tmp_path, 13, 170), [2])
    assert idle_states.used(before[2], after[2]) == (IdleState(1, "C6", 133, False, 3, 70),)


def test_a_kernel_without_idle_states_has_none(tmp_path: Path) -> None:
    assert idle_states.read(Reader(str(tmp_path)), [0]) == {0: ()}

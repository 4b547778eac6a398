"""Threads that were not there at the apply: a restore leaves them with the CPUs that they would have had."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet.host.proc import status_field
from quiet.settings.apply import apply
from quiet.settings.profile import check
from quiet.settings.restore import restore
from tests.quiet.memory import Memory
from tests.trees import machine, task


def cpus(host: Memory, tid: int) -> str | None:
    return status_field(host.text(f"/proc/{tid}/status"), "Cpus_allowed_list")


@pytest.mark.parametrize(("release", "kernel_thread"), [("6.12.1", "1"), ("7.0.1", "0-3")])
def test_a_users_mask_is_kept_and_the_kernel_again_chooses_that_of_a_kernel_thread(
    tmp_path: Path, release: str, kernel_thread: str
) -> None:
    tree = machine(cpus=4, cgroup=0) | task(812, "sshd", "0-3") | {"proc/sys/kernel/osrelease": f"{release}\n"}
    host = Memory(str(tmp_path), tree)
    profile = check({"cpus": {"isolated": "2-3"}, "knobs": {"tasks": "quiet"}}, "profile own", "own")
    apply(host, profile)
    assert cpus(host, 812) == "0-1"
    for name, text in (task(900, "kswapd1", "1", kernel=True) | task(901, "pinned", "1")).items():
        host.add(f"/{name}", text)

    def as_when_a_partition_goes(host: Memory, path: str, value: str) -> str:
        if path == "/proc/812/status":
            host.laws.clear()
            for tid in (900, 901):
                host.set_affinity(tid, "0-3")
        return value

    host.laws.append(as_when_a_partition_goes)
    assert restore(host).complete
    assert {tid: cpus(host, tid) for tid in (812, 900, 901)} == {812: "0-3", 900: kernel_thread, 901: "1"}

"""With two NUMA nodes a command gets memory of the isolated CPUs' node, and afterwards all is as before."""

from __future__ import annotations

import pytest

from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.parametrize("machine", ["numa"], indirect=True)]
SCRIPT = """
printf '[knobs]\\ncpuset = "quiet"\\n"cpuset.mems" = "quiet"\\ntasks = "quiet"\\n' >/run/mine.toml
use='
import re
data = bytearray(64 << 20)
for place in range(0, len(data), 4096):
    data[place] = 1
pages = {}
for line in open("/proc/self/numa_maps"):
    if "anon=" in line and int(re.search("anon=([0-9]+)", line)[1]) > 10000:
        for node, count in re.findall(" N([0-9]+)=([0-9]+)", line):
            pages[int(node)] = pages.get(int(node), 0) + int(count)
print(*sorted(pages))
'
python -m tests.lab.guest.snapshot >/run/before
for mems in auto 0 leave; do
    quiet run --profile /run/mine.toml --cpus 2-3 --mems $mems -- python -S -c "$use" >/run/out 2>/run/err
    cp /run/out $LAB_OUT/$mems; cp /run/err $LAB_OUT/$mems.err
done
quiet run --profile /run/mine.toml --cpus 2-3 --mems 0,5 -- true 2>$LAB_OUT/wrong
echo $? >>$LAB_OUT/wrong
partition=/sys/fs/cgroup/quiet/cpuset.cpus.partition
quiet apply --profile /run/mine.toml --cpus 2-3
quiet run --profile /run/mine.toml -- cat $partition >$LAB_OUT/during
cat $partition >$LAB_OUT/after
quiet restore
python -m tests.lab.guest.snapshot >/run/now
python -c '
import json
from tests.lab.guest.snapshot import compare
print(*compare(json.load(open("/run/before")), json.load(open("/run/now"))), sep="\\\\n", end="")
' >$LAB_OUT/left
"""


@once
def booted(machine: Machine) -> Result:
    result = boot(machine, SCRIPT, timeout=1800)
    assert result.code == 0, result.output
    return result


@pytest.mark.parametrize(("mems", "node"), [("auto", "1"), ("0", "0")])
def test_memory_comes_from_the_node_that_was_chosen(machine: Machine, mems: str, node: str) -> None:
    assert booted(machine).files[mems] == f"{node}\n", booted(machine).files[f"{mems}.err"]


def test_a_missing_node_is_refused_before_anything_is_changed(machine: Machine) -> None:
    assert "--mems: no memory on node 5" in booted(machine).files["wrong"]
    assert booted(machine).files["wrong"].endswith("\n2\n")


def test_a_profile_that_was_applied_before_has_its_own_partition_again_after_a_balanced_run(machine: Machine) -> None:
    assert booted(machine).files["during"] == "root\n"
    assert booted(machine).files["after"] == "isolated\n"


def test_afterwards_the_host_is_as_before(machine: Machine) -> None:
    assert booted(machine).files["left"] == ""

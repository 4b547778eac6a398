"""Wake-up latency beside the kernel's own tracer: `rtla timerlat` and `quiet noise --wake` in one guest, in turn.

Skipped unless the lab's own kernel is built: Debian's have no timerlat tracer. timerlat's thread ends in the
kernel, quiet's in user space.
"""

from __future__ import annotations

import pytest

from tests.lab.cases import latencies
from tests.lab.harness import debian
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["own"], indirect=True)]

CPU, SECONDS = 3, 4
TURNS = (1, 2, 3)
# timerlat's timer is bound to its CPU; a user's would go to a housekeeping CPU.
SCRIPT = f"""
echo 0 >/proc/sys/kernel/timer_migration
export LD_LIBRARY_PATH=$RTLA_LIBRARIES
for turn in {" ".join(map(str, TURNS))}; do
    quiet noise --wake --cpus {CPU} --fifo 95 --duration {SECONDS} --no-trace --json >$LAB_OUT/quiet.$turn || exit
    $RTLA/rtla timerlat hist -c {CPU} -P f:95 -p 1000 -d {SECONDS}s -E 100000 --no-irq >$LAB_OUT/rtla.$turn || exit
done
"""


@once
def booted(machine: Machine) -> Result:
    try:
        root = debian.programs("rtla", ["rtla", "libtracefs1", "libtraceevent1"])
    except PackageError as error:
        pytest.skip(f"not here: rtla: {error}")
    env = {"RTLA": str(root / "usr/bin"), "RTLA_LIBRARIES": str(root / "usr/lib/x86_64-linux-gnu")}
    result = boot(machine, SCRIPT, timeout=600, env=env)
    assert result.code == 0, result.output
    return result


def test_quiet_and_timerlat_agree_on_the_distribution(machine: Machine) -> None:
    files = booted(machine).files
    ours = latencies.typical(latencies.of_quiet(files[f"quiet.{turn}"], CPU) for turn in TURNS)
    theirs = latencies.typical(latencies.of_timerlat(files[f"rtla.{turn}"]) for turn in TURNS)
    print("quiet", ours, "timerlat", theirs)
    assert latencies.agree(ours, theirs), (ours, theirs)

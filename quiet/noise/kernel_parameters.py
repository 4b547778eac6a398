"""Check the kernel parameters that remedies name: those in effect for a CPU, and those that this kernel lacks."""

from __future__ import annotations

import contextlib

from quiet import cpulist
from quiet.errors import UsageError
from quiet.machine.facts import CPU, Facts

_NOCB = "/sys/module/rcutree/parameters/rcu_nocb_gp_stride"  # only with CONFIG_RCU_NOCB_CPU (kernel/rcu/tree_nocb.h)


def boot_parameters(facts: Facts, cpu: int) -> frozenset[str]:
    """The kernel parameters in effect for a CPU, limited to those that remedies name."""
    names = {"nohz_full"} if cpu in facts.nohz_full else set()
    for word in facts.command_line.split():
        name, _, value = word.partition("=")
        if name == "rcu_nocbs":
            with contextlib.suppress(UsageError):
                last = str(max(facts.possible, default=0))  # "N" is the last CPU (kernel-parameters.rst, "cpu lists")
                names |= {name} if value == "all" or cpu in cpulist.parse(value.replace("N", last)) else set()
        elif word in ("tsc=nowatchdog", "tsc=reliable"):
            names.add("tsc")
    power_efficient = facts.reader.text("/sys/module/workqueue/parameters/power_efficient")
    names |= {"workqueue.power_efficient"} if power_efficient == "Y" else set()
    return frozenset(names | ({"rcu_nocbs"} if cpu in facts.nohz_full else set()))  # nohz_full= implies rcu_nocbs=


def absent_parameters(facts: Facts) -> dict[str, str]:
    """Those of the parameters nohz_full and rcu_nocbs that this kernel lacks, each with the reason."""
    exists = facts.reader.exists
    absent = {}
    if not exists(f"{CPU}/nohz_full"):  # drivers/base/cpu.c
        absent["nohz_full"] = "this kernel has no nohz_full (CONFIG_NO_HZ_FULL)"
    if "nohz_full" in absent and not exists(_NOCB) and exists(_NOCB.rpartition("/")[0]):
        absent["rcu_nocbs"] = "this kernel has no rcu_nocbs (CONFIG_RCU_NOCB_CPU)"
    return absent

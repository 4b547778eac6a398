"""Facts that `quiet status` tells and that no knob depends on: what kind of machine this is and what it can do."""

from __future__ import annotations

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.facts import CPU, Facts
from quiet.host import Reader

_VIRTUAL_VENDORS = ("QEMU", "KVM", "VMware", "VirtualBox", "Virtual Machine", "Bochs", "OpenStack", "Parallels")
_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")


def virtual(facts: Facts) -> str:
    """The hypervisor, container or WSL that this host runs in; "" on bare metal as far as the kernel shows."""
    inside = "container" if any(facts.reader.exists(path) for path in _CONTAINER_FILES) else ""
    return ", ".join(filter(None, (hypervisor(facts), inside)))


def hypervisor(facts: Facts) -> str:
    """The hypervisor that this kernel runs under; "" on bare metal as far as the kernel shows."""
    reader = facts.reader
    if "microsoft" in (reader.text("/proc/version") or "").lower():
        return "WSL"
    kind = reader.text("/sys/hypervisor/type")
    if kind:
        return f"hypervisor {kind}"
    vendor = " ".join(filter(None, (reader.text(f"/sys/class/dmi/id/{n}") for n in ("sys_vendor", "product_name"))))
    flags = next((line for line in cpuinfo(facts).splitlines() if line.startswith(("flags", "Features"))), "")
    # only x86 has the flag; elsewhere the firmware's names tell, or the device tree
    named = any(word in vendor for word in _VIRTUAL_VENDORS) or reader.exists("/proc/device-tree/hypervisor")
    if "hypervisor" in flags.split() or named:
        return f"hypervisor ({vendor})" if vendor else "hypervisor"
    return ""


def cpuinfo(facts: Facts) -> str:
    """/proc/cpuinfo."""
    return facts.reader.text("/proc/cpuinfo") or ""


def model(facts: Facts) -> str:
    """The processor's name, or "unknown"."""
    for line in cpuinfo(facts).splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "Processor", "uarch") and value.strip():
            return value.strip()
    return "unknown"


def performance_counters(facts: Facts) -> list[str]:
    """The core PMUs that perf_event can use; empty in most virtual machines."""
    names = facts.reader.names("/sys/bus/event_source/devices")
    return [n for n in names if n in ("cpu", "cpu_core", "cpu_atom") or n.startswith(("armv", "arm_", "riscv"))]


def throttled(reader: Reader, cpus: CpuSet) -> dict[int, int]:
    """How often each CPU, or its package, was slowed down for heat since the boot; without those that do not count.

    Source: arch/x86 therm_throt.c, the counters under cpuN/thermal_throttle.
    """
    found = {}
    for cpu in sorted(cpus):
        base = f"{CPU}/cpu{cpu}/thermal_throttle"
        texts = [reader.text(f"{base}/{part}_throttle_count") or "" for part in ("core", "package")]
        if any(texts):
            found[cpu] = sum(int(text) for text in texts if text.isdecimal())
    return found


def kernel_can(facts: Facts) -> dict[str, str]:
    """What this kernel offers for isolation: each ability with "yes", "no" or the reason of a maybe."""
    version, mount = facts.cgroup
    reader = facts.reader
    partition = {
        2: "yes (cgroup v2)",
        1: f"no (cgroup v1 at {mount}: a shield is used instead)",
        0: "no (no cpuset controller)",
    }[version]
    return {
        "cpuset partitions": partition,
        "nohz_full": f"yes ({cpulist.format(facts.nohz_full) or 'none at boot'})"
        if reader.exists(f"{CPU}/nohz_full")
        else "no (kernel without CONFIG_NO_HZ_FULL)",
        "SMT control": reader.text(f"{CPU}/smt/control") or "absent",
        "cpufreq": ", ".join(sorted({driver for p in facts.policies if (driver := _driver(facts, p))}))
        or "absent (no driver: the frequency is not ours to set)",
        "performance counters": ", ".join(performance_counters(facts)) or "absent",
    }


def _driver(facts: Facts, policy: int) -> str | None:
    return facts.reader.text(f"{CPU}/cpufreq/policy{policy}/scaling_driver")

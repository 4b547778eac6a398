"""Facts that `quiet status` tells and that no knob depends on: what kind of machine this is and what it can do."""

from __future__ import annotations

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.host.reader import Reader
from quiet.machine.facts import CPU, Facts

_GVISOR = "#1 SMP Sun Jan 10 15:06:54 PST 2016"  # what its kernel in user space says of itself

_VIRTUAL_VENDORS = ("QEMU", "KVM", "VMware", "VirtualBox", "Virtual Machine", "Bochs", "OpenStack", "Parallels")
# what container managers leave for those inside (systemd.io/CONTAINER_INTERFACE and the managers' own habits)
_CONTAINER_FILES = {
    "/.dockerenv": "Docker",
    "/run/.containerenv": "Podman",
    "/var/run/secrets/kubernetes.io": "Kubernetes",
    "/dev/lxd/sock": "LXD",
}
_CONTAINER_NAMES = ("/run/systemd/container", "/run/host/container-manager")
_CGROUP_NAMES = {"/docker": "Docker", "/libpod": "Podman", "/kubepods": "Kubernetes", "/lxc": "LXC"}


def virtual(facts: Facts) -> str:
    """The hypervisor, container or WSL that this host runs in; "" on bare metal as far as the kernel shows."""
    return ", ".join(filter(None, (hypervisor(facts), container(facts))))


def container(facts: Facts) -> str:
    """The container that this process runs in, with its manager where that shows itself; "" outside of any."""
    reader = facts.reader
    for path in _CONTAINER_NAMES:
        if name := reader.text(path):
            return f"container ({name})"
    found = [name for path, name in _CONTAINER_FILES.items() if reader.exists(path)]
    group = reader.text("/proc/1/cgroup") or ""
    found += [name for part, name in _CGROUP_NAMES.items() if f":{part}" in group]
    return f"container ({' in '.join(dict.fromkeys(found))})" if found else ""


def hypervisor(facts: Facts) -> str:
    """The hypervisor that this kernel runs under; "" on bare metal as far as the kernel shows."""
    reader = facts.reader
    version = reader.text("/proc/version") or ""
    if "microsoft" in version.lower():
        return "WSL" if "microsoft-standard" in version else "WSL 1"  # 2 has a kernel of its own, Microsoft's
    if "gvisor" in version or _GVISOR in version:
        return "gVisor"
    kind = reader.text("/sys/hypervisor/type")
    if kind:
        guest = reader.text("/sys/hypervisor/guest_type") or ""
        control = "control_d" in (reader.text("/proc/xen/capabilities") or "")
        return " ".join(filter(None, ("hypervisor", kind, guest, "dom0" if control else "")))
    vendor = " ".join(filter(None, (reader.text(f"/sys/class/dmi/id/{n}") for n in ("sys_vendor", "product_name"))))
    flags = next((line for line in cpuinfo(facts).splitlines() if line.startswith(("flags", "Features"))), "")
    # only x86 has the flag; elsewhere the firmware's names tell, or the device tree
    named = any(word in vendor for word in _VIRTUAL_VENDORS) or reader.exists("/proc/device-tree/hypervisor")
    named = named or (vendor.startswith("Amazon EC2") and not vendor.endswith(".metal"))
    if "hypervisor" in flags.split() or named:
        # without firmware's names, and with all devices mapped into memory: Firecracker and its like
        small = not vendor and reader.names("/sys/bus/platform/drivers/virtio-mmio")
        return f"hypervisor ({vendor or 'a microVM'})" if vendor or small else "hypervisor"
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
    return [
        n
        for n in names
        if n in ("cpu", "cpu_core", "cpu_atom", "cpu_lowpower") or n.startswith(("armv", "arm_", "riscv"))
    ]


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

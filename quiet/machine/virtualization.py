"""Detect the type of machine, its capabilities, and its hypervisor's effects."""

from __future__ import annotations

import re

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.host.proc import STEAL, cpu_ticks
from quiet.host.reader import Reader
from quiet.machine.facts import CPU, Facts

_GVISOR = "#1 SMP Sun Jan 10 15:06:54 PST 2016"  # the version string of its user-space kernel

# Firmware names begin with these only in virtual machines; "Virtual Machine" is Hyper-V's product name
_VM_NAMES = (
    *("QEMU", "KVM", "OpenStack", "KubeVirt", "VMware", "VirtualBox", "Virtual Machine"),
    *("Bochs", "Parallels", "BHYVE", "Apple Virtualization"),
)
_CLOUD_NAMES = ("Amazon EC2", "Google Compute Engine", "Alibaba Cloud")  # used for virtual machines and for bare metal
_METAL = re.compile(r"\.metal(-|$)")  # EC2's bare-metal instance types: m6g.metal, c7i.metal-24xl
_DMI = "/sys/class/dmi/id"
_DMI_FIELDS = ("product_name", "sys_vendor", "board_vendor", "bios_vendor", "chassis_vendor")
# root nodes of QEMU, kvmtool, Firecracker and crosvm guests that boot from a device tree
_VM_BOARDS = ("linux,dummy-virt", "qemu,", "riscv-virtio")
# files that container managers create in a container (systemd.io/CONTAINER_INTERFACE and the managers' conventions)
_CONTAINER_FILES = {
    "/.dockerenv": "Docker",
    "/run/.containerenv": "Podman",
    "/var/run/secrets/kubernetes.io": "Kubernetes",
    "/dev/lxd/sock": "LXD",
}
_CONTAINER_NAMES = ("/run/systemd/container", "/run/host/container-manager")
_CGROUP_NAMES = {"/docker": "Docker", "/libpod": "Podman", "/kubepods": "Kubernetes", "/lxc": "LXC"}
_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_CHEAP = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter", "riscv_clocksource", "jiffies")
_BALLOONS = (
    "/sys/bus/virtio/drivers/virtio_balloon",
    "/sys/bus/vmbus/drivers/hv_balloon",
    "/sys/devices/system/xen_memory",
)
# entries of a driver's directory that are not devices
_NO_DEVICE = {"bind", "unbind", "uevent", "module", "new_id", "remove_id"}


def virtual(facts: Facts) -> str:
    """The hypervisor, container or WSL in which this system runs; "" on bare metal, as far as the kernel shows."""
    return ", ".join(filter(None, (hypervisor(facts), container(facts))))


def container(facts: Facts) -> str:
    """The container of this process, with its manager if detectable; "" outside of containers."""
    reader = facts.reader
    for path in _CONTAINER_NAMES:
        if name := reader.text(path):
            return f"container ({name})"
    managers = [name for path, name in _CONTAINER_FILES.items() if reader.exists(path)]
    group = reader.text("/proc/1/cgroup") or ""
    managers += [name for part, name in _CGROUP_NAMES.items() if f":{part}" in group]
    return f"container ({' in '.join(dict.fromkeys(managers))})" if managers else ""


def hypervisor(facts: Facts) -> str:
    """The hypervisor that runs this kernel, as `quiet status` reports it; "" on bare metal.

    `quiet` and `cbench` take the answer only from here. Containers do not count: `container` reports them. Raises
    nothing: an absent or unreadable file is not evidence of a hypervisor.
    """
    reader = facts.reader
    version = reader.text("/proc/version") or ""
    if "microsoft" in version.lower():
        return "WSL" if "microsoft-standard" in version else "WSL 1"  # WSL 2 has Microsoft's own kernel
    if "gvisor" in version or _GVISOR in version:
        return "gVisor"
    kind = reader.text("/sys/hypervisor/type")
    if kind:
        guest = reader.text("/sys/hypervisor/guest_type") or ""
        control = "control_d" in (reader.text("/proc/xen/capabilities") or "")
        return " ".join(filter(None, ("hypervisor", kind, guest, "dom0" if control else "")))
    product, sys_vendor, *others = (reader.text(f"{_DMI}/{name}") or "" for name in _DMI_FIELDS)
    flags, board = _x86_flags(facts), _virtual_board(reader)
    if "hypervisor" not in (flags or ()) and not board and not reader.exists("/proc/device-tree/hypervisor"):
        clouds_count = flags is None and not _METAL.search(product)
        signs = (*_VM_NAMES, *_CLOUD_NAMES) if clouds_count else _VM_NAMES
        if not any(name.startswith(signs) for name in (product, sys_vendor, *others)):
            return ""
    # no firmware names, and all devices memory-mapped: Firecracker and similar
    small = "a microVM" if reader.names("/sys/bus/platform/drivers/virtio-mmio") else ""
    name = " ".join(filter(None, (sys_vendor, product))) or board or small
    return f"hypervisor ({name})" if name else "hypervisor"


def _x86_flags(facts: Facts) -> list[str] | None:
    """The feature flags of the first CPU; None on processors other than x86, because only x86 has a line `flags`."""
    lines = (line.partition(":") for line in cpuinfo(facts).splitlines())
    return next((value.split() for key, _, value in lines if key.strip() == "flags"), None)


def _virtual_board(reader: Reader) -> str:
    """The machine's name in the device tree if only virtual machines have it; "" otherwise."""
    names = (reader.text("/proc/device-tree/compatible") or "").split("\0")
    return next((name for name in names if name.startswith(_VM_BOARDS)), "")


def cpuinfo(facts: Facts) -> str:
    """The content of /proc/cpuinfo."""
    return facts.reader.text("/proc/cpuinfo") or ""


def model(facts: Facts) -> str:
    """The processor's name, or "unknown"."""
    for line in cpuinfo(facts).splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "Processor", "uarch") and value.strip():
            return value.strip()
    return "unknown"


def performance_counters(facts: Facts) -> list[str]:
    """The PMUs of the cores that perf_event can use; empty in most virtual machines."""
    names = facts.reader.names("/sys/bus/event_source/devices")
    return [
        n
        for n in names
        if n in ("cpu", "cpu_core", "cpu_atom", "cpu_lowpower") or n.startswith(("armv", "arm_", "riscv"))
    ]


def throttled(reader: Reader, cpus: CpuSet) -> dict[int, int]:
    """The number of times that each CPU, or its package, was throttled since boot because of heat or its power limit.

    Power limits count only with the boot parameter int_pln_enable. CPUs without these counters, such as AMD's, are
    absent. Source: arch/x86 therm_throt.c, the counters under cpuN/thermal_throttle.
    """
    counts = {}
    for cpu in sorted(cpus):
        base = f"{CPU}/cpu{cpu}/thermal_throttle"
        parts = [f"{part}_{what}_count" for part in ("core", "package") for what in ("throttle", "power_limit")]
        texts = [reader.text(f"{base}/{part}") or "" for part in parts]
        if any(texts):
            counts[cpu] = sum(int(text) for text in texts if text.isdecimal())
    return counts


def kernel_can(facts: Facts) -> dict[str, str]:
    """The kernel's capabilities for isolation: for each, "yes" or "no" with details, the names or state that the
    kernel reports, or "absent".
    """
    version, mount = facts.cgroup
    reader = facts.reader
    partition = {
        2: "yes (cgroup v2)",
        1: f"no (cgroup v1 at {mount}: two cpusets are used instead)",
        0: "no (no cpuset controller)",
    }[version]
    drivers = {reader.text(f"{CPU}/cpufreq/policy{policy}/scaling_driver") for policy in facts.policies}
    return {
        "cpuset partitions": partition,
        "nohz_full": f"yes ({cpulist.format(facts.nohz_full) or 'none at boot'})"
        if reader.exists(f"{CPU}/nohz_full")
        else "no (kernel without CONFIG_NO_HZ_FULL)",
        "SMT control": reader.text(f"{CPU}/smt/control") or "absent",
        "cpufreq": ", ".join(sorted(filter(None, drivers))) or "absent (no driver: the guest cannot set the frequency)",
        "performance counters": ", ".join(performance_counters(facts)) or "absent",
    }


def disturbances(facts: Facts) -> list[str]:
    """One sentence for each disturbance that the hypervisor or the container's host may cause; empty on bare metal
    outside of containers.
    """
    effects = []
    if container(facts):
        effects.append(
            "the container's host and its other containers run on the same kernel and cannot be seen from here"
        )
    kind = hypervisor(facts)
    if not kind:
        return effects
    if kind == "WSL":
        effects.append("Windows schedules these CPUs and owns their power plan; close the programs that run there")
    elif kind.endswith("dom0"):
        effects.append(
            "Xen schedules this dom0's CPUs; dom0_max_vcpus= and dom0_vcpus_pin on Xen's command line pin them"
        )
    share = stolen_share(facts)
    stolen = f"{share:.2%} of the time since boot was stolen (/proc/stat)" if share else "it reports no stolen time"
    effects.append(f"the hypervisor may preempt a CPU at any time; {stolen}")
    clock = facts.reader.text(_CLOCK)
    if clock and not clock.startswith(_CHEAP):
        effects.append(f"the time comes from {clock}: each read of it may exit to the hypervisor")
    if not performance_counters(facts):
        effects.append("the hypervisor exposes no performance counters: cycles and hardware causes cannot be counted")
    if not facts.policies:
        effects.append("frequency, turbo and C-states are the host's, and change without notice")
    if all(len(core) == 1 for core in facts.cores):
        effects.append("the guest cannot detect whether a CPU shares its core with a CPU of this or another guest")
    if any(set(facts.reader.names(path)) - _NO_DEVICE for path in _BALLOONS):
        effects.append("a memory balloon may take pages from the guest and return them")
    return effects


def stolen_share(facts: Facts) -> float | None:
    """The share of all CPU time since boot that the hypervisor took (proc_stat(5), "steal"); None if unknown."""
    ticks = cpu_ticks(facts.reader.text("/proc/stat") or "").get("cpu", [])[: STEAL + 1]  # user time includes guests
    total = sum(ticks)
    return ticks[STEAL] / total if len(ticks) > STEAL and total else None

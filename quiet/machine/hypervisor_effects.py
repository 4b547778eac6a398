"""What disturbs from outside of this kernel, where no knob reaches: what the hypervisor and its host still do."""

from __future__ import annotations

from quiet.host.proc import STEAL, cpu_ticks
from quiet.machine import virtualization
from quiet.machine.facts import Facts

_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_CHEAP = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter", "riscv_clocksource", "jiffies")
_BALLOONS = (
    "/sys/bus/virtio/drivers/virtio_balloon",
    "/sys/bus/vmbus/drivers/hv_balloon",
    "/sys/devices/system/xen_memory",
)
_NO_DEVICE = {"bind", "unbind", "uevent", "module", "new_id", "remove_id"}  # what a driver without any also has


def disturbances(facts: Facts) -> list[str]:
    """One sentence for each thing that the hypervisor or the container's host may do; empty on bare metal."""
    found = []
    if virtualization.container(facts):
        found.append("the container's host and its other containers run on the same kernel and are not seen from here")
    kind = virtualization.hypervisor(facts)
    if not kind:
        return found
    if kind == "WSL":
        found.append("Windows schedules these CPUs and owns their power plan; close what runs there")
    elif kind.endswith("dom0"):
        found.append(
            "Xen schedules this dom0's CPUs; dom0_max_vcpus= and dom0_vcpus_pin on Xen's command line pin them"
        )
    found.append(_stolen(facts))
    clock = facts.reader.text(_CLOCK)
    if clock and not clock.startswith(_CHEAP):
        found.append(f"the time comes from {clock}: each look at it may be a way out to the hypervisor")
    if not virtualization.performance_counters(facts):
        found.append("the hypervisor shows no performance counters: cycles and hardware causes cannot be counted")
    if not facts.policies:
        found.append("frequency, turbo and C-states are the host's, and change without notice")
    if all(len(core) == 1 for core in facts.cores):
        found.append("whether a CPU shares its core with another one, of this guest or of another, is not told")
    if any(set(facts.reader.names(path)) - _NO_DEVICE for path in _BALLOONS):
        found.append("a memory balloon may take pages away and give them back")
    return found


def _stolen(facts: Facts) -> str:
    share = stolen_share(facts)
    told = "it tells of no stolen time" if not share else f"{share:.2%} of the time since boot was stolen (/proc/stat)"
    return f"the hypervisor may take a CPU away at any time; {told}"


def stolen_share(facts: Facts) -> float | None:
    """The part of all CPU time since boot that the hypervisor spent elsewhere (proc_stat(5), "steal")."""
    ticks = cpu_ticks(facts.reader.text("/proc/stat") or "").get("cpu", [])[: STEAL + 1]  # guests count in user time
    total = sum(ticks)
    return ticks[STEAL] / total if len(ticks) > STEAL and total else None

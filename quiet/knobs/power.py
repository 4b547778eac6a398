"""Define knobs for power outside the cores (uncore, firmware profile, links, memory bus) and the cores' energy bias.

Source: admin-guide/pm/intel_epb.rst, admin-guide/pm/intel_uncore_frequency_scaling.rst and the ABI document that each
knob names. Power and temperature limits (RAPL, thermal zones) stay unchanged: they protect the machine.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet.knobs.knob import DesiredValue, Knob, RuleContext, RuleResult, Skip, offered, one_file
from quiet.machine.facts import CPU
from quiet.targets import value_types

_UNCORE = f"{CPU}/intel_uncore_frequency"
_PROFILE = "/sys/firmware/acpi/platform_profile"
_ASPM = "/sys/module/pcie_aspm/parameters/policy"
_DEVFREQ = "/sys/class/devfreq"
_SATA = "/sys/class/scsi_host"
_SATA_FILE = "link_power_management_policy"
_SCOPE = ("quiet", "all", "leave")


def _bias_path(cpu: int) -> str:
    return f"{CPU}/cpu{cpu}/power/energy_perf_bias"


def _bias(context: RuleContext) -> RuleResult:
    cpus = context.facts.online - context.cpus.offline if context.choice == "all" else context.cpus.isolated
    paths = [_bias_path(cpu) for cpu in sorted(cpus)]
    there = [path for path in paths if context.facts.reader.exists(path)]
    for path in there or [_bias_path(min(context.cpus.isolated))]:
        yield DesiredValue(f"file:{path}", "0", absent="this processor does not have this setting")


def _every_bias(context: RuleContext) -> Iterable[str]:
    # one register may serve a whole package; then a write on one CPU changes the value of all its CPUs
    return context.files(_bias_path(cpu) for cpu in sorted(context.facts.online))


def _uncore_folders(context: RuleContext) -> list[str]:
    """The uncore directories to set: `package_*` (one per package and die) if there are any, otherwise `uncore*` (one
    per part of a die). Unless the choice is "all", only those of the isolated CPUs' packages or of unknown packages.
    """
    names = context.facts.reader.names(_UNCORE)
    whole = [name for name in names if name.startswith("package_")] or [n for n in names if n.startswith("uncore")]
    if context.choice == "all":
        return whole
    ids = (context.text(f"{CPU}/cpu{cpu}/topology/physical_package_id") for cpu in context.cpus.isolated)
    packages = {int(text) for text in ids if text and text.isdecimal()}
    return [name for name in whole if not packages or _package(context, name) in (None, *packages)]


def _package(context: RuleContext, name: str) -> int | None:
    number = name.split("_")[1] if name.startswith("package_") else context.text(f"{_UNCORE}/{name}/package_id")
    return int(number) if number and number.isdecimal() else None


def _uncore(context: RuleContext) -> RuleResult:
    folders = _uncore_folders(context)
    if not folders:
        yield Skip(f"file:{_UNCORE}", "no uncore frequency that the kernel can set (intel_uncore_frequency)")
    for name in folders:
        path = f"{_UNCORE}/{name}/min_freq_khz"
        current, highest = context.text(path), context.text(f"{_UNCORE}/{name}/max_freq_khz")
        if current is None or highest is None:
            yield Skip(f"file:{path}", "this kernel does not report the uncore's limits")
        else:
            yield DesiredValue(f"file:{path}", highest, current=current)


def _every_uncore(context: RuleContext) -> Iterable[str]:
    # a write to a package is a write to each of its parts
    names = context.facts.reader.names(_UNCORE)
    return context.files(f"{_UNCORE}/{name}/{limit}" for name in names for limit in ("max_freq_khz", "min_freq_khz"))


def _platform(context: RuleContext) -> RuleResult:
    current = context.text(_PROFILE)
    if current is None:
        yield Skip(f"file:{_PROFILE}", "the firmware offers no power profile")
    elif current not in (context.text(_PROFILE + "_choices") or "").split():
        yield Skip(
            f"file:{_PROFILE}", f"the current profile '{current}' could not be restored: the firmware does not list it"
        )
    else:
        yield offered(context, _PROFILE, "performance", _PROFILE + "_choices")


def _buses(context: RuleContext) -> RuleResult:
    devices = context.facts.reader.names(_DEVFREQ)
    if not devices:
        yield Skip(f"file:{_DEVFREQ}", "no bus or memory whose frequency the kernel scales")
    for name in devices:
        path = f"{_DEVFREQ}/{name}/governor"
        current = context.text(path)
        governors = (context.text(f"{_DEVFREQ}/{name}/available_governors") or "").split()
        if current is None or "performance" not in governors:
            yield Skip(f"file:{path}", f"'performance' is not offered; governors: {' '.join(governors) or 'none'}")
        else:
            yield DesiredValue(f"file:{path}", "performance", current=current)


def _bus_state(context: RuleContext) -> Iterable[str]:
    # the governor "userspace" forgets the frequency that a user has set
    settings = ("userspace/set_freq", "max_freq", "min_freq")
    names = context.facts.reader.names(_DEVFREQ)
    return context.files(f"{_DEVFREQ}/{name}/{setting}" for name in names for setting in settings)


def _disks(context: RuleContext) -> RuleResult:
    numbers = context.facts.reader.numbered(_SATA, "host")
    targets = context.files(f"{_SATA}/host{number}/{_SATA_FILE}" for number in numbers)  # SATA ports only
    for target in targets:
        if context.text(target.removeprefix("file:")) == "keep_firmware_settings":
            yield Skip(target, "the firmware's own setting (keep_firmware_settings) could not be restored")
        else:
            yield DesiredValue(target, "max_performance")
    if not targets:
        yield Skip(f"file:{_SATA}", "no SATA port with link power management")


KNOBS = (
    Knob(
        name="power.bias",
        gain="a steady clock frequency",
        title="energy/performance bias",
        why="the processor trades speed for energy on its own unless it is set to prefer performance",
        doc="admin-guide/pm/intel_epb.rst, ABI/testing/sysfs-devices-system-cpu (energy_perf_bias)",
        rule=_bias,
        kind=value_types.NUMBER,
        choices=_SCOPE,
        targets=f"file:{CPU}/cpuN/power/energy_perf_bias of the isolated CPUs ('all': of every CPU)",
        after=("smt", "cpufreq.epp", "cpufreq.governor"),
        entangled=_every_bias,
        moves="the bias of the package's other CPUs",
    ),
    Knob(
        name="power.uncore",
        gain="a steady clock frequency",
        noticed="the package draws more power when idle",
        title="one fixed uncore frequency",
        why="the mesh, last-level cache and memory controller change their frequency with the load of all cores",
        doc="admin-guide/pm/intel_uncore_frequency_scaling.rst",
        rule=_uncore,
        kind=value_types.NUMBER,
        choices=_SCOPE,
        targets=f"file:{_UNCORE}/package_*/min_freq_khz, raised to max_freq_khz, of the isolated CPUs' packages "
        "('all': of every package)",
        entangled=_every_uncore,
        moves="the limits of the package's other parts",
        clamps=True,
        refusals={
            1: "locked by the firmware",
            5: "locked by the firmware",
            22: "the uncore does not support this frequency",
        },
        risk="the package draws more power when it has nothing to do",
    ),
    Knob(
        name="power.platform",
        gain="a steady clock frequency",
        noticed="fans run faster",
        title="the firmware's power profile",
        why="on laptops and small machines the profile shifts the power limits at which the processor slows down",
        doc="ABI/testing/sysfs-platform_profile",
        rule=_platform,
        targets=f"file:{_PROFILE}",
        risk="fans run faster; some firmware keeps the profile across a reboot, so it may survive a power failure",
    ),
    Knob(
        name="power.pcie",
        gain="no wake-up from deep idle states",
        noticed="PCIe links draw more power",
        title="power saving of PCIe links",
        why="a sleeping link responds late, which affects disks and network cards",
        doc="admin-guide/kernel-parameters.txt (pcie_aspm.policy)",
        **one_file(_ASPM, "performance", "this kernel does not manage PCIe links", value_types.CHOICE),
        refusals={1: "switched off on the command line, or the firmware controls it"},
        risk="every link of the machine draws more power",
    ),
    Knob(
        name="power.sata",
        gain="no wake-up from deep idle states",
        noticed="SATA links draw more power",
        title="power saving of SATA links",
        why="a disk whose link sleeps responds late",
        doc="ABI/testing/sysfs-class-scsi_host (link_power_management_policy)",
        rule=_disks,
        targets=f"file:{_SATA}/hostN/{_SATA_FILE}",
        refusals={95: "this port has no link power management"},
    ),
    Knob(
        name="power.bus",
        gain="a steady clock frequency",
        title="frequency of buses and memory (devfreq)",
        why="on ARM boards the memory's clock follows the load, which affects every result that depends on memory",
        doc="ABI/testing/sysfs-class-devfreq",
        rule=_buses,
        targets=f"file:{_DEVFREQ}/*/governor",
        entangled=_bus_state,
        moves="the limits, and a frequency that a user has set",
        refusals={22: "this device's governor cannot be changed"},
    ),
)

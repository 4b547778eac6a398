"""Parameters of frequency, idling, the machine's own checks and its links."""

from __future__ import annotations

from quiet.boot.parameters.parameter import DOC, BootParameter, amd, intel, x86

TABLE: tuple[BootParameter, ...] = (
    BootParameter(
        "intel_pstate",
        "how Intel's frequencies are driven: passive leaves them to the generic governors, disable to acpi-cpufreq, "
        "where one frequency can be fixed",
        risk="other limits and another turbo switch; power may rise",
        doc="admin-guide/pm/intel_pstate",
        example="passive",
        needs=intel,
        runtime="/sys/devices/system/cpu/intel_pstate/status",
    ),
    BootParameter(
        "amd_pstate",
        "how AMD's frequencies are driven: active, guided, passive or disable",
        risk="as intel_pstate",
        doc="admin-guide/pm/amd-pstate",
        example="passive",
        needs=amd,
        runtime="/sys/devices/system/cpu/amd_pstate/status",
    ),
    BootParameter(
        "amd_prefcore",
        "disable ends the scheduler's preference for the cores that AMD's firmware calls the best",
        risk="tasks of one thread may lose a few per cent of speed",
        doc="admin-guide/pm/amd-pstate, " + DOC + " (amd_prefcore=)",
        example="disable",
        needs=amd,
    ),
    BootParameter(
        "intel_idle.max_cstate",
        "the deepest idle state that intel_idle uses: 0 switches it off, 1 wakes within about a microsecond",
        risk="idle cores stay hot and take the others' room for turbo",
        doc="admin-guide/pm/intel_idle",
        example="1",
        needs=intel,
        runtime="the latency limits of /dev/cpu_dma_latency and cpuidle's own switches",
    ),
    BootParameter(
        "processor.max_cstate",
        "the deepest idle state of the ACPI driver",
        risk="as intel_idle.max_cstate",
        doc=f"{DOC} (processor.max_cstate=)",
        example="1",
        runtime="as intel_idle.max_cstate",
    ),
    BootParameter(
        "idle",
        "poll never halts an idle CPU: no wake-up latency at all",
        risk="full power at rest on every CPU, no turbo from idle neighbours, SMT siblings slowed down",
        doc=f"{DOC} (idle=), timers/no_hz",
        example="poll",
        needs=x86,
        runtime="the latency limits of /dev/cpu_dma_latency",
    ),
    BootParameter(
        "cpuidle.governor",
        "who chooses the idle states: menu, teo, ladder or haltpoll",
        doc="admin-guide/pm/cpuidle",
        example="teo",
        runtime="/sys/devices/system/cpu/cpuidle/current_governor",
    ),
    BootParameter(
        "cpuidle.off",
        "1 does without all of cpuidle: an idle CPU takes the processor's plainest halt and nobody chooses states",
        risk="idle cores may stay hot, without room for others' turbo; use of the states is not counted",
        example="1",
        runtime="the knobs idle.latency and idle.cpus",
    ),
    BootParameter(
        "mce",
        "ignore_ce ends polling and interrupts for memory errors that were corrected, off all of machine checks",
        risk="a memory module that fails is noticed late; off also hides errors that corrupt data",
        doc=f"{DOC} (mce=), arch/x86/x86_64/machinecheck",
        example="ignore_ce",
        covered=("mce=off",),
        adds=True,
        needs=x86,
        runtime="/sys/devices/system/machinecheck/machinecheck0/ignore_ce and check_interval",
    ),
    BootParameter(
        "cpufreq.default_governor",
        "the governor that every policy starts with: performance keeps the frequency up from the start",
        risk="heat and power while nothing is measured",
        doc="admin-guide/pm/cpufreq, " + DOC + " (cpufreq.default_governor=)",
        example="performance",
        runtime="the knob cpufreq.governor",
    ),
    BootParameter(
        "pcie_aspm.policy",
        "performance keeps PCIe links awake: a device answers without the delay of waking its link",
        risk="more power at rest",
        doc=f"{DOC} (pcie_aspm=); drivers/pci/pcie/aspm.c (policy)",
        example="performance",
        yields=("pcie_aspm=off",),
        runtime="the knob power.pcie",
    ),
    BootParameter(
        "pcie_aspm",
        "off leaves the power saving of PCIe links as the firmware has set it, on or off; force uses it where the "
        "device does not offer it",
        risk="with off the kernel wakes no link; with force a machine may stop",
        example="off",
    ),
)

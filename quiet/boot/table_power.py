"""Parameters of frequency, idling and the machine's own checks."""

from __future__ import annotations

from quiet.boot.parameter import DOC, Parameter, amd, intel, x86

TABLE: tuple[Parameter, ...] = (
    Parameter(
        "intel_pstate",
        "how Intel's frequencies are driven: passive leaves them to the generic governors, disable to acpi-cpufreq, "
        "where one frequency can be fixed",
        risk="other limits and another turbo switch; power may rise",
        doc="admin-guide/pm/intel_pstate",
        example="passive",
        needs=intel,
        runtime="/sys/devices/system/cpu/intel_pstate/status",
    ),
    Parameter(
        "amd_pstate",
        "how AMD's frequencies are driven: active, guided, passive or disable",
        risk="as intel_pstate",
        doc="admin-guide/pm/amd-pstate",
        example="passive",
        needs=amd,
        runtime="/sys/devices/system/cpu/amd_pstate/status",
    ),
    Parameter(
        "intel_idle.max_cstate",
        "the deepest idle state that intel_idle uses: 0 switches it off, 1 wakes within about a microsecond",
        risk="idle cores stay hot and take the others' room for turbo",
        doc="admin-guide/pm/intel_idle",
        example="1",
        needs=intel,
        runtime="the latency limits of /dev/cpu_dma_latency and cpuidle's own switches",
    ),
    Parameter(
        "processor.max_cstate",
        "the deepest idle state of the ACPI driver",
        risk="as intel_idle.max_cstate",
        doc=f"{DOC} (processor.max_cstate=)",
        example="1",
        runtime="as intel_idle.max_cstate",
    ),
    Parameter(
        "idle",
        "poll never halts an idle CPU: no wake-up latency at all",
        risk="full power at rest on every CPU, no turbo from idle neighbours, SMT siblings slowed down",
        doc=f"{DOC} (idle=), timers/no_hz",
        example="poll",
        needs=x86,
        runtime="the latency limits of /dev/cpu_dma_latency",
    ),
    Parameter(
        "cpuidle.governor",
        "who chooses the idle states: menu, teo, ladder or haltpoll",
        doc="admin-guide/pm/cpuidle",
        example="teo",
        runtime="/sys/devices/system/cpu/cpuidle/current_governor",
    ),
    Parameter(
        "mce",
        "ignore_ce ends polling and interrupts for memory errors that were corrected, off all of machine checks",
        risk="a memory module that fails is noticed late; off also hides errors that corrupt data",
        doc=f"{DOC} (mce=), arch/x86/x86_64/machinecheck",
        example="ignore_ce",
        needs=x86,
        runtime="/sys/devices/system/machinecheck/machinecheck0/ignore_ce and check_interval",
    ),
    Parameter(
        "mitigations",
        "off removes the work against speculation attacks from every entry into the kernel. No profile asks for it: "
        "it changes what is measured, and it opens the machine",
        risk="any program can read the memory of all others",
        doc="admin-guide/hw-vuln, " + DOC + " (mitigations=)",
        example="auto",
    ),
    Parameter(
        "split_lock_detect",
        "off neither slows down nor reports a program whose atomic access crosses a cache line",
        risk="such a program stops the memory bus of the whole machine unseen",
        doc="arch/x86/buslock",
        example="off",
        needs=x86,
    ),
    Parameter(
        "randomize_kstack_offset",
        "off ends the random stack offset of each system call, which varies its cost and its cache lines a little",
        risk="one guard against attacks on the kernel's stack less",
        example="off",
    ),
    Parameter(
        "audit",
        "0 takes the audit system out of the way of system calls",
        risk="no audit log, which a policy may demand",
        example="0",
        runtime="auditctl -e 0",
    ),
    Parameter(
        "transparent_hugepage",
        "whether memory is made of huge pages unasked",
        doc="admin-guide/mm/transhuge",
        example="madvise",
        runtime="the knobs thp and thp.khugepaged",
    ),
    Parameter(
        "hugepages",
        "sets huge pages aside while memory is still whole; hugepagesz= before it says their size",
        risk="that memory serves nothing else",
        doc="admin-guide/mm/hugetlbpage",
        example="512",
        runtime="nr_hugepages, as far as memory is not yet in pieces",
    ),
    Parameter(
        "hugepagesz",
        "the size that the following hugepages= means; 1G pages come at boot most surely",
        doc="admin-guide/mm/hugetlbpage",
        example="1G",
    ),
    Parameter(
        "numa_balancing",
        "disable ends the page faults by which the kernel learns who uses which memory",
        risk="badly placed memory stays where it is",
        example="disable",
        runtime="the knob numa_balancing",
    ),
    Parameter(
        "iommu",
        "pt leaves devices' own accesses untranslated: fewer invalidations and interrupts",
        risk="a faulty device can write anywhere; passing devices to guests still works",
        example="pt",
    ),
)

"""Redact a kernel command line: keep known parameters, and mask values other than numbers and known words."""

from __future__ import annotations

import re

from quiet.boot.parameters import registry as table
from quiet.boot.parameters.cmdline import name as parameter
from quiet.boot.parameters.cmdline import split

MASKED = "masked"
_KNOWN = re.compile(  # in addition to those in the table
    r"notsc|highres|watchdog_thresh|intel_idle|nr_cpus|possible_cpus|numa|noirqbalance|acpi_irq_nobalance"
    r"|cgroup_(no_v1|disable)|lockdown|(intel|amd)_iommu|hpet|loglevel|console|swapaccount|acpi|pci|ro|rw|quiet|splash"
    r"|panic|reboot|systemd\.unified_cgroup_hierarchy"
    r"|(rcutree|rcupdate|workqueue|processor|cpuidle|cpufreq|intel_idle|pcie_aspm|kvm|kvm_intel|kvm_amd)\.[a-z_0-9]+"
)
_SHOWN_WITHOUT_VALUE = ("root", "resume", "initrd", "BOOT_IMAGE", "rootfstype", "rootflags", "init")
_PARTS = re.compile(r"[,:;.+/-]")
_NUMBER = re.compile(
    r"[0-9]*[kKmMgGtT]?[BWNn]?|0x[0-9a-fA-F]{1,16}|[0-9]+[noe][78]|(tty|ttyS|ttyAMA|ttyUSB|hvc|xvc)[0-9]{0,2}|[yYN]"
)
_WORDS = re.compile(
    r"managed_irq|domain|nohz|on|off|auto|force|nosmt|poll|halt|nomwait|passive|active|guided|disable|disabled"
    r"|enable|enabled|unstable|reliable|nowatchdog|noirqtime|recalibrate|watchdog|tsc|hpet|acpi_pm|jiffies|kvm"
    r"|clock|arch_sys|counter|pit|refined|always|madvise|never|full|voluntary|none|lazy|performance|powersave"
    r"|powersupersave|default|panic|nopanic|all|smt|cpu|numa|cache|system|unbound|memory|cpuset|cpuacct|io|pids"
    r"|hugetlb|misc|perf_event|freezer|net_cls|net_prio|devices|blkio|rdma|no_cmci|dont_log_ce|ignore_ce"
    r"|nobootlog|bootlog|no_lmce|recovery|print_all|soft|hard|pt|nopt|strict|usedac|nodac|merge|nomerge"
    r"|fullflush|igfx_off|sm_on|sm_off|fullmode|integrity|confidentiality|warn|fatal|ratelimit|no_hwp|hwp_only"
    r"|support_acpi_ppc|per_cpu_perf_limits|no_cas|uart|uart8250|mmio|mmio32|native|fake|noncurrent|possible"
    r"|warm|cold|bios|acpi|kbd|triple|efi|pci|noirq|routeirq|nomsi|noaer|noacpi|nocrs|verbose|replacement"
    r"|retain|nosid|mitigations|isolated|schedutil|ondemand|conservative|userspace|menu|teo|ladder|haltpoll"
)


def parameters(line: str) -> str:
    """Keep the known parameters of a kernel command line, and omit the others. Values that are not plain are masked.

    The values of root= and similar parameters are always masked.
    """
    kept = []
    for word in split(line):
        if word == "--":
            break  # the rest is for init
        name, equals, value = word.partition("=")
        if name in _SHOWN_WITHOUT_VALUE:
            kept.append(f"{name}={MASKED}")
        elif _KNOWN.fullmatch(name.replace("-", "_")) or table.known(name):
            kept.append(word if _is_plain(value) else f"{name}{equals}{MASKED}")
        elif word.startswith('"') and _KNOWN.fullmatch(parameter(word)) and _is_plain(word[1:-1].partition("=")[2]):
            kept.append(word)  # quotes around a whole word
    return " ".join(kept)


def _is_plain(value: str) -> bool:
    """Whether a value consists of numbers and short words, like the values of known parameters."""
    return all(
        _WORDS.fullmatch(part) or _NUMBER.fullmatch(part)
        for part in _PARTS.split(value.removeprefix('"').removesuffix('"'))
    )

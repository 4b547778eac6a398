"""What a recording does not tell: names, addresses and identifiers, made into others of the same form.

The same thing gets the same mask everywhere in one recording, so that what belongs together still does. What a rule
reads (CPUs, kernel threads, the daemons that quiet knows, the parameters that it sets) stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from quiet.facts import PF_KTHREAD
from quiet.targets import stat_fields

LEFT_OUT = (
    "names of tasks other than kernel threads and well-known daemons, and everything else of a task but its CPUs",
    "host names, network addresses (MAC and IP), UUIDs, serial numbers and other identifiers",
    "kernel parameters that quiet does not know, and the values of root= and its like",
    "mounts other than the kernel's own file systems",
)
_MASKED = "masked"
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_MAC = re.compile(r"(?<![0-9a-fA-F:])[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?![0-9a-fA-F:])")
_MAC_NAME = re.compile(r"\benx[0-9a-f]{12}\b")  # interfaces named by systemd after their address
_IP4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_LONG_HEX = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{32,}(?![0-9a-fA-F])")  # machine ids, containers
_BUILDER = re.compile(r"\([^()\s]+@[^()\s]+\)")  # who built the kernel, /proc/version
_SERIAL = re.compile(r"^(Serial\s*:|.*identification =) *\w+", re.MULTILINE)  # /proc/cpuinfo on Arm and s390
_IDS = ("serial", "uuid", "wwid", "asset_tag", "phys_port_id", "phys_switch_id", "machine-id", "hostname", "domainname")
_UNIT_SECRETS = re.compile(r"(?m)^(Environment|SetCredential|LoadCredential|Exec)\w*=.*\n?")
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_PARAMETERS = re.compile(r"(?im)^(\s*(?:GRUB_CMDLINE\w*=|options\s|append\s|parameters\s*=|linux\s+\S+\s))(.*)$")
_KNOWN = re.compile(
    r"isolcpus|nohz(_full)?|rcu_nocbs|rcu_nocb_poll|irqaffinity|kthread_cpus|skew_tick|tsc|clocksource|nosoftlockup"
    r"|nowatchdog|nmi_watchdog|watchdog_thresh|(intel|amd)_pstate|intel_idle|idle|mitigations|nosmt|maxcpus|nr_cpus"
    r"|possible_cpus|transparent_hugepage|(default_)?hugepages(z)?|numa|numa_balancing|mce|threadirqs|preempt"
    r"|noirqbalance|acpi_irq_nobalance|cgroup_no_v1|cgroup_disable|psi|split_lock_detect|randomize_kstack_offset"
    r"|lockdown|(intel_|amd_)?iommu|hpet|pcie_aspm|loglevel|console|audit|swapaccount|acpi|pci|ro|rw|quiet|splash|panic"
    r"|reboot|nokaslr|systemd\.(unified_cgroup_hierarchy|cpu_affinity)"
    r"|(rcutree|rcupdate|workqueue|processor|cpuidle|cpufreq|intel_idle|kvm|kvm_intel|kvm_amd)\..+"
)
_SHOWN_WITHOUT_VALUE = ("root", "resume", "initrd", "BOOT_IMAGE", "rootfstype", "rootflags", "init")
_KERNELS_OWN = re.compile("cgroup2?|proc|sysfs|devtmpfs|tracefs|debugfs|securityfs|resctrl|hugetlbfs|configfs")
_DAEMONS = re.compile(
    r"(systemd|init|irqbalance|tuned|tlp|auto-cpufreq|power-profiles|thermald|cpupower|dbus-|cron|atd|sshd|snapd|fwupd"
    r"|unattended|packagekit|rtkit|numad|ksmtuned|stalld|udevd|rcu)"
)
_STATUS = ("Name", "State", "Tgid", "Pid", "PPid", "CapEff", "CapBnd", "Seccomp", "Cpus_allowed", "Cpus_allowed_list")


class Mask:
    """One recording's masks; `files` are its files as read, by path."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.known: dict[tuple[str, str], int] = {}

    def path(self, path: str) -> str:
        """A path without the addresses that interfaces are named after, and the ids of containers."""
        return self._ids(path)

    def text(self, path: str, text: str) -> str:
        """A file's content as it may be told."""
        parts = path.split("/")
        if parts[1] == "proc" and (parts[2].isdecimal() or parts[2] in ("self", "thread-self")):
            return self._of_task(path, parts[-1], text)
        name = parts[-1]
        if "/systemd/" in path:
            text = _UNIT_SECRETS.sub("", text)
        if path == "/proc/cmdline" or name in ("cmdline", "cmdline.txt"):
            text = parameters(text)
        elif path.startswith(("/etc/", "/boot/", "/efi/")):
            text = _PARAMETERS.sub(lambda found: found[1] + _quoted(found[2]), text)
        elif path == "/proc/mounts":
            text = _mounts(text)
        elif path == "/proc/stat":
            text = "\n".join(line for line in text.splitlines() if line.startswith("cpu"))
        elif name in _IDS or name.endswith(("_serial", "_uuid")):
            return _MASKED
        return self._ids(_SERIAL.sub(rf"\1 {_MASKED}", _BUILDER.sub(f"({_MASKED})", text)))

    def _ids(self, text: str) -> str:
        text = _UUID.sub(lambda m: f"00000000-0000-4000-8000-{self._number('uuid', m[0]):012x}", text)
        text = _MAC.sub(lambda m: m[0] if _even(m[0]) else self._address(m[0]), text)
        text = _MAC_NAME.sub(lambda m: f"enx0200{self._number('mac', m[0][3:]):08x}", text)
        text = _IP4.sub(lambda m: m[0] if m[0] in ("0.0.0.0", "127.0.0.1") else self._ip(m[0]), text)  # noqa: S104
        return _LONG_HEX.sub(lambda m: f"{self._number('id', m[0]):0{len(m[0])}x}", text)

    def _number(self, kind: str, secret: str) -> int:
        return self.known.setdefault((kind, secret.lower()), len(self.known) + 1)

    def _address(self, mac: str) -> str:
        digits = f"0200{self._number('mac', mac.replace(':', '')):08x}"
        return ":".join(digits[i : i + 2] for i in range(0, 12, 2))

    def _ip(self, address: str) -> str:
        number = self._number("ip", address)
        return f"198.{18 + number // 65536 % 2}.{number // 256 % 256}.{number % 256}"  # for benchmarks, RFC 2544

    def _of_task(self, path: str, name: str, text: str) -> str:
        if name == "stat":
            return self._stat(path, text)
        if name == "status":
            lines = (line for line in text.splitlines() if line.partition(":")[0] in _STATUS)
            return "\n".join(
                f"Name:\t{self._comm(path, line[5:].strip())}" if line[:5] == "Name:" else line for line in lines
            )
        if name == "comm":
            return self._comm(path, text)
        if name in ("cmdline", "environ", "exe"):
            return _MASKED
        return _mounts(text) if name in ("mounts", "mountinfo") else self._ids(text)

    def _stat(self, path: str, text: str) -> str:
        fields = stat_fields(text)
        if len(fields) < 7:
            return _MASKED
        comm = self._comm(path, text.partition("(")[2].rpartition(")")[0])
        state = "T" if fields[0] == "T" else "S"
        # the parent and the flags, proc_pid_stat(5); all the rest is the task's own business
        kept = [state, fields[1], "0", "0", "0", "-1", fields[6], *["0"] * 13]
        return f"{text.partition(' ')[0]} ({comm}) {' '.join(kept)}"

    def _comm(self, path: str, comm: str) -> str:
        fields = stat_fields(self.files.get(path.rpartition("/")[0] + "/stat"))
        kernel = len(fields) > 6 and fields[6].isdecimal() and int(fields[6]) & PF_KTHREAD
        return comm if kernel or _DAEMONS.match(comm) else "task"


def parameters(line: str) -> str:
    """The parameters of a kernel command line that quiet knows; of others at most that they are there."""
    kept = []
    for word in _WORD.findall(line):
        if word == "--":
            break  # what follows goes to init
        name = word.strip('"').partition("=")[0]
        if _KNOWN.fullmatch(name.replace("-", "_")):
            kept.append(word)
        elif name in _SHOWN_WITHOUT_VALUE:
            kept.append(f"{name}={_MASKED}")
    return " ".join(kept)


def _quoted(line: str) -> str:
    quote = line[:1] if line[:1] in ("'", '"') else ""
    inner, end, rest = (line[1:].partition(quote)) if quote else (line, "", "")
    return f"{quote}{parameters(inner)}{end}{rest}"


def _mounts(text: str) -> str:
    """The kernel's own file systems, and the type of the root's: what a container is known by."""
    kept = []
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) > 3 and _KERNELS_OWN.fullmatch(fields[2]):
            kept.append(line)
        elif len(fields) > 3 and fields[1] == "/":
            kept.append(f"{_MASKED} / {fields[2]} {fields[3].partition(',')[0]} 0 0")
    return "\n".join(kept)


def _even(mac: str) -> bool:
    return set(mac) <= set("0:") or set(mac.lower()) <= set("f:")

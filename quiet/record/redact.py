"""Redact names, addresses and identifiers in a recording: replace them, if possible with others of the same form.

In one recording, a name gets the same replacement everywhere, so that related files still match. Data that a rule reads
(CPUs, kernel threads, the daemons that quiet knows, the parameters that it sets) is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from quiet.host.proc import stat_fields
from quiet.host.reader import ANSWERS
from quiet.knobs import rivals, services
from quiet.machine.facts import PF_KTHREAD
from quiet.record.redact_command_line import MASKED, parameters
from quiet.record.redact_files import known_options, redacted
from quiet.record.redact_names import Names

LEFT_OUT = (
    "names of tasks other than kernel threads and well-known daemons, and task data that quiet does not read",
    "host names, network addresses (MAC and IP), UUIDs, serial numbers and other identifiers",
    "kernel parameters that quiet does not know, and the values of root= and similar parameters",
    "boot loaders' files and units, except a rewritten form of the lines that quiet reads; files that quiet has stored",
    "names that users chose: interfaces, cgroups, services, boot menu entries, and swap files",
    "mounts other than the kernel's own file systems (the type of the root file system is kept)",
)
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_LOADERS_OWN = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"  # GUID of the boot loader interface, identical on all hosts
_MAC = re.compile(r"(?<![0-9a-fA-F:])[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?![0-9a-fA-F:])")
_MAC_NAME = re.compile(r"\benx[0-9a-f]{12}\b")  # interfaces that systemd names after their address
_IP4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_IP6 = re.compile(
    r"(?<![\w:.])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}|(?:[0-9a-fA-F]{1,4}:){1,7}:)(?![\w:])"
)
_LONG_HEX = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{32,}(?![0-9a-fA-F])")  # machine ids, containers
_BUILDERS = re.compile(r"\((?:[^()]|\([^()]*\))*\)")  # in /proc/version: the builder, its host, and the compiler
_SERIAL = re.compile(r"^(Serial\s*:|.*identification =) *\w+", re.MULTILINE)  # /proc/cpuinfo on Arm and s390
_IDS = ("serial", "uuid", "wwid", "asset_tag", "phys_port_id", "phys_switch_id", "machine-id", "hostname", "domainname")
_KERNELS_OWN = re.compile("cgroup2?|proc|sysfs|devtmpfs|tracefs|debugfs|securityfs|resctrl|hugetlbfs|configfs")
_KERNELS_PLACES = re.compile(r"/(sys|proc|dev|cgroup)(/.*)?")
_DAEMONS = re.compile(
    r"systemd(-(journal|journald|udevd|logind|network|networkd|resolve|resolved|timesyn|oomd|userdbd|machine|homed))?"
    r"|init|\(sd-pam\)|\(udev-worker\)|udevd|tlp|power-profiles-?|cpupower|dbus-(daemon|broker|broker-lau)|sshd|snapd"
    r"|fwupd|unattended-upgr|packagekitd|rtkit-daemon|stalld|rcu"
)
_HELD = frozenset(
    name
    for service in (*services.QUIET, *services.ALL, *rivals.HELD, *rivals.STOPPED)
    for name in (*service.held.split(), "irqbalance", "thermald")
)
_STATUS = ("Name", "State", "Tgid", "Pid", "PPid", "CapEff", "CapBnd", "Seccomp", "Cpus_allowed", "Cpus_allowed_list")


_OPTION = re.compile(  # an option of a mount; a hierarchy may have a name and a release agent
    r"r[ow]|nosuid|nodev|noexec|(rel|no|strict)atime|nsdelegate|memory_\w+|xattr|noprefix|cpuset_v2_mode|clone_children"
    r"|cpu|cpuacct|cpuset|memory|io|blkio|pids|devices|freezer|net_cls|net_prio|perf_event|hugetlb|rdma|misc|name=systemd"
    r"|cdp(l2)?|mba_MBps|(mode|size|nr_inodes|pagesize)=\d+[kKmMgG]?"
)
# files in /proc whose content is kept, besides those that Redaction.text() names; of the rest, only the names are kept
_PROC = re.compile(
    r"/proc/(cgroups|config\.gz|cpuinfo|filesystems|interrupts|meminfo|irq/.*|sys/.*|xen/capabilities"
    r"|device-tree/.*|net/connector|schedstat|softirqs|uptime|loadavg|consoles|modules|version)"
)
_PLACES = ("/sys/", "/proc/", "/etc/", "/boot/", "/efi/", "/usr/", "/lib/", "/run/", "/sbin/", "/bin/", "/dev/")
_OURS = ("/run/quiet/", "/var/lib/quiet/", "/etc/quiet/")
_OF_CONTAINERS = ("/.dockerenv", "/var/run/secrets/kubernetes.io")


class Redaction:
    """The replacements in one recording. `files`: the files as read, by path; `folders`: the other paths."""

    def __init__(self, files: Mapping[str, str], folders: Iterable[str] = ()) -> None:
        self.files = files
        self.known: dict[tuple[str, str], int] = {}
        self._options = known_options()
        self._names = Names((*files, *folders), files.get("/proc/sys/kernel/osrelease", ""), self._number)

    def keeps(self, path: str) -> bool:
        """Whether the recording keeps a file or directory."""
        whole = f"{path}/"
        return path in _OF_CONTAINERS or (whole.startswith(_PLACES) and not whole.startswith(_OURS))

    def path(self, path: str) -> str:
        """The path with the names that users chose, addresses and identifiers (such as container IDs) replaced."""
        return self._ids(self._names.path(path))

    def text(self, path: str, text: str) -> str:
        """The redacted content of a file."""
        parts = path.split("/")
        if parts[1] == "proc" and (parts[2].isdecimal() or parts[2] in ("self", "thread-self")):
            return self._of_task(path, parts[-1], text)
        name = parts[-1]
        if path.startswith(f"{ANSWERS}/"):
            return text if re.fullmatch(r"[\d\s:,-]*|[\w ,-]{0,80}", text) else MASKED
        if parts[1] not in ("sys", "proc") or name == "config.gz":
            if name in _IDS:
                return MASKED
            return self._ids(redacted(path, text, self._names.unit, self._options))
        whole = {"/proc/cmdline": parameters, "/proc/mounts": self._mounts, "/proc/swaps": self._swaps}.get(path)
        if whole:
            return whole(text)
        if path == "/proc/stat":
            return "\n".join(line for line in text.splitlines() if line.startswith("cpu"))
        if name in _IDS or name.endswith(("_serial", "_uuid")):
            return MASKED
        if "/efivars/" in path:  # the name of the boot loader that started the system
            return next((word for word in ("systemd-boot", "GRUB") if word in text.replace("\0", "")), MASKED)
        if parts[1] == "proc" and not _PROC.fullmatch(path):
            return ""
        if path.startswith("/proc/sys/") and not (name == "osrelease" or re.fullmatch(r"[\d\s,a-fx-]*", text)):
            return MASKED  # the sysctls that quiet reads are numbers, CPUs and masks; other sysctls may name programs
        if path == "/proc/version":
            text = _BUILDERS.sub(f"({MASKED})", text)
        if path == "/proc/interrupts" or name in ("actions", "uevent"):
            text = self._names.text(text)
        return self._ids(_SERIAL.sub(rf"\1 {MASKED}", text))

    def _mounts(self, text: str) -> str:
        """The mounts of the kernel's own file systems, and the type of the root file system, which may show
        that this is a container.
        """
        kept = []
        for line in text.splitlines():
            fields = line.split(" ")
            if len(fields) < 4:
                continue
            _, place, kind, options = fields[:4]
            if _KERNELS_OWN.fullmatch(kind) and _KERNELS_PLACES.fullmatch(place):
                plain = ",".join(word for word in options.split(",") if _OPTION.fullmatch(word))
                kept.append(f"{kind} {self._ids(self._names.path(place))} {kind} {plain} 0 0")
            elif place == "/":
                kind = kind if re.fullmatch(r"[a-z]{1,10}[0-9]?", kind) else MASKED
                kept.append(f"{MASKED} / {kind} {'ro' if options.partition(',')[0] == 'ro' else 'rw'} 0 0")
        return "\n".join(kept)

    def _swaps(self, text: str) -> str:
        head, *lines = text.splitlines() or [""]
        kept = [head]
        for line in lines:
            place, _, rest = line.partition(" ") if "\t" not in line.split(" ")[0] else line.partition("\t")
            if not re.fullmatch(r"/dev/(dm-|zram|md|vd|sd|xvd|hd|mmcblk|nvme)[\da-z]*", place):
                place = f"/{MASKED}/swap{self._number('swap', place)}"
            kept.append(f"{place} {rest}")
        return "\n".join(kept)

    def _ids(self, text: str) -> str:
        text = _UUID.sub(
            lambda m: m[0] if m[0] == _LOADERS_OWN else f"00000000-0000-4000-8000-{self._number('uuid', m[0]):012x}",
            text,
        )
        text = _MAC.sub(lambda m: m[0] if _even(m[0]) else self._address(m[0]), text)
        text = _MAC_NAME.sub(lambda m: f"enx0200{self._number('mac', m[0][3:]):08x}", text)
        text = _IP4.sub(lambda m: m[0] if m[0] in ("0.0.0.0", "127.0.0.1") else self._ip(m[0]), text)  # noqa: S104
        text = _IP6.sub(lambda m: f"2001:2::{self._number('ip', m[0]):x}", text)  # for benchmarks, RFC 5180
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
        if name in ("mounts", "mountinfo"):
            return self._mounts(text)
        if name in ("cgroup", "cpuset"):
            return self._ids("\n".join(self._names.group(line) for line in text.splitlines()))
        return text if name in ("uid_map", "gid_map", "timerslack_ns") else MASKED

    def _stat(self, path: str, text: str) -> str:
        fields = stat_fields(text)
        if len(fields) < 7:
            return MASKED
        comm = self._comm(path, text.partition("(")[2].rpartition(")")[0])
        state = "T" if fields[0] == "T" else "S"
        # keep the parent, the flags (proc_pid_stat(5)), and whether the task is stopped; the rest is private
        kept = [state, fields[1], "0", "0", "0", "-1", fields[6], *["0"] * 13]
        return f"{text.partition(' ')[0]} ({comm}) {' '.join(kept)}"

    def _comm(self, path: str, comm: str) -> str:
        fields = stat_fields(self.files.get(path.rpartition("/")[0] + "/stat"))
        kernel = len(fields) > 6 and fields[6].isdecimal() and int(fields[6]) & PF_KTHREAD
        if kernel:
            return self._ids(self._names.text(comm))
        return comm if comm in _HELD or _DAEMONS.fullmatch(comm) else "task"


def _even(mac: str) -> bool:
    return set(mac) <= set("0:") or set(mac.lower()) <= set("f:")

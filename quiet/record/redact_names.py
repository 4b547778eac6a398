"""Redact names that users chose for interfaces, cgroups, units and boot menu entries, in paths and texts.

Known names from the kernel, systemd and distributions are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from quiet.knobs import rivals, services
from quiet.record.redact_command_line import MASKED

_INTERFACE = re.compile(
    r"lo|bonding_masters|(eth|wlan|wwan|usb|ib|tun|tap|ifb|dummy|bond|team|br|veth|virbr|docker|lxcbr|lxdbr|tunl|gre"
    r"|gretap|erspan|ip6tnl|ip6gre|sit|ip_vti|ip6_vti|can|vcan|end)\d{0,3}|(en|wl|ww|ib)(o|p|s|f|n|d|P|i|a|v)[\dopsfndPiavuc]+(np\d+)?"
    r"|enx[0-9a-f]{12}"
)
_GROUPS = re.compile(r"/(sys/fs/cgroup|dev/cpuset|dev/cgroup)/")
_GROUP = re.compile(
    r"(cgroup|cpuset|cpu|cpuacct|memory|io|pids|misc|hugetlb|rdma|irq|dmem|blkio|devices|freezer|perf_event)"
    r"\.[a-zA-Z0-9_.]+|tasks|notify_on_release|release_agent|quiet|quiet-housekeeping|unified|systemd|net_cls|net_prio|cpu,cpuacct"
    r"|net_cls,net_prio|cpuset|cpu|cpuacct|memory|pids|misc|hugetlb|rdma|blkio|devices|freezer|perf_event"
    r"|docker|libpod|kubepods|lxc|init\.scope|(-|system|user|machine|init)\.slice"
)
_STANDARD = re.compile(
    r"(multi-user|default|basic|sysinit|timers|sockets|paths|slices|graphical|network|network-online|network-pre"
    r"|local-fs|remote-fs|rescue|emergency|shutdown|reboot|getty|cloud-init|sleep|suspend)\.target"
    r"|(system|systemd|generator|transient)(\.\w+)?|generator(\.early|\.late)?|quiet-after\.target|dbus\.(service|socket)"
)
_TAIL = re.compile(
    r"\.(service|timer|socket|path|target|slice|scope|mount|swap|device|conf)(\.(wants|requires|upholds|d))?$"
)
_UNITS = frozenset(
    name
    for service in (*services.QUIET, *services.ALL, *rivals.HELD, *rivals.STOPPED)
    for name in (*service.units.split(), *service.jobs.split())
) | {*rivals.ONCE, "irqbalance.service", "thermald.service"}
_LISTED = (  # paths with a name that an administrator chose, the kind of name, and the suffix that is kept
    (re.compile(r"(/.*/loader/entries)/([^/]+)\.conf()"), "entry", ".conf"),
    (re.compile(r"(/etc/default/grub\.d)/([^/]+)\.cfg()"), "snippet", ".cfg"),
    (re.compile(r"((?:/etc|/usr/share)/u-boot-menu/conf\.d)/([^/]+)()"), "snippet", ".conf"),
    (re.compile(r"(/.*/EFI/Linux)/([^/]+)\.efi()"), "image", ".efi"),
    (re.compile(r"(/boot/efi/EFI)/([^/]+)(/.*)?"), "vendor", ""),
    (re.compile(r"((?:/usr)?/lib/modules)/([^/]+)(/.*)?"), "kernel", ""),
    (re.compile(r"(/sys/fs/resctrl)/([^/]+)(/.*)?"), "group", ""),
)
_STAYS = re.compile(
    r"BOOT|Boot|Linux|systemd|debian|ubuntu|fedora|redhat|centos|rocky|almalinux|opensuse|sles|arch|Microsoft|grub"
    r"|info|mon_data|mon_groups|mon_L3_\d+|schemata|cpus|cpus_list|tasks|mode|size|bit_usage|last_cmd_status|quiet"
    r"|zz-quiet|arch|arch-lts|arch-linux|arch-linux-lts"
)


class Names:
    """Redacts the names in one recording.

    `paths`: the recorded paths, which contain the names of interfaces; `release`: the kernel's release, which is kept;
    `number`: maps (kind, name) to a number, the same for the same name everywhere.
    """

    def __init__(self, paths: Iterable[str], release: str, number: Callable[[str, str], int]) -> None:
        self._number = number
        self._release = release
        matches = (re.match(r"/sys/class/net/([^/]+)", path) for path in paths)
        own = sorted({match[1] for match in matches if match and not _INTERFACE.fullmatch(match[1])})
        self._interfaces = {name: f"if{number('interface', name)}" for name in own}
        either = "|".join(re.escape(name) for name in sorted(own, key=len, reverse=True))
        self._pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])") if own else None

    def text(self, text: str) -> str:
        """A text of the kernel with the names of interfaces redacted."""
        return self._pattern.sub(lambda match: self._interfaces[match[0]], text) if self._pattern else text

    def path(self, path: str) -> str:
        """The redacted path."""
        if match := _GROUPS.match(path):
            return match[0] + "/".join(map(self._segment, path[match.end() :].split("/")))
        if path.startswith("/sys/fs/resctrl/") or not path.startswith(("/sys/", "/proc/")):
            for pattern, kind, end in _LISTED:
                if match := pattern.fullmatch(path):
                    return f"{match[1]}/{self._name(kind, match[2])}{end}{self._rest(match[3] or '')}"
            if "/systemd/" in path:
                head, _, tail = path.partition("/systemd/")
                return f"{head}/systemd/" + "/".join(map(self.unit, tail.split("/")))
        parts = path.split("/")
        # an interface called "cpu" is renamed only where names of interfaces occur
        own = (before == "net" or not re.fullmatch("[a-z]+", part) for before, part in pairwise(["", *parts]))
        return "/".join(
            self._interfaces.get(part, part) if here else part for here, part in zip(own, parts, strict=True)
        )

    def unit(self, name: str) -> str:
        """The redacted name of a unit, or of a directory of units."""
        tail = _TAIL.search(name)
        stem = name.removesuffix(f".{tail[3]}") if tail and tail[3] else name
        if stem in _UNITS or _STANDARD.fullmatch(stem) or _GROUP.fullmatch(stem):
            return name
        return f"{MASKED}-{self._number('unit', stem)}{tail[0] if tail else ''}"

    def group(self, line: str) -> str:
        """The redacted line of /proc/PID/cgroup, or path in /proc/PID/cpuset."""
        head, slash, path = line.partition("/")
        controllers = re.fullmatch(r"\d*:[a-z_,]*(name=systemd)?:", head)
        return (head if controllers else "") + slash + "/".join(map(self._segment, path.split("/")))

    def _segment(self, part: str) -> str:
        return part if not part or _GROUP.fullmatch(part) else self.unit(part)

    def _rest(self, path: str) -> str:
        """The redacted path below a directory that a user has named.

        Only files that quiet reads keep their names.
        """
        return "/".join(part if _READ_BELOW.fullmatch(part) else MASKED for part in path.split("/"))

    def _name(self, kind: str, name: str) -> str:
        if _STAYS.fullmatch(name) or (self._release and name == self._release):
            return name
        if kind in ("entry", "image"):
            purpose = re.search("rescue|recovery|fallback", name)
            release = f"-{self._release}" if self._release and self._release in name else ""
            return f"{MASKED}{self._number(kind, name):04}{'-' + purpose[0] if purpose else ''}{release}"
        return f"{MASKED}{self._number(kind, name):04}"


_READ_BELOW = re.compile(
    r"|vmlinuz|Image|initrd|initramfs\.img|pkgbase|config|grub\.cfg|schemata|cpus_list|mode|MB|L[23](CODE|DATA|_MON)?"
    r"|cbm_mask|min_cbm_bits|shareable_bits|sparse_masks|last_cmd_status"
)

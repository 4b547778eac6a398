"""Access `net:eth0/...`: network interfaces of this process's namespace.

    net:eth0/queues/rx-0/rps_cpus   a file below /sys/class/net/eth0
    net:eth0/channels    the number of channels of each kind: "combined 4", "rx 2 tx 2"
    net:eth0/rss         the receive queue for each hash value of a flow: table size, one period, "128: 0 1 2 3"
    net:eth0/adaptive    whether the driver adapts the interrupt rate to the load: "rx 1 tx 0"
    net:eth0/rules       each rule's number and the queue to which it directs flows: "1023 3"; only read
    net:eth0/interrupts  the device's interrupts; only read

The last five are not files on a live host; a recorded tree contains them as files. Sources: networking/scaling.rst,
networking/ethtool-netlink.rst, ABI/testing/sysfs-class-net-queues.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets import ethtool
from quiet.targets.target_type import TargetType

CLASS = "/sys/class/net"


def folder(interface: str) -> str:
    """The directory of an interface in sysfs."""
    return f"{CLASS}/{interface}"


def counts(text: str) -> dict[str, int]:
    """Parse counts: "rx 2 tx 2" gives {"rx": 2, "tx": 2}."""
    words = text.split()
    return {name: int(count) for name, count in zip(words[::2], words[1::2], strict=True)}


def spell(numbers: dict[str, int]) -> str:
    """Format counts; the inverse of counts()."""
    return " ".join(f"{name} {count}" for name, count in numbers.items())


def queues(text: str) -> list[int]:
    """Parse a table of queues such as "128: 0 1 2 3": the queue for each hash value."""
    size, _, once = text.partition(":")
    around = [int(queue) for queue in once.split()]
    return [around[at % len(around)] for at in range(int(size))]


def spell_queues(table: Sequence[int]) -> str:
    """Format a table of queues as "SIZE: QUEUES", with one period of the repeating queues."""
    size = len(table)
    once = next((n for n in range(1, size + 1) if all(table[at] == table[at - n] for at in range(n, size))), 0)
    return f"{size}: {' '.join(str(queue) for queue in table[:once])}" if size else ""


def _ask(reader: Reader, interface: str, what: str) -> str | None:
    base = folder(interface)
    try:
        match what:
            case "channels":
                return spell(ethtool.channels(interface)) or None
            case "adaptive":
                return spell(ethtool.adaptive(interface))
            case "rules":
                return spell(ethtool.rules(interface))
            case "rss":
                return spell_queues(ethtool.table(interface)) or None
    except OSError:
        return None
    # the interrupts of the device, or of the device below a virtio device
    found = reader.numbered(f"{base}/device/msi_irqs") or reader.numbered(f"{base}/device/../msi_irqs")
    return " ".join(str(number) for number in found)


_ASKED = ("channels", "rss", "adaptive", "rules", "interrupts")


def _get(reader: Reader, name: str) -> str | None:
    interface, _, what = name.partition("/")
    if what not in _ASKED:
        return reader.text(f"{folder(interface)}/{what}")
    if not reader.exists(f"{folder(interface)}/ifindex"):
        return None
    return reader.asked(f"net/{interface}/{what}", lambda: _ask(reader, interface, what))


def _put(host: Host, name: str, value: str) -> None:
    interface, _, what = name.partition("/")
    if what in ("rules", "interrupts"):
        raise OSError(errno.EINVAL, f"net:{name} cannot be written")
    if what not in _ASKED:
        host.write(f"{folder(interface)}/{what}", value)
    elif not host.live:
        host.answer(f"net/{interface}/{what}", value)
    elif what == "rss":
        _put_table(interface, queues(value))
    else:
        put = ethtool.set_channels if what == "channels" else ethtool.set_adaptive
        put(interface, counts(value))


def _put_table(interface: str, wanted: list[int]) -> None:
    # Request the driver's default table explicitly: a custom table prevents a lower number of channels.
    if wanted == [at % (max(wanted) + 1) for at in range(len(wanted))]:
        ethtool.set_table(interface, ())
        if ethtool.table(interface) == wanted:
            return
    ethtool.set_table(interface, wanted)


def _watched_files(reader: Reader, name: str) -> tuple[str]:
    return (f"{CLASS}/{name}",)  # if the target is a file: changes by netlink are not reported


def _identity(reader: Reader, name: str) -> str | None:
    # unique while the machine runs, unlike names, which are reused
    return reader.text(f"{folder(name.partition('/')[0])}/ifindex")


def _current_name(reader: Reader, name: str, identity: str) -> str:
    if _identity(reader, name) == identity:
        return name
    renamed = (new for new in reader.names(CLASS) if _identity(reader, new) == identity)
    interface, _, what = name.partition("/")
    return f"{next(renamed, interface)}/{what}"


NET = TargetType(
    "net", _get, _put, watched_files=_watched_files, identity=_identity, current_name=_current_name, ends=True
)

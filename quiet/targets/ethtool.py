"""Access the queues and interrupt rates of a network device: read with ioctl SIOCETHTOOL, which needs no root; write
with ethtool's netlink, except for the table that maps flows to queues, which is written with ioctl.

Layouts and numbers: include/uapi/linux/ethtool.h. Reading uses ioctl because every kernel supports it, and because
loading pyroute2 takes ten times as long as all of `plan`. Before Linux 6.17, only ioctl can write the table. A function
raises OSError if the device, its driver or the kernel does not support or permit the request.

With netlink (networking/ethtool-netlink.rst), the kernel returns an error text if it rejects a request. Only this
module loads pyroute2, at the first write, because loading takes 0.3 s.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

_SIOCETHTOOL = 0x8946
_GET_COALESCE, _GET_CHANNELS, _GET_RSS, _SET_RSS = 0x0E, 0x3C, 0x46, 0x47
_RULE_COUNT, _RULE, _ALL_RULES = 0x2E, 0x2F, 0x30
_IFREQ = struct.Struct("16sP16x")
_CHANNELS = struct.Struct("9I")  # command, four maxima, counts of rx, tx, other, combined
_COALESCE = struct.Struct("23I")  # elements 11 and 12: whether rx and tx adapt
_RSS = struct.Struct("4I2B6x")  # command, context, entries, bytes of the key, function, symmetry
_RULES = struct.Struct("=2IQ168sI")  # command, type, data, a rule, count; then the numbers of the rules
_COOKIE = struct.Struct("=Q")
_COOKIE_AT = 152  # offset of a rule's destination
_PLACE_AT = 160  # offset of a rule's number
_DISCARD = (1 << 64) - 1
_CHANNELS_SET, _COALESCE_SET = 18, 20  # include/uapi/linux/ethtool_netlink.h
_COUNTS = {"rx": 6, "tx": 7, "combined": 9}  # attributes ETHTOOL_A_CHANNELS_*_COUNT
_ADAPTIVE = {"rx": 11, "tx": 12}  # attributes ETHTOOL_A_COALESCE_USE_ADAPTIVE_*
Counts = dict[str, int]


def channels(interface: str) -> Counts:
    """The current number of channels of each kind that the device supports: {"combined": 4}. Raises OSError."""
    fields = _CHANNELS.unpack(_ask(interface, _CHANNELS.pack(_GET_CHANNELS, *[0] * 8)))
    names = ("rx", "tx", "other", "combined")
    both = zip(names, fields[1:5], fields[5:9], strict=True)
    return {name: count for name, most, count in both if most and name != "other"}


def adaptive(interface: str) -> Counts:
    """Whether the driver adapts the interrupt rate to the load: {"rx": 1, "tx": 0}. Raises OSError."""
    fields = _COALESCE.unpack(_ask(interface, _COALESCE.pack(_GET_COALESCE, *[0] * 22)))
    return {"rx": int(bool(fields[10])), "tx": int(bool(fields[11]))}


def table(interface: str) -> list[int]:
    """The receive queue for each hash value of a flow. Raises OSError."""
    size = _rss(interface)[2]
    # without space for the key, the kernel omits the key
    answer = _ask(interface, _RSS.pack(_GET_RSS, 0, size, 0, 0, 0) + bytes(4 * size))
    return list(struct.unpack_from(f"{size}I", answer, _RSS.size))


def set_table(interface: str, queues: Sequence[int]) -> None:
    """Assign a queue to each hash value; an empty list restores the driver's default table. Raises OSError."""
    symmetry = _rss(interface)[5]  # 0 would disable symmetry, and old kernels reject "no change"
    request = _RSS.pack(_SET_RSS, 0, len(queues), 0, 0, symmetry)
    _ask(interface, request + struct.pack(f"{len(queues)}I", *queues))


def rules(interface: str) -> Counts:
    """The queues to which rules (ntuple) direct flows, by the rule's number. Raises OSError."""
    count = _RULES.unpack_from(_ask(interface, _rules(_RULE_COUNT)))[4]
    answer = _ask(interface, _rules(_ALL_RULES, count=count) + bytes(4 * count))
    queues = {}
    for place in struct.unpack_from(f"{_RULES.unpack_from(answer)[4]}I", answer, _RULES.size):
        rule = _RULES.unpack_from(_ask(interface, _rules(_RULE, place)))[3]
        (cookie,) = _COOKIE.unpack_from(rule, _COOKIE_AT)
        if cookie != _DISCARD and not cookie >> 32:  # higher values are queues of a virtual function
            queues[str(place)] = int(cookie)
    return queues


def _rss(interface: str) -> tuple[int, ...]:
    return _RSS.unpack(_ask(interface, _RSS.pack(_GET_RSS, 0, 0, 0, 0, 0)))


def _rules(command: int, place: int = 0, count: int = 0) -> bytes:
    rule = bytes(_PLACE_AT) + struct.pack("=I4x", place)
    return _RULES.pack(command, 0, 0, rule, count) + bytes(4)  # the kernel's structure is padded to 8 bytes


def _ask(interface: str, request: bytes) -> bytes:
    import fcntl
    import socket
    from array import array

    answer = array("B", request)
    ifreq = _IFREQ.pack(interface.encode("utf-8", "surrogateescape"), answer.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        fcntl.ioctl(end, _SIOCETHTOOL, ifreq)
    return answer.tobytes()


def set_channels(interface: str, counts: Mapping[str, int]) -> None:
    """Set the number of channels of each named kind. Raises OSError with the kernel's error text."""
    _send(interface, _CHANNELS_SET, {_COUNTS[name]: count for name, count in counts.items()}, "uint32")


def set_adaptive(interface: str, flags: Mapping[str, int]) -> None:
    """Set whether the driver adapts the interrupt rate to the load. Raises OSError with the kernel's error text."""
    _send(interface, _COALESCE_SET, {_ADAPTIVE[name]: flag for name, flag in flags.items()}, "uint8")


def _send(interface: str, command: int, values: Mapping[int, int], size: str) -> None:
    from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST, genlmsg
    from pyroute2.netlink.exceptions import NetlinkError
    from pyroute2.netlink.generic import GenericNetlinkSocket
    from pyroute2.netlink.generic.ethtool import ethtoolheader

    last = max(values)
    kinds = [("unspec", "none"), ("interface", "interface"), *((f"value{n}", size) for n in range(2, last + 1))]
    message_class: Any = type("message", (genlmsg,), {"nla_map": tuple(kinds), "interface": ethtoolheader})
    message = message_class()
    message["cmd"], message["version"] = command, 1
    message["attrs"] = [("interface", {"attrs": [("ETHTOOL_A_HEADER_DEV_NAME", interface)]})]
    message["attrs"] += [(f"value{number}", value) for number, value in values.items()]
    try:
        with GenericNetlinkSocket(ext_ack=True) as end:
            end.bind("ethtool", message_class)
            tuple(end.nlm_request(message, msg_type=end.prid, msg_flags=NLM_F_REQUEST | NLM_F_ACK))
    except NetlinkError as error:
        raise OSError(error.code, str(error.args[1])) from None

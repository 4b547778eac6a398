"""Write a network device's settings through ethtool's netlink family: the kernel says in words why it refuses.

Source: networking/ethtool-netlink.rst. The only door to pyroute2, which takes 0.3 s to load: at the first write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHANNELS_SET, _COALESCE_SET = 18, 20  # include/uapi/linux/ethtool_netlink.h
_COUNTS = {"rx": 6, "tx": 7, "combined": 9}  # attributes ETHTOOL_A_CHANNELS_*_COUNT
_ADAPTIVE = {"rx": 11, "tx": 12}  # attributes ETHTOOL_A_COALESCE_USE_ADAPTIVE_*


def set_channels(interface: str, counts: Mapping[str, int]) -> None:
    """Set the counts of the named sorts of channels. Raises OSError with the kernel's words."""
    _send(interface, _CHANNELS_SET, {_COUNTS[name]: count for name, count in counts.items()}, "uint32")


def set_adaptive(interface: str, flags: Mapping[str, int]) -> None:
    """Set whether the rate of interrupts follows the load. Raises OSError with the kernel's words."""
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

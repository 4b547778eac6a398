"""A network device with several queues for a guest: one end of it is in the guest, the other in a namespace of its own.

The namespace is made for the emulator and ends with it, so this machine's network is neither seen nor changed, and
nobody has to be root. Its kernel answers what the guest sends to PEER.
"""

from __future__ import annotations

import os
import shutil
import subprocess

PEER, GUEST = "10.9.0.1", "10.9.0.2"
_DEVICE = "/dev/net/tun"
_ENTER = ("unshare", "--user", "--map-root-user", "--net", "--kill-child")
_MAKE = f"""
ip tuntap add dev tap0 mode tap multi_queue
ip address add {PEER}/24 dev tap0
ip link set tap0 up
exec "$@"
"""


def missing() -> str:
    """Why this machine cannot give a guest such a device, "" when it can."""
    if not shutil.which("unshare") or not shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        return "unshare and ip (util-linux, iproute2) are not installed"
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return f"{_DEVICE} cannot be used"
    if subprocess.run([*_ENTER, "true"], capture_output=True, check=False).returncode:
        return "user namespaces are not allowed"
    return ""


def around(command: list[str]) -> list[str]:
    """The command, in a network namespace with the device's other end."""
    return [*_ENTER, "sh", "-ec", _MAKE, "sh", *command]


def options(queues: int) -> list[str]:
    """For QEMU: a virtio device with so many queues, each with two interrupts, and a table of flows to queues."""
    netdev = f"tap,id=tap,ifname=tap0,script=no,downscript=no,vhost=off,queues={queues}"
    device = f"virtio-net-pci,netdev=tap,mq=on,rss=on,hash=on,vectors={2 * queues + 2}"
    return ["-netdev", netdev, "-device", device]

"""The host: nobody else opens /sys, /proc or /dev, or starts programs.

`Reader` reads, `Host` does everything; both under a root that is an argument.
"""

from __future__ import annotations

from quiet.host.holder import TIMESTAMPS
from quiet.host.host import Host
from quiet.host.reader import ANSWERS, Reader

__all__ = ["ANSWERS", "TIMESTAMPS", "Host", "Reader"]

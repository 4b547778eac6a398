"""`quiet watch`: lines on stdout as events happen, and the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from quiet.console import emit
from quiet.errors import Refused, UsageError

if TYPE_CHECKING:
    from quiet.watch.events import WatchEvent

_SHORTEST_S = 1.0
_LONGEST_S = 1e6  # eleven days; poll(2) takes at most 2^31 ms


def watch(repair: bool, rescan: float, duration: float | None, root: str, as_json: bool) -> int:
    """Report drift from the applied profile as it happens, or repair it. Exit 1 when drift was not repaired.

    `rescan`: seconds between two checks of everything, at least; `duration`: seconds after which it ends, None: never.
    """
    if not _SHORTEST_S <= rescan <= _LONGEST_S:  # nan is neither
        words = f"at least {_SHORTEST_S:g} s apart, and at most {_LONGEST_S:.0f} s"
        raise UsageError(f"--rescan {rescan:g}: looks at everything have to be {words}")
    if duration is not None and not 0 < duration < float("inf"):
        raise UsageError(f"--duration {duration:g}: write seconds, such as 60; without it, the watching never ends")
    import json

    from quiet.cli import json_output, text_host
    from quiet.host.host import Host
    from quiet.host.lock import locked
    from quiet.watch import events
    from quiet.watch.watcher import Watcher, WatchOptions

    host = Host(root)
    if repair:
        try:
            with locked(host, 5):
                pass
        except Refused as error:
            raise Refused(f"--repair: {error}") from None
    width = max(map(len, events.NAMES))

    def report(event: WatchEvent) -> None:
        if as_json:
            emit(json.dumps(json_output.watch_event(event), separators=(",", ":")) + "\n")
        else:
            emit(text_host.watch_event(event, width) + "\n")
        sys.stdout.flush()

    return Watcher(host, WatchOptions(repair, rescan, duration), report).run()

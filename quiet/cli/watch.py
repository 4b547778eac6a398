"""What `quiet watch` does: lines on stdout as things happen, and the exit code. No option parsing, no Typer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from quiet.console import emit
from quiet.errors import Refused, UsageError

if TYPE_CHECKING:
    from quiet.watch.events import WatchEvent

_SHORTEST_S = 1.0
_LONGEST_S = 1e6  # eleven days; what waits for events takes no more than 2^31 ms


def watch(
    repair: bool = False,
    rescan: float = 60.0,
    duration: float | None = None,
    root: str = "/",
    as_json: bool = False,
) -> int:
    """Stay and tell what drifts from the applied profile, or repair it. Exit 1 when drift was seen and not repaired.

    `rescan`: seconds between two looks at everything, at least; `duration`: seconds after which it ends, None: never.
    """
    if not _SHORTEST_S <= rescan <= _LONGEST_S:  # nan is neither
        words = f"at least {_SHORTEST_S:g} s apart, and at most {_LONGEST_S:.0f} s"
        raise UsageError(f"--rescan {rescan:g}: looks at everything have to be {words}")
    if duration is not None and not 0 < duration < float("inf"):
        raise UsageError(f"--duration {duration:g}: write seconds, such as 60; without it, the watching never ends")
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

    def tell(event: WatchEvent) -> None:
        if as_json:
            import json

            emit(json.dumps(events.shape(event), separators=(",", ":")) + "\n")
        else:
            emit(events.line(event) + "\n")
        sys.stdout.flush()

    return Watcher(host, WatchOptions(repair, rescan, duration), tell).run()

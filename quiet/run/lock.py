"""Implement `quiet lock`: wait in the queue for the isolated CPUs, then run one command on its turn.

Changes no settings, and needs no root once the queue exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from quiet.errors import Refused
from quiet.host import identity, queue
from quiet.host.host import Host
from quiet.run import child
from quiet.run.child import CommandSignals


def lock(host: Host, command: Sequence[str], share: bool, wait_s: float | None, waiting: Callable[[str], None]) -> int:
    """Run a command while no other run is on the host's isolated CPUs. Returns its exit code, 128 + N for signal N.

    `wait_s`: the maximum time to wait in seconds, None: no limit; `waiting` is called with a line about the runs ahead.
    Raises UsageError if there is no such command, and Refused if the turn does not come in time or there is no queue.
    """
    import time

    program = child.find(command[0])
    user = identity.wanted(None)
    with CommandSignals() as signals:

        def wait(line: str, seconds: float) -> bool:
            if line:
                waiting(line)
            if signals.pending:
                return False
            time.sleep(seconds)
            return True

        try:
            with queue.queued(host, " ".join(command), wait, share, wait_s):
                running = child.start(program, command, user, signals, bound=True)
                if running:
                    running.begin(fixed=False)
                    return running.wait()
        except Refused:
            if not signals.pending:
                raise
        sys.stdout.flush()
        return 128 + signals.pending

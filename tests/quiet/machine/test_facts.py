"""What the facts about a host leave out."""

from __future__ import annotations

import os

from quiet.host.host import Host
from quiet.machine.facts import Facts


def test_a_process_that_has_ended_and_is_not_reaped_is_no_task() -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        facts = Facts(Host())
        assert facts.task(pid) is None
        assert pid not in {task.tid for task in facts.tasks}
        assert os.getpid() in {task.tid for task in facts.tasks}
    finally:
        os.waitpid(pid, 0)

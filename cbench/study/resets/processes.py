"""Reset by ending processes that earlier trials left running."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import ClassVar

from cbench.study.process import process_tags
from cbench.study.records import StoredFacts
from cbench.study.resets.reset import Reset, ResetContext, ResetError


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesReset(Reset):
    """Ends the processes that a study's trials left running, so that no process of an earlier run disturbs the next
    one.

    The reset ends descendants of this process, and processes with a trial's tag even if another process adopted them.
    Processes of the setup keep running.
    """

    kind: ClassVar[str] = "processes"

    def prepare(self) -> None:
        adopt()

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        import psutil

        ended = context.tags.end(lambda tag: tag.position is not None)
        for _ in range(10):  # an ended process may leave children
            left = [each for each in psutil.Process().children(recursive=True) if not _of_setup(each.pid, context)]
            if not left:
                return {"ended": ended}
            for each in left:
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    each.kill()
            ended += len(psutil.wait_procs(left, timeout=5)[0])
        raise ResetError(f"process {left[0].pid} of an earlier run could not be killed; end it yourself")


def _of_setup(pid: int, context: ResetContext) -> bool:
    tag = context.tags.tag_of(pid)
    return tag is not None and tag.step == process_tags.SETUP


def adopt() -> None:
    """Make this process the parent of orphaned descendants (prctl(2), PR_SET_CHILD_SUBREAPER), so that it can end all
    of them.
    """
    import ctypes

    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)

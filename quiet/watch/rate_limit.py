"""Limit the CPU time of `quiet watch`: after each check, it sleeps in proportion to the CPU time used."""

from __future__ import annotations

import resource

SHARE = 0.0005  # share of one CPU for full checks without a notification
COUNTS_SHARE = 0.0004  # share for checking counters only; the rest of SHARE is for wake-ups
BUSY_SHARE = 0.2  # share of one CPU while notifications keep arriving, after BURST_S seconds of CPU time
BURST_S = 5.0
SOON_SHARE = 0.01  # share of one CPU for full checks after notifications of devices
TASKS_SHARE = 0.02  # share of one CPU for checking new threads
SETTLE_S, TASKS_SETTLE_S = 0.2, 0.3  # notifications come in bursts, and most threads end soon
SOON_S = 2.0  # minimum time between two full checks
FEWEST_S = 0.5  # minimum time between two repairs
MOST_S = 60.0


def spent() -> float:
    """The CPU time of this process and of the programs that it started and that have ended, in seconds."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class RateLimit:
    """Determines when to check, from the CPU time of earlier checks. Times are of time.monotonic(), in seconds."""

    def __init__(self, rescan_s: float) -> None:
        self.rescan_s = rescan_s
        self._hurry = ""  # the notification that may affect more than the checked knobs
        self._whole = 0.0  # the cost of a full check, in seconds of CPU time
        self._last = 0.0
        self._debt = 0.0  # CPU time of checks for which the watcher has not slept yet
        self._at = 0.0  # time of the last update of the debt
        self._tasks_from = 0.0
        self.repair_at = 0.0  # the time from which a repair is allowed again
        self._patience = FEWEST_S

    def checked(self, began: float, now: float, whole: bool) -> None:
        """Record the end of a check. `began`: the value of spent() before the check; `whole`: it was a full check."""
        cost = spent() - began
        self._debt = max(0.0, self._debt - (now - self._at) * BUSY_SHARE) + cost
        self._at = now
        if whole:
            self._whole, self._last, self._hurry = cost, now, ""

    @property
    def interval(self) -> float:
        """The time between two full checks, in seconds."""
        if self._hurry:
            return max(SOON_S, self._whole / SOON_SHARE)
        return max(self.rescan_s, self._whole / SHARE)

    def hurry(self, by: str) -> None:
        """Record that a notification may affect more knobs than were checked."""
        self._hurry = self._hurry or by

    @property
    def reason(self) -> str:
        """The reason for the full check that is due."""
        return f"a full check after {self._hurry}" if self._hurry else "a full check"

    def whole_at(self) -> float:
        """The time of the next full check."""
        return self._last + self.interval

    def pending_at(self, first: float) -> float:
        """The time to check, for a series of notifications that began at `first`."""
        return max(first + SETTLE_S, self._at + (self._debt - BURST_S) / BUSY_SHARE)

    def judged(self, began: float, now: float) -> None:
        """Record that new threads were checked."""
        self._tasks_from = now + (spent() - began) / TASKS_SHARE

    def tasks_at(self, first: float) -> float:
        """The time to check new threads, if the first was reported at `first`."""
        return max(first + TASKS_SETTLE_S, self._tasks_from)

    def repaired(self, now: float) -> None:
        """Record a repair. The wait grows if repairs follow each other closely: another program writes the settings."""
        calm = now - self.repair_at > MOST_S
        self._patience = FEWEST_S if calm else min(2 * self._patience, MOST_S)
        self.repair_at = now + self._patience

"""Write the report of a run to a file, and apply the limits that make a noisy run fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quiet.console import check_savable, save
from quiet.errors import UsageError
from quiet.host.identity import with_rights_of
from quiet.run.options import FrontOptions
from quiet.run.protocol import RunEnded

_NOISY = 1  # exit code if the command succeeded but was interrupted too much


class RunLimits(NamedTuple):
    """The limits on interruptions of a run. None: no limit."""

    lost_pct: float | None
    interruptions: int | None


def limits(own: FrontOptions) -> RunLimits:
    """The limits from the command line; also check that the report can be written.

    Raises UsageError for a wrong limit, or if the report cannot be written.
    """
    if own.report is not None:
        path = own.report
        with_rights_of(own.as_user, lambda: check_savable(path, "--report"))
    lost = None
    if own.max_lost is not None:
        from quiet.noise.budgets import parse_percent  # slow to load, rarely needed

        lost = parse_percent(own.max_lost, "--max-lost")
    count = own.max_interrupts
    if count is not None and not (count.isascii() and count.isdigit() and len(count) < 10):
        raise UsageError(f"--max-interrupts: must be a number such as 10, not {count!r}")
    return RunLimits(lost, int(count) if count is not None else None)


def judged(
    own: FrontOptions, most: RunLimits, ended: RunEnded, command: Sequence[str], code: int, note: Callable[[str], None]
) -> int:
    """Write the report and return the exit code: 1 if the command succeeded, but a limit is exceeded or unverifiable.

    `note` is called with each reason. Raises QuietError if the report cannot be written.
    """
    reasons = _exceeded(most, ended)
    if own.report is not None:
        observed: object = json.loads(ended.report) if ended.report else {}
        whole: dict[str, object] = {
            "restored": ended.restored,
            "complete": ended.complete,
            "exceeded": reasons,
        }
        seen = observed if isinstance(observed, dict) else {}
        whole = {**seen, "command": list(command), "exit_code": code, **whole}
        path = own.report
        with_rights_of(own.as_user, lambda: save(path, json.dumps(whole, indent=1) + "\n", "--report"))
    if code or not reasons:
        return code
    for reason in reasons:
        note(reason)
    return _NOISY


def _exceeded(most: RunLimits, ended: RunEnded) -> list[str]:
    if most == RunLimits(None, None):
        return []
    if ended.interruptions < 0 or not ended.observed_ns:
        return ["the interruptions of this run are unknown, so the limits cannot be checked"]
    found = []
    lost = 100 * ended.lost_ns / ended.observed_ns
    if most.lost_pct is not None and lost > most.lost_pct:
        found.append(f"not quiet: {lost:.4g} % of the time was lost, more than {most.lost_pct:g} %")
    elif most.lost_pct is not None and ended.unmeasured:
        found.append(
            f"the length of {ended.unmeasured} interruptions is unknown without kernel tracing, "
            "so --max-lost cannot be checked"
        )
    if most.interruptions is not None and ended.interruptions > most.interruptions:
        found.append(f"not quiet: {ended.interruptions} interruptions, more than {most.interruptions}")
    return found

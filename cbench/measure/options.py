"""Define and check the measurement options that `run`, `sweep`, `interfere` and studies share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cbench.machine import events
from cbench.measure import layout
from cbench.model import PLAIN, Workload
from quiet import UsageError

MOST_TRIALS = 1_000_000
MOST_TIMEOUT_S = 7 * 24 * 3600
CLEAN_FACTOR, CLEAN_LEAST = 100, 10_000
"""Without --trials, --until-clean K ends after at most CLEAN_FACTOR times K trials, or CLEAN_LEAST trials if that is
more, but after no more than MOST_TRIALS.
"""


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """The options of a measurement; created by measure_options().

    `trials`: trials per process; with `until_clean`, their maximum number. `warmup`: None continues until settled.
    `timeout`: the longest time in seconds without a message from the process.
    `events`: None selects events that fit the counter. `until_clean`: the number of clean trials that each process must
    reach. `number_given`: whether the user gave a number of trials or of clean trials.
    """

    trials: int
    warmup: int | None
    counter: str
    timeout: float
    trace: bool = True
    events: tuple[str, ...] | None = None
    until_clean: int | None = None
    plan: layout.LayoutPlan = layout.SINGLE
    in_kernel: bool = False
    stop_machine: bool = False
    number_given: bool = True

    def trials_of(self, workload: Workload) -> int:
        """The number of trials per process."""
        return self.trials if self.number_given or workload.trials is None else min(self.trials, workload.trials)

    def warmup_of(self, workload: Workload) -> int | None:
        """The number of trials to discard; None: until settled."""
        return self.warmup if self.number_given or workload.trials is None else self.warmup or 0


def measure_options(
    trials: int | None,
    warmup: str,
    counter: str,
    timeout: float,
    trace: bool = True,
    *,
    events_text: str = events.AUTO,
    until_clean: int | None = None,
    plan: layout.LayoutPlan = layout.SINGLE,
    in_kernel: bool = False,
    stop_machine: bool = False,
    number_given: bool = True,
) -> MeasureOptions:
    """Validated options. `trials`: None for as many as `until_clean` may need. Raises UsageError for options that
    exclude each other or are out of range.
    """
    if until_clean is not None and not 2 <= until_clean <= MOST_TRIALS:
        raise UsageError(f"--until-clean {until_clean}: must be from 2 to {MOST_TRIALS:,} clean trials")
    if trials is None:
        trials = min(max((until_clean or 0) * CLEAN_FACTOR, CLEAN_LEAST), MOST_TRIALS)
    if not 1 <= trials <= MOST_TRIALS:
        raise UsageError(f"--trials {trials}: must be from 1 to {MOST_TRIALS:,}")
    if until_clean is not None and trials < until_clean:
        raise UsageError(f"--until-clean {until_clean} cannot be reached with --trials {trials}; raise --trials")
    if warmup != "auto" and not (re.fullmatch("[0-9]{1,7}", warmup) and int(warmup) <= MOST_TRIALS):
        raise UsageError(f"--warmup {warmup!r}: must be 'auto' or a number of trials from 0 to {MOST_TRIALS:,}")
    if not 0 < timeout <= MOST_TIMEOUT_S:
        raise UsageError(f"--timeout {timeout:g}: must be above 0 and at most {MOST_TIMEOUT_S:,} seconds")
    if stop_machine and not in_kernel:
        raise UsageError("--stop-machine needs --in-kernel: no user process can hold the other CPUs")
    if in_kernel and plan.processes > 1:
        raise UsageError("--in-kernel measures in the kernel, not in processes: omit --processes")
    if in_kernel and (events_text != events.AUTO or plan.base != PLAIN):
        raise UsageError(
            "--in-kernel counts no other events, and has no addresses, environment or stack: omit --events, --aslr, "
            "--environment and --stack"
        )
    discarded = None if warmup == "auto" else int(warmup)
    chosen = events.parse_events(events_text)
    return MeasureOptions(
        trials, discarded, counter, timeout, trace, chosen, until_clean, plan, in_kernel, stop_machine, number_given
    )

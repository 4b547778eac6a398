"""Run trials in chunks: C code measures a chunk, then Python names the interruptions."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from typing import Any

from cbench._cbench import ffi, lib
from cbench.machine import events
from cbench.model import (
    FAULT,
    INTERRUPT,
    LINES,
    MIGRATION,
    MULTIPLEXED,
    SWITCH,
    Calibration,
    ChainTimes,
    Trial,
    TrialCause,
)
from cbench.stats import chains
from quiet import QuietError

BUDGET_NS = 200_000_000
MOST = 2000
FEWEST_CYCLES = 0.1
"""The minimum number of cycles that one kernel instruction takes."""


class TrialSeries:
    """A workload and a counter, ready to run trials; owns the C buffers of a chunk.

    `others`: names of the events counted in addition to the value. `kernel_baseline`: kernel instructions in an empty
    timed region, None if unknown. `enters_kernel`: as in model.Workload. `own_faults`: page faults that are part of the
    work itself. `calibration`: the conversion of ticks to cycles, None if the counter's values are used unchanged.
    """

    def __init__(
        self,
        counter: Any,
        cpu: int,
        run: Any,
        state: Any,
        n: int,
        rewarm: int,
        *,
        others: Sequence[str] = (),
        kernel_baseline: int | None = None,
        enters_kernel: bool | None = None,
        own_faults: int = 0,
        stack: int = 0,
        calibration: Calibration | None = None,
    ) -> None:
        self._call = (run, state, n, rewarm)
        self._cpu = cpu
        self.strayed = False
        self._counter = counter
        self._others = tuple(others)
        self._kernel_baseline, self._enters_kernel = kernel_baseline, enters_kernel
        self._own_faults = own_faults
        self._beside = 0
        self._stack = stack
        self._calibration = calibration
        lib.cb_counter_chain(counter, calibration.length if calibration else 0)
        self._trials = ffi.new("cb_trial[]", MOST)
        self._count = ffi.new("size_t *")
        source = ffi.new("cb_irq_source **")
        error = lib.cb_irq_create(cpu, source)
        self._irqs = ffi.NULL if error else source[0]
        self._names: tuple[str, ...] = ()
        self.interrupts_from = os.strerror(-error) if error else "/proc/interrupts"
        if not error:
            self._read_names()

    def close(self) -> None:
        if self._irqs != ffi.NULL:
            lib.cb_irq_destroy(self._irqs)
            self._irqs = ffi.NULL

    @property
    def buffer(self) -> tuple[int, int]:
        """Address and length in bytes of the buffer for a chunk's trials."""
        return int(ffi.cast("uintptr_t", self._trials)), ffi.sizeof(self._trials)

    def run(self, most: int) -> list[Trial]:
        """Run and return at most `most` trials, as many as fit into about 0.2 s. If a trial was not on the requested
        CPU, this trial and all later ones are discarded, and `strayed` is set. Raises QuietError if the counter cannot
        be read.
        """
        error = lib.cb_trials_run(
            self._counter,
            self._irqs,
            *self._call,
            BUDGET_NS,
            self._stack,
            min(most, MOST),
            self._trials,
            self._count,
        )
        if error:
            name = errno.errorcode.get(-error, str(-error))
            raise QuietError(f"the counter could not be read during a trial [{name}]; try another --counter")
        there = self._count[0]
        for i in range(there):
            if self._trials[i].cpu_before != self._cpu or self._trials[i].cpu_after != self._cpu:
                self.strayed, there = True, i
                break
        trials = [self._trial(self._trials[i]) for i in range(there)]
        if self._irqs != ffi.NULL:
            self._read_names()
        return trials

    def _read_names(self) -> None:
        self._names = line_names(ffi.string(self._irqs.text).decode(errors="replace"))

    def _trial(self, raw: Any) -> Trial:
        interrupts = {self._line(raw.irq_line[i]): int(raw.irq_count[i]) for i in range(raw.irq_lines)}
        switches = raw.nvcsw + raw.nivcsw
        faults = max(raw.minflt + raw.majflt - self._own_faults, 0)
        migrated = raw.cpu_before != raw.cpu_after
        valid = not raw.flags & lib.CB_MULTIPLEXED
        causes = []
        if switches:
            causes.append(TrialCause(SWITCH, f"{raw.nvcsw} voluntary, {raw.nivcsw} involuntary", switches))
        elif raw.flags & lib.CB_RESCHEDULED:
            causes.append(TrialCause(SWITCH, "the counter was rescheduled"))
        if migrated:
            causes.append(TrialCause(MIGRATION, f"CPU {raw.cpu_before} to CPU {raw.cpu_after}"))
        if faults:
            causes.append(TrialCause(FAULT, f"{raw.minflt} minor, {raw.majflt} major", faults))
        causes += [TrialCause(INTERRUPT, name, count) for name, count in interrupts.items()]
        if raw.flags & lib.CB_IRQ_UNKNOWN and self._irqs != ffi.NULL:
            causes.append(TrialCause(LINES))
        if not valid:
            causes.append(TrialCause(MULTIPLEXED))
        outcome = (switches, faults, interrupts, migrated, valid, raw.begin, raw.end)
        counts = {name: int(raw.others[i]) for i, name in enumerate(self._others)}
        kernel = self._in_kernel(counts, int(raw.beside))
        value, times = self._cycles(raw)
        return Trial(value, raw.result, tuple(causes), *outcome, counts=counts, kernel=kernel, chains=times)

    def _cycles(self, raw: Any) -> tuple[int, ChainTimes | None]:
        """The trial's value, and the times of its chains. With calibration, the value is in cycles; without, the times
        are None.
        """
        if self._calibration is None or not self._calibration.length:
            return raw.value, None
        before, after = raw.before, raw.after
        times = ChainTimes(raw.value, self._calibration.length, before.narrow, after.narrow, before.wide, after.wide)
        return round(chains.cycles(times, self._calibration)), times

    def _in_kernel(self, counts: dict[str, int], beside: int) -> int | None:
        """The number of instructions that the kernel ran within the timed region; None if they are not counted, or if
        the workload may have caused them.
        """
        if self._kernel_baseline is None or self._enters_kernel:
            return None
        ran = max(counts[events.IN_KERNEL] - self._kernel_baseline, 0)
        self._beside = min(self._beside or beside, beside)
        if ran and beside - self._beside >= ran * FEWEST_CYCLES:
            ran = 0  # all of these ran between the reads of two counters, and so outside the trial
        return ran if self._enters_kernel is False or not ran else None

    def _line(self, number: int) -> str:
        return self._names[number] if number < len(self._names) else f"line {number}"


def line_names(text: str) -> tuple[str, ...]:
    """A name for each line of /proc/interrupts below its header, such as "LOC (Local timer interrupts)" or
    "27 (virtio1-virtqueues)".

    The text after the counts has parts separated by runs of blanks; the last part is the device's name (numbered lines)
    or the description (lettered lines).
    """
    lines = text.splitlines()
    columns = len(lines[0].split()) if lines else 0
    return tuple(_line_name(line, columns) for line in lines[1:])


def _line_name(line: str, columns: int) -> str:
    label, _, rest = line.partition(":")
    words = rest.split(None, columns)
    last = re.split(r"\s{2,}", words[-1].strip())[-1] if len(words) > columns else ""
    return f"{label.strip()} ({last})" if last else label.strip()

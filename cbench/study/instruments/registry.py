"""List the instruments that read numbers from a command.

D. Flater, NIST TN 1855, section 3.4, has eight: elapsed, user and system time of a shell's `time`; elapsed time,
cycles, cpu-clock and task-clock of `perf stat`; samples of `perf record`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cbench.study.instruments.instrument import HostInstrument, Instrument
from cbench.study.instruments.output import FileNumber, JsonPath, LastFloat, Regex
from cbench.study.instruments.perf_record import RecordedSamples
from cbench.study.instruments.perf_stat import EVENT_COUNTS
from cbench.study.instruments.times import COMMAND_TIMES

INSTRUMENTS: tuple[Instrument, ...] = (
    LastFloat(),
    *COMMAND_TIMES,
    *EVENT_COUNTS,
    Regex(),
    JsonPath(),
    FileNumber(),
    RecordedSamples(),
)
BY_SOURCE = {each.source: each for each in INSTRUMENTS}
SYNTAX = ", ".join(each.syntax for each in INSTRUMENTS)
NAMES = tuple(read for each in INSTRUMENTS for read in each.judged)
"""The values of `read` that `cbench screen validate` judges."""


def parse(read: str) -> tuple[str, str]:
    """The source and the argument of a value of `read`. Raises ValueError, with the reason, for an invalid value."""
    source, _, detail = (read, "", "") if read in BY_SOURCE else read.partition(":")
    found = BY_SOURCE.get(source)
    if found is None or (not found.optional and bool(detail) != bool(found.argument)):
        raise ValueError(f"{read!r}: must be one of {SYNTAX}")
    found.check(detail)
    return source, detail


def instruments(only: Sequence[str] = ()) -> tuple[HostInstrument, ...]:
    """Describe the judged instruments on this host, including those that it lacks. `only`: values of `read`, () for
    all.
    """
    return tuple(each.on_host(read) for each in INSTRUMENTS for read in each.judged if not only or read in only)

"""Define the base class of instruments, which read one kind of number from a command."""

from __future__ import annotations

from dataclasses import dataclass

from cbench.study.process.run_command import Execution, Probe

LAST, REGEX, JSON, FILE, WALL, USER, SYS = "last-float", "regex", "json", "file", "wall", "user", "sys"
PERF_ELAPSED = "perf-elapsed"  # from the exec of the command, as in `perf stat`
CYCLES, CYCLES_USER = "cycles", "cycles:u"  # of a command and all of its descendants, by the PMU
TASK_CLOCK, CPU_CLOCK = "task-clock", "cpu-clock"  # of the same processes, by the kernel's software events, in seconds
SAMPLES = "samples"  # samples of the command, which runs under `perf record`
"""The values of `read` in a file; each is the `source` of one instrument."""
NO_CALL_GRAPH, FRAME_POINTERS, DWARF, LAST_BRANCHES = "none", "fp", "dwarf", "lbr"
WORDS = {FRAME_POINTERS: "frame pointers", DWARF: "DWARF", LAST_BRANCHES: "the CPU's last branches"}
EVENT, HZ = "cpu-clock", 1000
"""The default event and rate of sampling. Every kernel has this software event, so all hosts sample the same event; the
rate is per second of CPU time.
"""


class NoNumber(Exception):
    """Raised if an instrument has no number for a trial; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class HostInstrument:
    """An instrument on this host. `read`: the instrument's name in a file; `what`: a description of the measured
    quantity. `resolution_s`: the instrument's smallest step in seconds, None if it does not measure time; `why`: the
    basis of this value. `missing`: the reason why this host lacks the instrument, "" if it is available.
    """

    read: str
    unit: str
    what: str
    resolution_s: float | None
    why: str
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling by `perf record`: every `period` events, or about `hz` times per second of CPU time; exactly one of
    the two is set.

    `call_graph`: the value of --call-graph, "" if a factor's level sets it, NO_CALL_GRAPH for none.
    """

    call_graph: str = NO_CALL_GRAPH
    event: str = EVENT
    hz: int | None = HZ
    period: int | None = None

    @property
    def words(self) -> str:
        """The sampling as text, such as "cpu-clock at 1,000 Hz, call graphs by frame pointers"."""
        rate = f"at {self.hz:,} Hz" if self.hz is not None else f"every {self.period:,} events"
        how = f"call graphs by {WORDS[self.call_graph]}" if self.call_graph in WORDS else "no call graphs"
        return f"{self.event} {rate}, {how}"


class Instrument:
    """The instrument for one value of `read`.

    To add one, write a class in a separate file and add it to registry.INSTRUMENTS. `source`: its keyword; `argument`:
    the name of its required argument, as in regex:EXPRESSION, "" for none; `optional`: whether the argument may be
    omitted. `unit`: the default unit of the numbers. `judged`: the values of `read` that `cbench screen validate`
    judges. `example`: a line for the example file, "" if the file already contains the keyword.
    """

    source: str
    argument = ""
    optional = False
    unit = ""
    judged: tuple[str, ...] = ()
    example = ""

    @property
    def syntax(self) -> str:
        return f"{self.source}:{self.argument}" if self.argument else self.source

    def check(self, detail: str) -> None:
        """Check the argument `detail`. Raises ValueError if the instrument cannot use it."""

    def prepare(self, detail: str, folder: str) -> None:
        """Prepare for a trial; called before each trial."""

    def probe(self, sampling: Sampling | None) -> Probe | None:
        """The probe that measures the command, None for an instrument that reads its times, output or files.

        `sampling`: the sampling of the test's command, None if it is not sampled.
        """
        return None

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        """Read the number of a trial; returns the number and its original text. Raises NoNumber if there is none."""
        raise NotImplementedError

    def on_host(self, read: str) -> HostInstrument:
        """Describe one of the `judged` values of `read` on this host."""
        raise NotImplementedError


def probed(source: str, done: Execution, missing: str) -> int:
    """The value of a probe. Raises NoNumber if there is none; `missing`: the reason to report if the probe did not
    run.
    """
    reading = done.readings.get(source)
    if reading is None or reading.value is None:
        raise NoNumber(f"{source}: {missing if reading is None else reading.why}")
    return reading.value

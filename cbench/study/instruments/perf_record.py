"""Run a command under `perf record` and count its samples.

D. Flater (NIST TN 1855, section 3.4) calls these samples perf-samples. Their number divided by the sampling frequency
is a CPU time.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from cbench.results import json_object
from cbench.study.instruments.instrument import (
    DWARF,
    EVENT,
    FRAME_POINTERS,
    HZ,
    LAST_BRANCHES,
    NO_CALL_GRAPH,
    SAMPLES,
    HostInstrument,
    Instrument,
    Sampling,
    probed,
)
from cbench.study.instruments.perf_data import NoSamples, Samples, count
from cbench.study.process.run_command import Execution, Probe, Reading
from quiet import Reader

CALL_GRAPHS = (NO_CALL_GRAPH, FRAME_POINTERS, DWARF, LAST_BRANCHES)
SUCH_AS = "samples:fp,"
SHAPE = f"none, fp, dwarf or lbr, then event=NAME and hz=N or period=N, such as {SUCH_AS}event=cycles,period=1000000"
MOST_HZ, MOST_PERIOD = 10**6, 10**12
PERF = "perf"
INSTALL = "perf is not installed (Debian: apt install linux-perf)"
TRY_S = 120.0  # far more than a slow host takes
CLOCKS, SOFTWARE_CLOCKS = ("cpu-clock", "task-clock"), ((1, 0), (1, 1))
"""The names of the kernel's two software clocks, and their (type, config) in perf_event_open(2)."""
LIMIT = "/proc/sys/kernel/perf_event_max_sample_rate"


def parse(detail: str) -> Sampling:
    """Parse the text after `samples:` in a value of `read`. If the text names no call graph, the result's `call_graph`
    is "". Raises ValueError, with a description of the error, for an invalid text.
    """
    graph, event, rates = "", EVENT, dict[str, int]()
    for place, part in enumerate(detail.split(",") if detail else ()):
        name, equals, value = part.partition("=")
        if not equals and not place and name in CALL_GRAPHS:
            graph = name
        elif name == "event" and value and not value.startswith("-"):
            event = value
        elif name in ("hz", "period") and value.isdecimal() and not rates:
            rates[name] = int(value)
            most = MOST_HZ if name == "hz" else MOST_PERIOD
            if not 1 <= rates[name] <= most:
                raise ValueError(f"{part}: must be from 1 to {most:,}")
        else:
            raise ValueError(f"{part!r}: write {SHAPE}")
    return Sampling(graph, event, rates.get("hz", None if rates else HZ), rates.get("period"))


def named(detail: str) -> frozenset[str]:
    """The settings, "event" and "rate", that a text for parse() contains; parse() uses defaults for the others."""
    keys = {part.partition("=")[0] for part in detail.split(",") if "=" in part}
    return frozenset("event" if key == "event" else "rate" for key in keys)


@functools.cache
def obstacle(sampling: Sampling, path: str | None = None) -> str:
    """The reason why this host cannot sample, in one line; "" if it can. Runs `perf record` once on an empty workload.

    `path`: the PATH to search for perf, None for the PATH of this process.
    """
    perf = shutil.which(PERF, path=path)
    if perf is None:
        return INSTALL
    most = Reader().text(LIMIT) or ""
    if sampling.hz is not None and most.isdecimal() and sampling.hz > int(most):
        return f"hz={sampling.hz}: the kernel permits at most {most} (sysctl kernel.perf_event_max_sample_rate)"
    with tempfile.TemporaryDirectory(prefix="cbench-") as folder:
        file = Path(folder, "perf.data")
        command = [perf, *arguments(sampling, file)[1:], "/bin/sh", "-c", ":"]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TRY_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{perf}: {getattr(error, 'strerror', None) or f'timed out after {TRY_S:g} s'}"
        if done.returncode:
            said = [line.strip() for line in done.stderr.splitlines() if line.strip() not in ("", "Error:")]
            return f"{perf} record: exited with {done.returncode}{': ' + said[0] if said else ''}"
        found = counted(sampling, file)
        return found if isinstance(found, str) else ""


def arguments(sampling: Sampling, file: Path) -> list[str]:
    """The words `perf record ... --` to put before a command's own words. perf ends with the exit code of the command.

    Build IDs are disabled, because perf would read them after the command has ended, for a file that is discarded, and
    cache them in the user's home directory. A rate that the kernel does not permit is an error and is not lowered.
    """
    rate = ["-F", str(sampling.hz), "--strict-freq"] if sampling.hz is not None else ["-c", str(sampling.period)]
    graph = [] if sampling.call_graph in ("", NO_CALL_GRAPH) else [f"--call-graph={sampling.call_graph}"]
    return [PERF, "record", "-q", "-B", "-N", "-e", sampling.event, *rate, *graph, "-o", str(file), "--"]


def counted(sampling: Sampling, file: Path) -> Samples | str:
    """The samples in a file of `perf record`, or the reason why they are unknown.

    Without a PMU, perf silently samples a clock instead of a hardware event; without permission to observe the kernel,
    it silently samples only user mode. Neither is the requested measurement.
    """
    try:
        found = count(file)
    except NoSamples as error:
        return str(error)
    if found.event in SOFTWARE_CLOCKS and not sampling.event.startswith(CLOCKS):
        return f"{sampling.event} cannot be sampled here; perf used a clock instead: write event=cpu-clock"
    modes = sampling.event.partition(":")[2]
    if found.user_only and ("u" not in modes or "k" in modes):
        name = sampling.event.partition(":")[0]
        return f"{sampling.event}: the kernel may not be sampled without root; event={name}:u samples only user mode"
    return found


class PerfRecording:
    """Runs `perf record` around a command and deletes its file once the samples are counted."""

    name = SAMPLES

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._file = Path()

    def obstacle(self, path: str | None) -> str:
        why = obstacle(self._sampling, path)
        return f"samples are unavailable here: {why}" if why else ""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="cbench-")
        self._file = Path(self._folder.name, "perf.data")
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def wrap(self, shell: list[str]) -> list[str]:
        return [*arguments(self._sampling, self._file), *shell]

    def reading(self) -> Reading:
        samples = counted(self._sampling, self._file)
        if isinstance(samples, str):
            return Reading(None, samples)
        return Reading(samples.samples, facts={SAMPLES: json_object(samples)})


class RecordedSamples(Instrument):
    """Reads the number of samples that `perf record` takes of the command."""

    source, argument, optional, unit = SAMPLES, "HOW", True, "samples"
    judged = tuple(f"{SAMPLES}:{graph}" for graph in (FRAME_POINTERS, DWARF))

    def check(self, detail: str) -> None:
        try:
            parse(detail)
        except ValueError as error:
            raise ValueError(f"{f'{SAMPLES}:{detail}'!r}: {error}") from None

    def probe(self, sampling: Sampling | None) -> Probe | None:
        return None if sampling is None else PerfRecording(sampling)

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        samples = probed(self.source, done, "was not sampled")
        return float(samples), str(samples)

    def on_host(self, read: str) -> HostInstrument:
        how = parse(read.partition(":")[2])
        what, step = f"`perf record`: {how.words}", None if how.hz is None else 1 / how.hz
        return HostInstrument(read, self.unit, what, step, f"one sample: 1/{how.hz:,} s", obstacle(how))

"""Instruments that read a file which the command leaves: its last number, or the samples in a file of `perf record`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from cbench.study.instruments import perf_data
from cbench.study.instruments.instrument import FILE, PERF_DATA, Instrument, NoNumber
from cbench.study.instruments.output import last_number
from cbench.study.process.run_command import Execution

MOST_FILE = 1 << 24
CHUNK = 1 << 16
UNTOUCHED_NS = 1_000_000_000
"""Since 1970: the time given to a file of results before its trial."""
KERNELS = ("/proc/", "/sys/", "/dev/")
"""Files there have their content without being written."""


class LeftFile(Instrument):
    """A file that the command has to write in its trial."""

    argument = "PATH"

    def prepare(self, detail: str, folder: str) -> None:
        """Make the file look as old as can be, so that one that is not written again is noticed."""
        path = Path(folder, detail)
        if not str(path).startswith(KERNELS):
            with contextlib.suppress(OSError):
                os.utime(path, ns=(UNTOUCHED_NS, UNTOUCHED_NS))


class FileNumber(LeftFile):
    """The last number in a file."""

    source = FILE

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        return last_number(_content(Path(folder, detail)), detail)


class PerfDataFile(LeftFile):
    """The samples in a file of `perf record`."""

    source = PERF_DATA
    unit = "samples"
    example = "perf-data:PATH, the samples in a file of perf record that it leaves"

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        path = Path(folder, detail)
        try:
            if path.stat().st_mtime_ns == UNTOUCHED_NS:
                raise NoNumber(f"{path}: was not written in this trial")
            samples = perf_data.count(path).samples
        except OSError as error:
            raise NoNumber(f"{path}: {error.strerror}") from None
        except perf_data.NoSamples as error:
            raise NoNumber(str(error)) from None
        return float(samples), str(samples)


def _content(path: Path) -> str:
    try:
        with path.open("rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_mtime_ns == UNTOUCHED_NS:
                raise NoNumber(f"{path}: was not written in this trial")
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_FILE))
            parts = []
            while more := file.read(CHUNK):  # a file of the kernel's may refuse to be asked for much at once
                parts.append(more)
            return b"".join(parts).decode(errors="replace")
    except OSError as error:
        raise NoNumber(f"{path}: {error.strerror}") from None

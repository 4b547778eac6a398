"""Manage a separate trace instance that covers only the given CPUs and is removed afterwards.

Documentation/trace/ftrace.rst: an instance has a separate buffer, clock, events and CPU mask, so other tracing is
unaffected. The name of an instance contains the owner's PID and start time, so that the next start can remove the
instances of a killed owner.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import QuietError
from quiet.host.host import Host
from quiet.host.proc import mounts, start_time
from quiet.host.reader import Reader
from quiet.noise import formats
from quiet.noise.events import EventType, Values

PLACES = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_NUMBER = struct.Struct("=H")  # the number of an event's type
PREFIX = "quiet-noise"
MOST_BYTES = 256 << 20  # maximum size of kept events
_NEVER = (1 << 64) - 1  # end of the newest page, which is not yet known
_NEEDS_ROOT = ("tracing needs root", "run as root")
CLOCKS = ("x86-tsc", "mono_raw")  # the detector's clock, or a clock that converts exactly to it


class NoTraceError(QuietError):
    """Tracing is unavailable; the message has the reason, and `remedy` says how to enable it ("": unknown)."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.remedy = remedy

    @property
    def naming(self) -> str:
        """A clause for the remedies of causes that have no name without tracing; "" without a remedy."""
        return f"; {self.remedy}, so that kernel tracing can identify it" if self.remedy else ""


def mount(reader: Reader) -> str:
    """The mount point of tracefs. Raises NoTraceError if this process cannot find or access it."""
    for place in PLACES:
        if reader.exists(f"{place}/instances"):
            return place
    if reader.exists("/sys/kernel/tracing") or reader.exists("/sys/kernel/debug"):
        root = os.geteuid() == 0
        if any(mount.path in PLACES or mount.type == "debugfs" for mount in mounts(reader)):
            raise (
                NoTraceError("tracing is not permitted here (container, lockdown)")
                if root
                else NoTraceError(*_NEEDS_ROOT)
            )
        text = f"tracefs is not mounted; {'' if root else 'as root: '}mount -t tracefs nodev /sys/kernel/tracing"
        raise NoTraceError(text, "mount tracefs" if root else "mount tracefs and run as root")
    raise NoTraceError("this kernel has no tracing")


def check(reader: Reader) -> None:
    """Raise NoTraceError with the reason if this process cannot create a trace instance."""
    if not reader.access(f"{mount(reader)}/instances", os.W_OK):
        raise NoTraceError(*_NEEDS_ROOT)


def remove_left_over(host: Host) -> list[str]:
    """Remove the instances whose owner ended without removing them. Returns their names."""
    gone = []
    with contextlib.suppress(NoTraceError):
        folder = f"{mount(host)}/instances"
        for name in host.names(folder):
            prefix, _, rest = name.rpartition(".")[0].partition(".")
            pid, _, started = rest.partition(".")
            if prefix == PREFIX and pid.isdecimal() and (start_time(host, pid) or "") != started:
                with contextlib.suppress(OSError):
                    host.rmdir(f"{folder}/{name}")
                    gone.append(name)
    return gone


class Instance:
    """A trace instance: `with Instance(...) as trace: trace.on(); ...; trace.off(); trace.pages(cpu)`."""

    def __init__(self, host: Host, cpus: CpuSet, kinds: Sequence[EventType], size_kb: int, role: str) -> None:
        """Prepare the instance, which `with` creates; both raise NoTraceError.

        `size_kb`: the buffer size of each CPU in KiB; `role`: the last part of the instance's name.
        """
        self.host, self.cpus = host, cpus
        self.mount = mount(host)
        pid = os.getpid()
        self.path = f"{self.mount}/instances/{PREFIX}.{pid}.{start_time(host, pid)}.{role}"
        self.clock = ""
        self.kinds: dict[int, tuple[EventType, formats.Decoder]] = {}
        self._wanted, self._size_kb = kinds, size_kb
        self._forgotten: dict[int, int] = {}
        self._pages: dict[int, list[bytes]] = {}
        self._taken = 0

    def __enter__(self) -> Instance:
        try:
            self.host.mkdir(self.path)
        except PermissionError:
            raise NoTraceError(*_NEEDS_ROOT) from None
        except OSError as error:
            raise NoTraceError(f"no trace instance can be created: {error.strerror}") from None
        try:
            self._set_up()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self.off()
        with contextlib.suppress(OSError):
            self.host.rmdir(self.path)

    def _set_up(self) -> None:
        try:
            self.off()
            self._write("options/overwrite", "0")  # if the buffer is full, new events are lost and counted
            self._write("tracing_cpumask", cpulist.format_mask(self.cpus))
            self.clock = self._choose_clock()
            for cpu in sorted(self.cpus):
                self._write(f"per_cpu/cpu{cpu}/buffer_size_kb", str(self._size_kb))
            for kind in self._wanted:
                self._enable(kind)
        except OSError as error:
            raise NoTraceError(f"tracing cannot be set up: {error.strerror}") from None

    def _choose_clock(self) -> str:
        offered = (self.host.text(f"{self.path}/trace_clock") or "").replace("[", "").replace("]", "").split()
        clock = next((name for name in CLOCKS if name in offered), "")
        if not clock:
            raise NoTraceError("this kernel's tracing has no clock that the detector can also read")
        self._write("trace_clock", clock)
        return clock

    def _enable(self, kind: EventType) -> None:
        folder = f"events/{kind.system}/{kind.name}"
        text = self.host.text(f"{self.path}/{folder}/format")
        if text is None:
            return  # this kernel lacks the event
        layout = formats.parse(text)
        if kind.filter:
            self._write(f"{folder}/filter", kind.filter)
        self._write(f"{folder}/enable", "1")
        self.kinds[layout.number] = (kind, formats.Decoder(layout, ("common_pid", *kind.fields)))

    def has(self, name: str) -> bool:
        """Whether this instance traces the event, which the kernel may lack."""
        return any(kind.name == name for kind, _ in self.kinds.values())

    def switch(self, name: str, traced: bool) -> None:
        """Switch an event on or off, if the kernel has it."""
        for kind, _ in self.kinds.values():
            if kind.name == name:
                self._write(f"events/{kind.system}/{name}/enable", "1" if traced else "0")

    def _write(self, name: str, value: str) -> None:
        self.host.write(f"{self.path}/{name}", value)

    def on(self) -> None:
        """Start tracing."""
        self._write("tracing_on", "1")

    def off(self) -> None:
        """Stop tracing; recorded events stay until they are read or the instance is removed."""
        self._write("tracing_on", "0")

    def drain(self) -> None:
        """Move the events recorded so far out of the kernel's buffers, so that the buffers do not fill up.

        Stops at MOST_BYTES: then the buffers fill up, and lost events are counted.
        """
        for cpu in self.cpus:
            if self._taken >= MOST_BYTES:
                return
            for page in self._new_pages(cpu):
                self._pages.setdefault(cpu, []).append(page)
                self._taken += len(page)

    def keep(self, wanted: Callable[[int, int], bool]) -> None:
        """Keep only those pages from drain() for which `wanted(begin, end)`, with the page's time stamps, is true."""
        for cpu, pages in self._pages.items():
            begins = [formats.stamp(page) for page in pages]
            spans = zip(pages, begins, [*begins[1:], _NEVER], strict=True)
            self._pages[cpu] = [page for page, begin, end in spans if wanted(begin, end)]
        self._taken = sum(len(page) for pages in self._pages.values() for page in pages)

    @property
    def waiting(self) -> int:
        """The number of bytes that drain() has read and pages() has not returned yet."""
        return self._taken

    def pages(self, cpu: int) -> Iterator[bytes]:
        """Yield the trace of a CPU as raw pages, and remove them from the buffer."""
        drained = self._pages.pop(cpu, [])
        self._taken -= sum(len(page) for page in drained)
        yield from drained
        yield from self._new_pages(cpu)

    def records(self, cpu: int) -> Iterator[tuple[int, EventType, int, Values]]:
        """Yield the requested events of a CPU: time stamp, type, PID, and the fields of the type."""
        for page in self.pages(cpu):
            for stamp, start, _length in formats.records(page):
                if known := self.kinds.get(_NUMBER.unpack_from(page, start)[0]):
                    kind, decoder = known
                    pid, *values = decoder.take(page, start)
                    yield stamp, kind, pid if isinstance(pid, int) else 0, tuple(values)

    def _new_pages(self, cpu: int) -> Iterator[bytes]:
        for page in self.host.pages(f"{self.path}/per_cpu/cpu{cpu}/trace_pipe_raw"):
            yield page[: formats.used(page)]  # the rest of the page is empty

    def forget(self, cpus: CpuSet | None = None) -> None:
        """Discard the trace of these CPUs (None: all) and the counts of lost events so far."""
        for cpu in self.cpus if cpus is None else cpus:
            for _page in self.pages(cpu):
                pass
            self._forgotten[cpu] = self._dropped(cpu)

    def lost(self, cpu: int) -> int:
        """The number of events that did not fit into the buffer of a CPU since forget()."""
        return self._dropped(cpu) - self._forgotten.get(cpu, 0)

    def _dropped(self, cpu: int) -> int:
        text = self.host.text(f"{self.path}/per_cpu/cpu{cpu}/stats") or ""
        counts = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        return int(counts.get("overrun", 0)) + int(counts.get("dropped events", 0))

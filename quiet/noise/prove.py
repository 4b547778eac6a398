"""Prove that firmware or hardware takes CPU time: the kernel's hwlat tracer detects gaps while interrupts are off.

Source: Documentation/trace/hwlat_detector.rst, kernel/trace/trace_hwlat.c. Gaps in the tracer's loop cannot come from
interrupts, tasks or exceptions of a program; they come from firmware, hardware, a hypervisor, or NMIs, which the tracer
counts. The tracer's options are global: they are recorded, set, and restored afterwards. If the proof is killed, the
next proof or `quiet restore` restores them. Only one such tracer runs at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from quiet.cpulist import CpuSet
from quiet.errors import Refused
from quiet.host import FOLDER
from quiet.host.host import Host
from quiet.host.lock import make_folders
from quiet.host.proc import start_time
from quiet.noise import tracefs
from quiet.noise.budgets import Nanoseconds
from quiet.noise.smi import SmiCounter
from quiet.targets import value_types

TRACER = "hwlat"
WINDOW_US, WIDTH_US = 100_000, 50_000  # in each window, interrupts are off once, for the width
THRESHOLD_US = 1
NO_TRACER = (
    "this kernel has no hwlat tracer; boot a kernel with CONFIG_HWLAT_TRACER (the kernel module of cbench is no "
    "substitute, because it does not detect gaps)"
)
NO_CPUS = "the hwlat tracer of this kernel cannot stay on a CPU; boot Linux 5.14 or newer"
_MODE = "hwlat_detector/mode"
_NAMES = ("tracing_thresh", _MODE, "hwlat_detector/window", "hwlat_detector/width")
_RECORD = f"{FOLDER}/hwlat.json"
"""The file that records the process that changed the options, and their earlier values."""
_EVENT = re.compile(
    r"#\d+ +inner/outer\(us\): +(\d+)/(\d+) +ts:[\d.]+(?: count:(\d+))?(?: nmi-total:\d+ nmi-count:(\d+))?"
)


@dataclass(frozen=True, slots=True)
class CpuProof:
    """The result for one CPU with interrupts off.

    `gaps`: the number of gaps of Proof.threshold_ns or more; `max_ns`: the longest gap; `nmis`: the number of NMIs in
    the gaps; `smis`: the number of SMIs during the proof (None: unknown).
    """

    gaps: int
    max_ns: Nanoseconds
    nmis: int
    smis: int | None


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of the proof.

    `off_s`: the time with interrupts off per CPU; `why`: the reason why nothing was proved, "" if there is a result.
    """

    seconds: float
    off_s: float
    threshold_ns: Nanoseconds
    cpus: Mapping[int, CpuProof]
    why: str = ""


def check(host: Host) -> str:
    """The reason why this host cannot run the hwlat tracer; "" if it can.

    Raises Refused if a tracer is in use, or if the options that a killed proof changed cannot be restored.
    """
    try:
        mount = tracefs.mount(host)
        tracefs.check(host)
    except tracefs.NoTraceError as error:
        return str(error)
    tracefs.remove_left_over(host)
    if left := recover(host):
        raise Refused(f"--prove: {left}")
    why = _obstacle(host, mount)
    if not why:
        _check_idle(host, mount)
    return why


def prove(host: Host, cpus: CpuSet, seconds: float, wait: Callable[[float], None] = time.sleep) -> Proof:
    """Run the tracer on these CPUs for `seconds`.

    An error becomes the `why` of the result and is not raised, because the rest of the report is already measured.
    """
    try:
        why = check(host)
        return Proof(seconds, 0.0, Nanoseconds(0), {}, why) if why else _run(host, cpus, seconds, wait)
    except (Refused, tracefs.NoTraceError, OSError) as error:
        return Proof(seconds, 0.0, Nanoseconds(0), {}, str(error))


def _run(host: Host, cpus: CpuSet, seconds: float, wait: Callable[[float], None]) -> Proof:
    mount = tracefs.mount(host)
    with (
        SmiCounter(host, cpus) as smis,
        _options(host, mount),
        tracefs.Instance(host, cpus, (), 64, "prove") as trace,
    ):
        before = smis.read()
        with _selected(host, trace):
            trace.on()
            wait(seconds)
            trace.off()
            texts = {cpu: host.text(f"{trace.path}/per_cpu/cpu{cpu}/trace") or "" for cpu in cpus}
        after = smis.read()
    smi = {cpu: after[cpu] - before[cpu] for cpu in cpus if cpu in before and cpu in after}
    found = {cpu: parse(texts[cpu], smi.get(cpu)) for cpu in sorted(cpus)}
    return Proof(seconds, seconds * WIDTH_US / WINDOW_US, Nanoseconds(THRESHOLD_US * 1000), found)


def parse(text: str, smis: int | None) -> CpuProof:
    """Parse the trace of a CPU.

    Each window with gaps has a line with the longest gap within and between iterations of the tracer's loop.
    """
    rows = [tuple(int(number or 0) for number in match.groups()) for match in _EVENT.finditer(text)]
    gaps = sum(max(count, 1) for _, _, count, _ in rows)
    longest = max((max(inner, outer) for inner, outer, _, _ in rows), default=0)
    return CpuProof(gaps, Nanoseconds(1000 * longest), sum(nmis for *_, nmis in rows), smis)


def _obstacle(host: Host, mount: str) -> str:
    if TRACER not in (host.text(f"{mount}/available_tracers") or "").split():
        return NO_TRACER
    return "" if "per-cpu" in (host.text(f"{mount}/hwlat_detector/mode") or "") else NO_CPUS


def _check_idle(host: Host, mount: str) -> None:
    """Raise Refused if a tracer is in use, because its options would change while it runs."""
    instances = [f"{mount}/instances/{name}" for name in host.names(f"{mount}/instances")]
    for folder in (mount, *instances):
        tracer = host.text(f"{folder}/current_tracer") or "nop"
        if tracer != "nop":
            place = f"{folder}/current_tracer"
            raise Refused(f"the tracer '{tracer}' is in use: end its program, or as root run `echo nop > {place}`")


@contextlib.contextmanager
def _options(host: Host, mount: str) -> Iterator[None]:
    """Set the tracer's options, which are global, and restore them afterwards."""
    before = _current(host, mount)
    wanted = dict(zip(_NAMES, (str(THRESHOLD_US), "per-cpu", str(WINDOW_US), str(WIDTH_US)), strict=True))
    pid = os.getpid()
    make_folders(host, FOLDER)
    host.create(_RECORD, json.dumps([str(pid), start_time(host, pid), before]))
    try:
        _write(host, mount, before, wanted)
        yield
    finally:
        _write(host, mount, wanted, before)
        host.unlink(_RECORD)


def recover(host: Host) -> str:
    """Remove the trace instance that a killed proof left, and restore the options that it changed.

    Returns the reason why this failed, or "".
    """
    text = host.text(_RECORD)
    if text is None:
        return ""
    record = _read(text)
    if record is None:
        return f"{_RECORD} is damaged: remove it"
    pid, started, before = record
    if start_time(host, pid) == started:
        return ""
    tracefs.remove_left_over(host)
    try:
        mount = tracefs.mount(host)
        if _obstacle(host, mount) == "":  # otherwise another kernel was booted, without these options
            _check_idle(host, mount)
            _write(host, mount, _current(host, mount), before)
        host.unlink(_RECORD)
    except PermissionError:
        return f"only root can restore the tracer's options in {_RECORD}"
    except (tracefs.NoTraceError, Refused, OSError) as error:
        return f"the tracer's options in {_RECORD} are not restored: {error}"
    return ""


def _read(text: str) -> tuple[str, str, dict[str, str]] | None:
    """The process ID and the start time of the proof, and the options before it; None if the record is damaged."""
    try:
        pid, started, before = json.loads(text)
        numbers = [before[name] for name in _NAMES if name != _MODE]
        sound = len(before) == len(_NAMES) and all(each.isdecimal() for each in numbers)
        return (pid, started, before) if sound and isinstance(pid, str) and isinstance(before[_MODE], str) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _current(host: Host, mount: str) -> dict[str, str]:
    return {name: value_types.plain(value_types.CHOICE, host.text(f"{mount}/{name}") or "") for name in _NAMES}


def _write(host: Host, mount: str, now: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Write the options that differ.

    The width must not exceed the window, so a smaller width is written before the window, and a larger one after it.
    """
    shrinks = int(wanted["hwlat_detector/width"]) < int(now["hwlat_detector/width"])
    for name in reversed(list(wanted)) if shrinks else wanted:
        if wanted[name] != now[name]:
            host.write(f"{mount}/{name}", wanted[name])


@contextlib.contextmanager
def _selected(host: Host, trace: tracefs.Instance) -> Iterator[None]:
    try:
        host.write(f"{trace.path}/current_tracer", TRACER)
    except OSError as error:
        raise Refused(f"--prove: the kernel does not start its hwlat tracer: {error.strerror}") from None
    try:
        yield
    finally:
        host.write(f"{trace.path}/current_tracer", "nop")

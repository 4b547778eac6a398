"""A kernel in files whose traces have what a test writes into them, and the decoder's result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from quiet.noise import decode, events
from quiet.noise.call_nesting import TraceEvent
from quiet.noise.decode import Symbols, comms
from quiet.noise.names import Sent
from quiet.noise.tracefs import Instance
from tests.quiet.noise.tracing import MOUNT, Traced, Tracefs, pages, traced
from tests.trees import plant

HERE, DETECTOR, WORKER, BASH = 1, 10, 20, 12
CPUS = frozenset({0, HERE})
FUNCTIONS = {
    name: 0xFFFFFFFF81000000 + 16 * number
    for number, name in enumerate(
        (
            *("tick_nohz_handler", "vmstat_update", "ipi_mb", "sched_ttwu_pending", "remote_function"),
            *("perf_event_nmi_handler", "process_timeout", "rcu_barrier_handler", decode.SINGLE),
        )
    )
}
CALLBACK = FUNCTIONS[decode.SINGLE]  # only the sending of a function call has one
REASON = 0xFFFFFFFF82000040
SYMBOLS = "\n".join(f"{address:016x} T {name}" for name, address in FUNCTIONS.items())
FILES = {
    "proc/kallsyms": f"{SYMBOLS}\nffffffffc0000100 t e1000_watchdog\t[e1000]",
    f"{MOUNT}/printk_formats": f'{REASON:#x} : "Function call interrupts"\n0xffffffff82000080 : "a \\"b\\" c"',
    f"{MOUNT}/saved_cmdlines": "31 tmux: server\n12 not this\n77 <...>",
    f"{MOUNT}/instances/": "",
    f"proc/{WORKER}/comm": "kworker/1:1-mm_percpu_wq",
    f"proc/{BASH}/comm": "bash",
    "proc/41/comm": "Web Content",
}


class Kernel(NamedTuple):
    """A kernel, and the two traces of a measurement: on the tested CPU, and of those who send to it."""

    host: Tracefs
    mine: Instance
    theirs: Instance
    symbol: Symbols


@contextmanager
def kernel_with(root: Path, known: frozenset[str]) -> Iterator[Kernel]:
    """One that has these events."""
    vectors = {f"{MOUNT}/events/{name}/": "" for name in known if name.startswith("irq_vectors/")}
    host = Tracefs(str(plant(root, {**FILES, **vectors})))
    host.events, host.cpus = known, 2
    kinds = [*events.ON_THE_CPU, *events.vectors(host.names(f"/{MOUNT}/events/irq_vectors"))]
    with (
        Instance(host, frozenset({HERE}), kinds, 64, "cpus") as mine,
        Instance(host, CPUS, decode.SENDING, 64, "senders") as theirs,
    ):
        yield Kernel(host, mine, theirs, Symbols(host, mine.mount))


def put(trace: Instance, cpu: int, items: Sequence[Traced], each: int = 20) -> None:
    Path(f"{trace.host.root}{trace.path}/per_cpu/cpu{cpu}/trace_pipe_raw").write_bytes(pages(items, each))


def decoded(kernel: Kernel, *items: Traced, per_ns: int = 1, each: int = 20) -> list[TraceEvent]:
    put(kernel.mine, HERE, items, each)
    return decode.events(kernel.mine, HERE, kernel.symbol, int, lambda ns: round(ns * per_ns))


def senders(kernel: Kernel, *items: Traced, cpus: frozenset[int] = frozenset({HERE})) -> list[Sent]:
    comm = comms(kernel.host, f"/{MOUNT}")
    put(kernel.theirs, 0, items)
    return decode.sent(kernel.theirs, cpus, int, lambda pid: f"{comm(pid)} ({pid})", kernel.symbol)


def vector(name: str, begin: int, end: int) -> tuple[Traced, Traced]:
    return traced(begin, f"irq_vectors/{name}_entry", vector=251), traced(end, f"irq_vectors/{name}_exit", vector=251)


def call(name: str, begin: int, end: int) -> tuple[Traced, Traced]:
    func = FUNCTIONS[name]
    return traced(begin, "csd/csd_function_entry", func=func, csd=7), traced(
        end, "csd/csd_function_exit", func=func, csd=7
    )


def nested(outer: tuple[Traced, Traced], *inner: Traced) -> list[Traced]:
    return [outer[0], *inner, outer[1]]

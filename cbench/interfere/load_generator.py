"""Generate a load on another CPU: a process that runs a built-in workload in a loop.

The process is pinned, ends with its parent, and is started and stopped by handshake, so that it runs during the whole
measurement. Run as `python -m cbench.interfere.load_generator`, by cbench.measure.runner.Worker.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cbench.measure.protocol import GO, Channel, serve
from cbench.measure.runner import Worker
from cbench.workloads import registry
from quiet import QuietError, UsageError, place

CALL_S = 0.001
"""The target duration, in seconds, of one call of the workload. A stop waits for the end of the current call."""

PATIENCE_S = 60.0
Run = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Spec:
    """A load: a built-in workload on one CPU."""

    workload: str
    cpu: int
    params: Mapping[str, int]


@dataclass(slots=True)
class Figures:
    """The figures that a load reports: calls, running time (s), and CPU time (s); None while it runs."""

    calls: int | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None

    @property
    def busy_pct(self) -> float | None:
        return 100 * self.cpu_seconds / self.seconds if self.cpu_seconds is not None and self.seconds else None


def rounds(run: Run) -> int:
    """The number of rounds that take about CALL_S, determined by doubling."""
    n = 1
    while True:
        took = min(
            _seconds(run, n) for _ in range(3)
        )  # the minimum, so that an interruption does not look like a long call
        if took >= CALL_S / 2 or n >= 2**40:
            return max(round(n * CALL_S / max(took, 1e-9)), 1)
        n *= 2


def _seconds(run: Run, n: int) -> float:
    begun = time.monotonic()
    run(n)
    return time.monotonic() - begun


def load(channel: Channel) -> None:
    """The main function of the process: prepare, wait for the parent, run until the stop message, and report the
    figures.
    """
    from cbench.workloads.loader import builtin

    spec = Spec(*channel.receive())
    place(spec.cpu)  # bind first, so that memory comes from this CPU's own node
    loaded = builtin(registry.find(spec.workload).function, spec.params)

    def run(n: int) -> int:
        return int(loaded.run(loaded.state, n))

    n = rounds(run)
    channel.ask("ready")
    poll = select.poll()
    poll.register(channel.incoming, select.POLLIN | select.POLLHUP)
    calls, begun, used = 0, time.monotonic(), time.process_time()
    while not poll.poll(0):
        run(n)
        calls += 1
        if calls == 1:
            channel.send("running")
    channel.send((calls, time.monotonic() - begun, time.process_time() - used))


@contextlib.contextmanager
def running(spec: Spec, measured: int) -> Iterator[Figures]:
    """A context in which the load runs, never on the `measured` CPU; any error kills it. Its figures are set at the
    end.

    Raises Refused if the load's CPU may not be used, UsageError for an invalid spec, QuietError if the load ended early
    or did not answer in time.
    """
    if spec.cpu == measured:
        raise UsageError(f"a load on CPU {spec.cpu} would run on the measured CPU; choose another CPU")
    figures = Figures()
    name = f"the load {spec.workload} on CPU {spec.cpu}"
    worker = Worker("cbench.interfere.load_generator")

    def answer(message: object, wanted: str) -> Any:
        worker.send(message)
        try:
            received = worker.receive(PATIENCE_S, name)
        except TimeoutError:
            raise QuietError(f"{name}: not {wanted} within {PATIENCE_S:g} s; the load was killed") from None
        if received is None:
            raise QuietError(f"{name}: ended early ({worker.ended(patience=1)}), before it was {wanted}")
        return received

    try:
        answer((spec.workload, spec.cpu, dict(spec.params)), "ready")
        answer(GO, "running")
        yield figures
        figures.calls, figures.seconds, figures.cpu_seconds = answer("stop", "stopped")
    finally:
        worker.close()


if __name__ == "__main__":
    serve(load)

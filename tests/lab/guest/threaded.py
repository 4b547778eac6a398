"""The detector as a thread of this process and not as a separate process: changes to its memory reach it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence

from quiet.noise._noise import ffi, lib
from quiet.noise.calibration import calibrate, periods
from quiet.noise.chains import Chain
from quiet.noise.detector import Detector, DetectorRequest, Placed


class Threaded(Detector):
    """Measures and answers as Detector does."""

    def __init__(self, cpu: int, asked: DetectorRequest) -> None:
        self.cpu, self.asked, self._name = cpu, asked, f"the detector on CPU {cpu}"
        made = ffi.new("qn_watch **")
        if lib.qn_watch_create(asked.capacity, made):
            raise MemoryError
        self.state = made[0]
        self.state.duration, self.state.look = asked.duration, asked.look
        self._in_place, self._wanted = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        os.sched_setaffinity(0, {self.cpu})
        self.pid = threading.get_native_id()
        period, step = calibrate(periods())
        self.state.threshold = self.asked.threshold or 3 * round(period)
        self._placed = Placed(period, step, self.state.threshold, ())
        self._in_place.set()
        self._wanted.wait()
        lib.qn_watch_run(self.state)

    def placed(self) -> None:
        self._in_place.wait()

    def fault(self) -> int:
        return 0

    def chain_facts(self) -> None:
        return None

    def chains(self) -> list[Chain]:
        return []

    def chains_after(self) -> list[Chain]:
        return []

    def ready(self) -> None:
        self._wanted.set()
        while not self.state.ready:
            pass

    def running(self) -> bool:
        return not self.state.done

    def close(self) -> None:
        self.state.stop = self.state.go = self.state.leave = 1
        self._wanted.set()
        self._thread.join()
        lib.qn_watch_destroy(self.state)


@contextlib.contextmanager
def threads(cpus: Sequence[int], asked: DetectorRequest) -> Iterator[list[Detector]]:
    made: list[Detector] = [Threaded(cpu, asked) for cpu in cpus]
    try:
        for each in made:
            each.placed()
        yield made
    finally:
        for each in made:
            each.close()

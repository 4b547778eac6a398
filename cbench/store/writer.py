"""Between the runner and the store: each process's trials are written chunk by chunk while it still measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from cbench.measure import protocol
from cbench.model import Ready, Session, Settling, Trial, Workload
from cbench.store.store import Store


class Keeping:
    """A runner.Keeper that writes one process's trials to an open store."""

    def __init__(self, store: Store, workload: Workload, cpu: int, process: int, job: protocol.Job) -> None:
        self._store = store
        self._facts = {
            "workload": workload.name,
            "params": dict(job.params),
            "cpu": cpu,
            "process": process,
            "layout": asdict(job.layout),
        }
        self._series: int | None = None

    def begin(self, ready: Ready, settling: Settling) -> None:
        self._series = self._store.begin({**self._facts, **asdict(ready), "settling": asdict(settling)})

    def add(self, trials: Sequence[Trial]) -> None:
        assert self._series is not None
        self._store.add(self._series, trials)

    def finish(self, session: Session) -> None:
        assert self._series is not None
        self._store.finish(
            self._series,
            {
                "counter": asdict(session.counter),
                "settling": asdict(session.settling),
                "stolen_ms": session.stolen_ms,
                "causes": asdict(session.causes),
                "locked": session.locked,
                "addresses": session.addresses,
                "pages": session.pages,
            },
        )

"""Read a store of `cbench run`; refuse one of a study or a screening experiment, which have commands of their own."""

from __future__ import annotations

from pathlib import Path

from cbench.compare.readers.reader import ResultReader, TestSample
from cbench.store.database import reading
from cbench.store.groups import Group, grouped
from cbench.store.kind import is_store
from cbench.store.store import Store
from cbench.study.store import study_kind
from quiet import UsageError

STUDIES = {
    "order": "the store of a study: `cbench order analyze {path}` compares its orders",
    "screen": "the store of a screening experiment: `cbench screen analyze {path}` compares its treatments",
}
"""By kind of study: what compares what is in its store."""


class StoreReader(ResultReader):
    """A file of `cbench run --output`."""

    name = "a store of cbench"

    def matches(self, path: Path) -> bool:
        return is_store(path)

    def read(self, path: Path) -> tuple[TestSample, ...]:
        with Store.open(path) as store, reading(path):
            groups = [_of_group(group) for group in grouped(store.series())]
        if groups:
            return tuple(groups)
        kind = study_kind(path)
        raise UsageError(f"{path}: {STUDIES.get(kind or '', 'no trials in it').format(path=path)}")


def _of_group(group: Group) -> TestSample:
    host = group.series[0].run.host
    return TestSample(
        name=group.name,
        test=group.test,
        workload=group.series[0].workload,
        unit=group.unit,
        quantum=max(series.quantum for series in group.series),
        cpu=group.cpu,
        host=str(host.get("cpu") or ""),
        processes=tuple(tuple(series.values) for series in group.series),
        clean=tuple(tuple(each.value for each in series.trials if not each.polluted) for series in group.series),
        cut_short=sum(series.ended_ns is None for series in group.series),
        counter=group.counter,
        method=" or ".join(sorted({str(series.counter.get("method") or "") for series in group.series} - {""})),
    )

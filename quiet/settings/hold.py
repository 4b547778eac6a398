"""Hold a few values without a profile, with the journal, writes and restore of `quiet apply`.

    with hold_settings({f"file:{path}": "powersave"}, knob="cpufreq.governor", source="my script 1") as held:
        ...
        held.set({f"file:{path}": "performance"})

`begin_hold` and `end_hold` are the two halves, for work that another process resumes. `source` is a unique name for the
holder of the values: only the same source may add values or end the hold. After a kill, `end_hold` with the same source
or `quiet restore` restores every value.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping

from quiet.errors import Incomplete, Refused, UsageError
from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.host.reader import Reader
from quiet.knobs.registry import BY_NAME
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.settings import engine, journal
from quiet.settings.applied_state import AppliedState, TargetState
from quiet.settings.engine import Write
from quiet.settings.journal_writer import opened, unchanged
from quiet.settings.restore import drifts, restore
from quiet.targets import registry, value_types

_PATIENCE_S = 60  # time to wait for another quiet process, in seconds
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class HeldSettings:
    """The values that a hold keeps; `set` changes them."""

    def __init__(self, host: Host, knob: str, source: str, title: str, kind: str) -> None:
        self._arguments = (host, knob, source, title, kind)

    def set(self, values: Mapping[str, str]) -> None:
        """Change values of the hold, or add some. Raises the same errors as `begin_hold`."""
        host, knob, source, title, kind = self._arguments
        begin_hold(host, values, knob=knob, source=source, title=title, kind=kind)


@contextlib.contextmanager
def hold_settings(
    values: Mapping[str, str],
    *,
    knob: str,
    source: str,
    title: str = "",
    kind: str = "",
    entangled: Iterable[str] = (),
    host: Host | None = None,
) -> Iterator[HeldSettings]:
    """Hold values inside the block and restore them at its end; the arguments are those of `begin_hold`.

    Raises Refused if a profile or another hold is applied, or if the kernel rejects a value; Incomplete if a value
    could not be restored.
    """
    host = host or Host()
    try:
        begin_hold(host, values, knob=knob, source=source, title=title, kind=kind, entangled=entangled)
        yield HeldSettings(host, knob, source, title, kind)
    finally:
        end_hold(host, source)


def begin_hold(
    host: Host,
    values: Mapping[str, str],
    *,
    knob: str,
    source: str,
    title: str = "",
    kind: str = "",
    entangled: Iterable[str] = (),
) -> None:
    """Write values by target (`file:/proc/sys/...`) in this order, and record each in the journal first.

    `knob`: the knob that the targets belong to, which determines when they are restored; `title`: the name of the hold
    in `quiet status` (default: the source); `kind`: the comparison of values (default: the knob's); `entangled`:
    targets that the kernel may change as a side effect, which are restored too. A hold with the same `source` is
    extended. Raises UsageError for an unknown knob, Refused if anything else is applied or the kernel rejects a value
    (the other values are written, and stay until `end_hold`), Incomplete if the journal can no longer be written.
    """
    if knob not in BY_NAME:
        raise UsageError(f"unknown knob '{knob}'; `quiet explain` lists the knobs")
    kind = kind or BY_NAME[knob].kind
    with locked(host, _PATIENCE_S):
        record = journal.load(host)
        if record is not None and record.source != source:
            raise Refused(f"'{record.profile}' is applied to this host; run `quiet restore` first")
        if record is not None and record.restoring:
            raise Refused("a restore is incomplete; run `quiet restore` first")
        with opened(host) as log:
            with unchanged(log, started=record is None):
                if record is None:
                    cpus = CpuPartition(frozenset(), Facts(host).online, frozenset(), source)
                    log.begin(host, title or source, source, cpus, passing=True)
                new = list(_new(host, record, knob, kind, values, entangled))
                log.reserve(new, list(values.items()), record.entries if record else ())
            log.before(new)
            failures = engine.settle(
                host,
                [Write(target, value, kind) for target, value in values.items()],
                lambda write: log.intent(write.target, write.wanted or ""),
                lambda write, now: log.done(write.target, now),
            )
            record = journal.load(host)
            assert record is not None
            log.settled({target: registry.get(host, target) for target in record.entries})
    for failure in failures:
        target, wanted = failure.write.target.removeprefix("file:"), failure.write.wanted
        raise Refused(f"{target}: the kernel rejected '{wanted}': {failure.text}")


def _new(
    host: Host,
    record: AppliedState | None,
    knob: str,
    kind: str,
    values: Mapping[str, str],
    entangled: Iterable[str],
) -> Iterator[TargetState]:
    for target in dict.fromkeys([*values, *entangled]):
        if record is None or target not in record.entries:
            before, identity = registry.get(host, target), registry.identity(host, target)
            yield TargetState(knob, target, kind, before, identity, target not in values)


def end_hold(host: Host, source: str) -> None:
    """Restore the settings that were applied under this source; do nothing if there are none.

    In the main thread, ignores SIGINT, SIGTERM and SIGHUP while it restores. Raises Incomplete, which names the first
    value that could not be restored, and Refused if the source in the journal is damaged.
    """
    record = journal.read(host)
    if record is not None and not record.source:
        journal.load(host)  # raises Refused if the damaged journal does not name its owner
    if record is None or record.source != source:
        return
    with _undisturbed():
        outcome = restore(host, patience=_PATIENCE_S)
    for left in outcome.left:
        raise Incomplete(f"not restored: {left.target}: {left.reason}; run `quiet restore`")


def overwritten(reader: Reader, record: AppliedState) -> Iterator[tuple[TargetState, str | None]]:
    """Yield the written targets whose value another program has changed since the write, with the current value."""
    for entry in record.entries.values():
        if entry.wanted is None or drifts(entry):
            continue
        now = registry.get(reader, entry.target)
        ours = (entry.wanted, entry.after, record.settled.get(entry.target))
        ended = now is None and registry.ends(entry.target)
        if not ended and not any(value_types.same(entry.kind, now, value) for value in ours):
            yield entry, now


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

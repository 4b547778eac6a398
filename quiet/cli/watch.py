"""Run `quiet watch`: print events as lines, the history, or the systemd unit, and return the exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from quiet.console import check_savable, emit
from quiet.errors import QuietError, Refused, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from quiet.cpulist import CpuSet
    from quiet.host.host import Host
    from quiet.watch.events import WatchEvent
    from quiet.watch.history_summary import History
    from quiet.watch.monitor import Monitor

_SHORTEST_S = 1.0
_LONGEST_S = 1e6  # eleven days; poll(2) takes at most 2^31 ms


class WatchRequest(NamedTuple):
    """The options of `quiet watch`.

    Times are in seconds. `duration`: None for no end; `cpus`: the CPUs to watch instead of a profile's; `store`: the
    directory of the history, None for /var/lib/quiet on a live host.
    """

    repair: bool = False
    rescan: float = 60.0
    interval: float = 10.0
    duration: float | None = None
    cpus: str | None = None
    store: str | None = None
    textfile: str | None = None
    root: str = "/"
    as_json: bool = False


def chosen(request: WatchRequest, history: bool, since: str | None, cpu: int | None, unit: bool) -> int:
    """Watch, report the history, or print the unit. Returns the exit code.

    Raises UsageError if the options conflict.
    """
    if history and unit:
        raise UsageError("--history and --unit contradict each other; give one of them")
    if history:
        _refuse_others(request, "--history", ("store", "as_json"))
        return _history(since, cpu, request.store, request.as_json)
    if since is not None or cpu is not None:
        raise UsageError(
            "--since needs --history" if since is not None else "--cpu needs --history; to watch some CPUs, use --cpus"
        )
    return _unit(request) if unit else watch(request)


def _refuse_others(request: WatchRequest, option: str, taken: Collection[str]) -> None:
    """Raise UsageError if an option outside `taken` is given, because it has no effect together with `option`."""
    for name, default in WatchRequest()._asdict().items():
        if name not in taken and getattr(request, name) != default:
            other = "--json" if name == "as_json" else f"--{name}"
            raise UsageError(f"{other} has no effect with {option}: omit it")


def watch(request: WatchRequest) -> int:
    """Report interruptions of isolated CPUs and drift from the applied profile; repair drift if requested.

    Returns 1 if drift was not repaired.
    """
    _check(request)
    if request.textfile is not None:
        check_savable(request.textfile, "--textfile")
    import json

    from quiet.cli import json_output, text_host
    from quiet.host.host import Host
    from quiet.host.lock import locked
    from quiet.machine.affinity import forgo_huge_pages
    from quiet.watch import events
    from quiet.watch.monitor import watch_alone
    from quiet.watch.watcher import Watcher, WatchOptions

    host = Host(request.root)
    if request.repair:
        try:
            with locked(host, 5):
                pass
        except Refused as error:
            raise Refused(f"--repair: {error}") from None
    if host.live:
        forgo_huge_pages()
    width = max(map(len, events.NAMES))

    def report(event: WatchEvent) -> None:
        if request.as_json:
            emit(json.dumps(json_output.watch_event(event), separators=(",", ":")) + "\n")
        else:
            emit(text_host.watch_event(event, width) + "\n")
        sys.stdout.flush()

    if request.cpus is not None:
        cpus = _keep_off(host, request.cpus)
        monitor = _monitor(host, request, report)
        if isinstance(monitor, QuietError):
            raise monitor
        watch_alone(monitor, cpus, request.duration, report)
        return 0
    options = WatchOptions(request.repair, request.rescan, request.duration)
    watcher = Watcher(host, options, report)
    monitor = _monitor(host, request, report)
    if isinstance(monitor, QuietError):
        watcher.limit = str(monitor)
    else:
        watcher.monitor = monitor
    return watcher.run()


def _check(request: WatchRequest) -> None:
    for option, seconds in (("--rescan", request.rescan), ("--interval", request.interval)):
        if not _SHORTEST_S <= seconds <= _LONGEST_S:  # also rejects NaN
            raise UsageError(f"{option} {seconds:g}: must be between {_SHORTEST_S:g} and {_LONGEST_S:,.0f} s")
    if request.duration is not None and not 0 < request.duration < float("inf"):
        raise UsageError(
            f"--duration {request.duration:g}: must be a number of seconds above 0, such as 60; without --duration, "
            "the watch never ends"
        )
    if request.cpus is not None and not request.cpus.strip():
        raise UsageError("--cpus: no CPU given; write a list such as 2-3,8")
    if request.cpus is not None and request.repair:
        raise UsageError(
            "--cpus watches CPUs without a profile, so --repair has nothing to repair; use only one of them"
        )


def _keep_off(host: Host, requested: str) -> CpuSet:
    """The CPUs of --cpus, after this process has moved off them. Raises UsageError, or Refused if it cannot move."""
    from quiet import cpulist
    from quiet.machine.cpu_selection import parse_requested
    from quiet.machine.facts import Facts

    facts, cpus = Facts(host), parse_requested(requested, "--cpus")
    online = f"online CPUs: {cpulist.format(facts.online)}"
    if cpus - facts.online:
        raise UsageError(f"--cpus {requested}: list only online CPUs; {online}")
    others = facts.online - cpus
    if not others:
        raise UsageError(f"--cpus {requested}: leave one CPU for the watch itself; {online}")
    if host.live:
        try:
            host.set_affinity(0, cpulist.format(others - facts.boot_isolated - facts.nohz_full or others))
        except OSError as error:
            raise Refused(f"--cpus {requested}: this process cannot leave these CPUs: {error.strerror}") from None
    return cpus


def _monitor(host: Host, request: WatchRequest, report: Callable[[WatchEvent], None]) -> Monitor | QuietError:
    """Start counting interruptions, with a history if possible; if counting fails, return the error instead.

    Raises Refused if --store cannot be used.
    """
    from quiet.host.lock import HOME
    from quiet.host.reader import Reader
    from quiet.watch import events
    from quiet.watch.events import WatchEvent
    from quiet.watch.history import HistoryWriter
    from quiet.watch.monitor import Monitor
    from quiet.watch.textfile import Textfile

    textfile = Textfile(request.textfile) if request.textfile is not None else None
    folder = request.store or (HOME if host.live else "")
    history = None
    try:
        history = HistoryWriter(Reader(), folder) if folder else None
    except Refused as error:
        if request.store is not None:
            raise Refused(f"--store {request.store}: {error}") from None
        report(WatchEvent(events.NOTE, text=f"{error}; use --store DIR to keep the history elsewhere"))
    try:
        return Monitor(host, request.interval, report, history, textfile)
    except QuietError as error:
        if history:
            history.close()
        return error


def _history(since: str | None, cpu: int | None, store: str | None, as_json: bool) -> int:
    """Print the recorded history as a table by cause."""
    from quiet.cli import json_output, text
    from quiet.host.lock import HOME
    from quiet.host.reader import Reader
    from quiet.watch import history_summary

    begin = history_summary.since(since) if since is not None else None
    if cpu is not None and cpu < 0:
        raise UsageError(f"--cpu {cpu}: must be the number of a CPU, such as 3")
    found = history_summary.summarize(Reader(), store or HOME, begin, cpu)
    text.show(found, as_json, json_output.to_object, _show_history)
    return 0


def _show_history(found: History) -> None:
    from quiet import cpulist
    from quiet.cli.text import columns, counted, note, out

    which = f"CPU {found.cpu}" if found.cpu is not None else f"CPUs {cpulist.format(found.watched_cpus) or '-'}"
    since = f" since {_minute(found.since)}" if found.since is not None else ""
    hours, minutes = divmod(round(found.watched_s / 60), 60)
    watched = f"{hours} h {minutes} min" if hours else f"{found.watched_s} s" if not minutes else f"{minutes} min"
    if not found.watched_s and not found.causes:
        out(f"nothing is recorded for {which}{since}: `quiet watch` records only while it runs")
    elif not found.causes:
        out(f"**no interruption** of {which}{since}, watched for {watched}")
    else:
        total = counted(sum(row.count for row in found.causes), "interruption")
        out(f"**{total}** of {which}{since}, watched for {watched}:")
        rows = [("cause", "CPUs", "count", "first", "last", "busiest minute")]
        for row in found.causes:
            busiest = f"{_minute(row.busiest)} ({row.busiest_count})"
            times = (_minute(row.first), _minute(row.last), busiest)
            rows.append((row.cause, cpulist.format(row.cpus), str(row.count), *times))
        columns(rows)
    if found.expected:
        listed = ", ".join(f"{cause} {count}" for cause, count in found.expected.items())
        out(f"interruptions by the tick, expected without nohz_full: {listed}")
    if found.damaged:
        note(f"{counted(found.damaged, 'line')} of the history cannot be read")


def _minute(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _unit(request: WatchRequest) -> int:
    """Print the systemd unit that watches with these options."""
    _check(request)
    if request.repair:
        raise UsageError(
            "--unit: the unit has no permission to repair; run `quiet watch --repair` in a unit of your own"
        )
    _refuse_others(request, "--unit", ("cpus", "interval", "rescan", "textfile", "store"))
    from quiet import cpulist
    from quiet.cli.text import note
    from quiet.host.reader import Reader
    from quiet.machine import trusted_program
    from quiet.machine.cpu_selection import parse_requested
    from quiet.service import systemd_unit

    options = {
        "--interval": f"{request.interval:g}" if request.interval != WatchRequest().interval else None,
        "--rescan": f"{request.rescan:g}" if request.rescan != WatchRequest().rescan else None,
        "--cpus": cpulist.format(parse_requested(request.cpus, "--cpus")) if request.cpus is not None else None,
        "--textfile": request.textfile,
        "--store": request.store,
    }
    emit(systemd_unit.watch_text({name: value for name, value in options.items() if value is not None}))
    if untrusted := trusted_program.others(Reader()):
        path, who = untrusted
        note(
            f"the unit's program would run as root, and {who} can change {path}; install quiet for root (docs/boot.md)"
        )
    note(
        f"install it as {systemd_unit.FOLDER}/{systemd_unit.WATCH}, then `systemctl enable --now {systemd_unit.WATCH}`"
    )
    return 0

"""Report a command and its interruptions, for `quiet why` and `quiet run`.

The fields of CommandReport are keys of the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from quiet import cpulist
from quiet.noise.budgets import Nanoseconds, show
from quiet.noise.call_nesting import THREAD
from quiet.noise.frequency import Frequency
from quiet.noise.interruptions import TRACE, InterruptionCause, Interruptions

FEW = 12  # maximum number of causes shown; the JSON report lists all
_STAYING = 4  # maximum number of causes that the prediction names as staying


@dataclass(frozen=True, slots=True)
class CommandUsage:
    """The figures of wait4(2) for a command and the children that it waited for; `wall_s` is the measured wall time."""

    command: tuple[str, ...]
    exit_code: int
    wall_s: float
    cpu_s: float
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The count, total and maximum of all interruptions; None if unknown.

    `pct`: `total_ns` as a percentage of the wall time or the CPU time of the command, whichever time is longer.
    """

    count: int
    total_ns: Nanoseconds | None
    pct: float | None
    max_ns: Nanoseconds | None


@dataclass(frozen=True, slots=True)
class Remaining:
    """The prediction for `quiet run` with a profile: `count` interruptions remain, `gone` disappear.

    `total_ns`: the total time of the remaining ones, None if unknown.
    """

    profile: str
    count: int
    gone: int
    total_ns: Nanoseconds | None
    causes: tuple[str, ...]  # remaining causes, the most frequent first


@dataclass(frozen=True, slots=True)
class CommandReport:
    """The whole report.

    `remaining`: None if not predicted; `settings`: the number of restored settings, None without a restore.
    """

    command: tuple[str, ...]
    exit_code: int
    wall_s: float
    cpu_s: float
    cpus_used: tuple[int, ...]
    migrations: int | None
    switches: dict[str, int]
    page_faults: dict[str, int]
    interrupted: Interrupted
    causes: tuple[InterruptionCause, ...]
    frequency: Frequency
    throttled: dict[int, int]
    steal_ns: Nanoseconds | None
    remaining: Remaining | None
    method: str
    limits: tuple[str, ...]
    settings: int | None = None


def make(
    usage: CommandUsage,
    seen: Interruptions,
    remaining: Remaining | None = None,
    settings: int | None = None,
    limits: tuple[str, ...] = (),
) -> CommandReport:
    """Assemble the report. `limits`: limitations in addition to those of the observation."""
    longest_ns = max(usage.wall_s, usage.cpu_s) * 1e9
    pct = 100 * seen.total_ns / longest_ns if seen.total_ns is not None and longest_ns else None
    return CommandReport(
        command=usage.command,
        exit_code=usage.exit_code,
        wall_s=round(usage.wall_s, 6),
        cpu_s=round(usage.cpu_s, 6),
        cpus_used=seen.cpus_used,
        migrations=seen.migrations,
        switches={"voluntary": usage.voluntary_switches, "involuntary": usage.involuntary_switches},
        page_faults={"minor": usage.minor_faults, "major": usage.major_faults},
        interrupted=Interrupted(seen.count, seen.total_ns, pct, seen.max_ns),
        causes=seen.causes,
        frequency=seen.frequency,
        throttled=dict(seen.throttled),
        steal_ns=seen.steal_ns,
        remaining=remaining,
        method=seen.method,
        limits=(*seen.limits, *limits),
        settings=settings,
    )


def plural(number: int, noun: str) -> str:
    """A number with its noun: "1 setting", "2,000 settings"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def summary(report: CommandReport) -> str:
    """Summarize the report in one line: interruptions, their total length, CPU frequency, and restored settings."""
    parts = [_interrupted(report), frequency(report.frequency)]
    if report.settings is not None:
        parts.append(f"{plural(report.settings, 'setting')} restored")
    return "; ".join(parts)


def _interrupted(report: CommandReport) -> str:
    seen = report.interrupted
    if not seen.count and not seen.total_ns:
        return f"not interrupted in {_seconds(report.wall_s)}"
    about = "" if report.method == TRACE else "about "
    often = f"interrupted {about}{plural(seen.count, 'time')}"
    if seen.total_ns is None:
        return f"{often} in {_seconds(report.wall_s)}"
    whose = "" if report.method == TRACE else ", by other tasks for"
    whole = _seconds(report.wall_s) if report.wall_s >= report.cpu_s else f"{_seconds(report.cpu_s)} of CPU time"
    return f"{often}{whose or ','} {show(seen.total_ns)} of {whole} ({percent(seen.pct or 0.0)})"


def _seconds(value: float) -> str:
    return show(value * 1e9)


def percent(value: float) -> str:
    """Format a percentage: "0.0003 %", "12 %"."""
    if not value:
        return "0 %"
    return f"{value:.3g} %" if value >= 1 else f"{value:.2g} %" if value >= 0.0001 else "< 0.0001 %"


def frequency(measured: Frequency) -> str:
    """The frequency as text: "frequency 3.10 GHz ± 0", or "frequency unknown"; the JSON has the reason."""
    if measured.mean_hz is None or measured.min_hz is None or measured.max_hz is None:
        return "frequency unknown"
    spread = max(measured.max_hz - measured.mean_hz, measured.mean_hz - measured.min_hz) / 1e9
    return f"frequency {measured.mean_hz / 1e9:.2f} GHz ± {f'{spread:.2f}' if spread >= 0.005 else '0'}"


def lines(report: CommandReport) -> Iterator[str]:
    """Yield the lines after the summary: the causes with their remedies, steal time, throttling, and limitations."""
    yield from causes(report.causes, max(report.wall_s, report.cpu_s))
    if report.steal_ns:
        yield f"the hypervisor took the CPUs of the command for {show(report.steal_ns)} (steal time)"
    for cpu, times in report.throttled.items():
        if times:
            yield f"CPU {cpu} was throttled {plural(times, 'time')} because of heat or a power limit"
    yield from report.limits


def causes(rows: Sequence[InterruptionCause], seconds: float) -> Iterator[str]:
    """Yield a table of at most FEW causes, grouped by remedy; tasks with the same name are one row.

    `seconds`: the time that the shares are percentages of.
    """
    groups: dict[str, list[InterruptionCause]] = {}
    rows = _by_name(rows)
    for row in rows[:FEW]:
        groups.setdefault(row.remedy, []).append(row)
    table = [("cause", "count", "total", "longest", "share")]
    table += [_cells(row, seconds) for group in groups.values() for row in group]
    if len(table) == 1:
        return
    widths = [max(len(cells[i]) for cells in table) for i in range(5)]
    texts = iter("  ".join((c[0].ljust(widths[0]), *(c[i].rjust(widths[i]) for i in range(1, 5)))) for c in table)
    yield f"  {next(texts)}"
    for remedy, group in groups.items():
        for _ in group:
            yield f"  {next(texts)}"
        yield f"      -> {remedy}"
    if rest := rows[FEW:]:
        more = f"{plural(len(rest), 'more cause')}, {plural(sum(row.count for row in rest), 'time')}"
        yield f"  and {more}; the JSON report lists all"


def _by_name(rows: Sequence[InterruptionCause]) -> list[InterruptionCause]:
    """The causes, with all tasks of the same name merged."""
    named: dict[str, list[InterruptionCause]] = {}
    for row in rows:
        named.setdefault(row.cause.rpartition(" (")[0] if row.kind == THREAD else row.cause, []).append(row)
    merged = []
    for name, same in named.items():
        lengths = [row.total_ns for row in same if row.total_ns is not None]
        longest = [row.max_ns for row in same if row.max_ns is not None]
        merged.append(
            same[0]
            if len(same) == 1
            else replace(
                same[0],
                cause=f"{name} ({len(same)} tasks)",
                count=sum(row.count for row in same),
                total_ns=Nanoseconds(sum(lengths)) if lengths else None,
                max_ns=max(longest, default=None),
            )
        )
    return sorted(merged, key=lambda row: (-(row.total_ns or 0), -row.count))


def _cells(row: InterruptionCause, seconds: float) -> tuple[str, str, str, str, str]:
    total, longest = (show(ns) if ns is not None else "-" for ns in (row.total_ns, row.max_ns))
    share = percent(row.total_ns / seconds / 1e7) if row.total_ns is not None and seconds else "-"
    return row.cause, f"{row.count:,}", total, longest, share


def cpus(report: CommandReport) -> str:
    """The command's times, CPUs, migrations, switches and page faults, as one line for `quiet why`."""
    several = "s" if len(report.cpus_used) > 1 else ""
    where = f"CPU{several} {cpulist.format(report.cpus_used)}" if report.cpus_used else "unknown CPUs"
    moved = "migrations unknown" if report.migrations is None else plural(report.migrations, "migration")
    faults = report.page_faults
    return (
        f"{_seconds(report.wall_s)}, {_seconds(report.cpu_s)} of CPU time on {where}; {moved}; "
        f"preempted {plural(report.switches['involuntary'], 'time')}, "
        f"waited {plural(report.switches['voluntary'], 'time')}; "
        f"{plural(faults['minor'] + faults['major'], 'page fault')} ({faults['major']:,} from disk)"
    )


def prediction(report: CommandReport) -> Iterator[str]:
    """Yield the predicted effect of `quiet run` as text."""
    expected = report.remaining
    if expected is None or not report.interrupted.count:
        return
    of = f"of these {report.interrupted.count:,}" if report.interrupted.count > 1 else "of 1"
    text = f"under `quiet run` (profile {expected.profile}) about {expected.gone:,} {of} would be gone"
    shown = ", ".join(expected.causes[:_STAYING])
    more = f" and {len(expected.causes) - _STAYING} more" if len(expected.causes) > _STAYING else ""
    yield text + (f"; {expected.count:,} would stay: {shown}{more}" if expected.causes else "")

"""Run or resume `cbench screen knobs`: plan, then make the applications one by one and store each of them."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import fmean

from cbench.console import StoppedError, shell_path
from cbench.knobs import stored
from cbench.knobs.design import NONE, SEARCH, Application, LeftOut, SearchOptions
from cbench.knobs.host import KnobHost, KnobPlan, planned, toml
from cbench.knobs.measure import respond, suspects
from cbench.knobs.options import KnobOptions
from cbench.knobs.result import DesignForecast, KnobDesign, KnobsResult, knobs_result
from cbench.knobs.search import CONTROLS, PAIRS, Search
from cbench.knobs.stored import MeasuredApplication, ScreeningKeeper, StoredScreening
from cbench.machine.noise import aside
from cbench.study import lock
from quiet import QuietError, Reader, Refused, UsageError, parse_cpus, save

Show = Callable[[str, int, int], None]
Tell = Callable[[str], None]
Measure = Callable[[Application], tuple[float, Sequence[str]]]
"""Measures the response under the current application. Returns the response and the knobs that `quiet noise`
suspects.
"""
Apply = Callable[[LeftOut], AbstractContextManager[None]]

RESERVE = 2 * PAIRS
"""Applications reserved for the verification when the search has to end."""
EXPECTED = (0, 1, 4, 8)
SIMULATED = 20
FORECAST_NOISE = 0.05


def search_of(screening: StoredScreening) -> Search:
    """The search of a screening, before its first application."""
    options = screening.options
    how = SearchOptions(options.within, options.alpha, options.seed, options.of.adds)
    return Search(screening.plan.screened, how)


def design(options: KnobOptions, reader: Reader | None = None) -> KnobDesign:
    """Design a screening on this host, without changing the host. Raises QuietError if no knob can be screened."""
    began = time.monotonic()
    plan = planned(options, reader or Reader())
    planning = time.monotonic() - began
    forecasts = [
        DesignForecast(causes, found, found * options.duration if not options.of.command else None)
        for causes in EXPECTED
        if causes <= len(plan.screened)
        for found in (forecast(plan, options, causes),)
    ]
    return KnobDesign(
        profile=plan.profile,
        cpus=plan.isolated,
        response=options.response,
        knobs=tuple(knob.name for knob in plan.screened),
        fixed=plan.fixed,
        idle=plan.idle,
        boot_left_out=plan.boot,
        most_applications=options.applications,
        duration_s=options.duration,
        budget_s=options.budget,
        planning_s=round(planning, 3),
        expected=tuple(forecasts),
    )


def forecast(plan: KnobPlan, options: KnobOptions, causes: int) -> int:
    """The simulated average number of applications of a screening if `causes` knobs matter equally."""
    taken = []
    for seed in range(SIMULATED):
        draw = random.Random(seed)
        matter = set(draw.sample([knob.name for knob in plan.screened], causes))
        search = Search(plan.screened, SearchOptions(options.within, options.alpha, seed, options.of.adds))
        done = 0
        while search.next is not None and done < options.applications:
            if search.next.phase == SEARCH and options.applications - done <= RESERVE:
                search.conclude()
                continue
            level = 1.0 + len(matter & search.next.left_out)
            search.add(level * (1 + FORECAST_NOISE * draw.gauss(0, 1)))
            done += 1
        taken.append(done)
    return round(fmean(taken))


def start(options: KnobOptions, path: Path, show: Show, tell: Tell) -> KnobsResult:
    """Run a new screening. Raises Refused without root privileges, UsageError if the file has content, and QuietError
    if the screening is interrupted or cannot be measured or stored.
    """
    _only_root()
    if path.is_file() and path.stat().st_size:
        raise UsageError(f"{path}: already exists; resume with: cbench screen knobs --resume {shell_path(path)}")
    screening = StoredScreening.new(options, planned(options, Reader()))
    return _run(screening, path, show, tell)


def resume(path: Path, show: Show, tell: Tell) -> KnobsResult:
    """Resume the screening in a file, or return the result of a finished one. Raises QuietError if it cannot be
    resumed.
    """
    screening = stored.read(path)
    search = replayed(screening)
    if _over(search, screening, screening.applications):
        return knobs_result(screening, search, {})
    _only_root()
    return _run(screening, path, show, tell)


def _only_root() -> None:
    if os.geteuid() != 0:
        raise Refused(
            "cbench screen knobs applies settings to this host, which needs root: run it with sudo; --plan works "
            "without root"
        )


def _run(screening: StoredScreening, path: Path, show: Show, tell: Tell) -> KnobsResult:
    plan, options = screening.plan, screening.options
    cpus = parse_cpus(plan.isolated)
    host = KnobHost(plan, screening.identity)

    def measure(step: Application) -> tuple[float, Sequence[str]]:
        named = suspects(cpus, options.duration) if step.why == NONE else ()
        return respond(options, cpus), named

    with lock.alone(path, create=True, kind="screening"):
        try:
            if host.restore_left_behind():
                tell("restored the settings that an earlier, killed process of this screening had applied")
            with aside(parse_cpus(plan.housekeeping)), stored.kept(path, screening) as keeper:
                search = conduct(screening, host.applied, measure, keeper, show)
        except KeyboardInterrupt:
            raise StoppedError(f"interrupted; resume with: cbench screen knobs --resume {shell_path(path)}") from None
        except SystemExit:
            tell(f"ended by a signal; resume with: cbench screen knobs --resume {shell_path(path)}")
            raise
        except QuietError:
            if not path.stat().st_size:
                path.unlink()
            raise
    screening = stored.read(path)
    return knobs_result(screening, search, host.refused)


def replayed(screening: StoredScreening) -> Search:
    """The search, advanced through the stored applications. Raises QuietError if these do not fit the search."""
    search = search_of(screening)
    for done in screening.applications:
        if search.next is not None and search.next.phase == SEARCH != done.phase:
            search.conclude()
        if search.next is None or search.next.left_out != done.left_out:
            raise QuietError(
                "the stored applications do not fit this search: another version of cbench probably wrote them; start "
                "a new screening with another file (-o)"
            )
        search.add(done.value, done.suspects)
    return search


def conduct(screening: StoredScreening, apply: Apply, measure: Measure, keeper: ScreeningKeeper, show: Show) -> Search:
    """Make the remaining applications and store each when it has ended. Raises QuietError if one of them fails."""
    search, done = replayed(screening), list(screening.applications)
    while not _over(search, screening, done):
        step = search.next
        assert step is not None
        left = _left(screening, done)
        show(_progress(step.why, left, done), len(done), len(done) + left)
        began = time.monotonic()
        with apply(step.left_out):
            value, named = measure(step)
        made = MeasuredApplication(step.left_out, step.phase, value, time.monotonic() - began, tuple(named))
        keeper.add(made)
        made = screening.application(screening.trial(made))  # rounded as if read back by a resume
        done.append(made)
        search.add(made.value, made.suspects)
    return search


def _progress(why: str, left: int, done: Sequence[MeasuredApplication]) -> str:
    if not done:
        return why
    seconds = left * fmean(each.seconds for each in done)
    return f"{why}, at most {seconds / 60:.0f} min left" if seconds >= 60 else f"{why}, at most {seconds:.0f} s left"


def _left(screening: StoredScreening, done: Sequence[MeasuredApplication]) -> int:
    """The maximum number of remaining applications, limited by the options and by the time budget."""
    options = screening.options
    left = options.applications - len(done)
    spent = sum(each.seconds for each in done)
    if options.budget is not None and spent:
        left = min(left, int((options.budget - spent) / (spent / len(done))))
    return max(0, left)


def _over(search: Search, screening: StoredScreening, done: Sequence[MeasuredApplication]) -> bool:
    """Whether no application remains. Ends the search early enough to leave applications for the verification."""
    left = _left(screening, done)
    if search.next is not None and search.next.phase == SEARCH and left <= RESERVE and len(done) > CONTROLS:
        search.conclude()
    return search.next is None or not left


def write_profile(result: KnobsResult, data: Path, target: Path, tell: Tell) -> None:
    """Write the smallest profile; undecided knobs stay in it. Raises QuietError if the file cannot be written."""
    screening = stored.read(data)
    summary = f"{len(result.written)} of {result.screened + len(result.fixed)} knobs of {result.profile}"
    save(str(target), toml(screening.plan, result.written, target.stem, summary), "--write-profile")
    name = target if "/" in str(target) else f"./{target}"
    tell(f"{target} written; show its changes with: quiet plan --profile {name}")


def write_page(result: KnobsResult, target: Path) -> None:
    """Write the HTML page of a screening. Raises QuietError if the file cannot be written."""
    from cbench.knobs.page import page

    save(str(target), page(result), "--report")

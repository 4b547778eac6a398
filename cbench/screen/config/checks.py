"""Check an experiment for contradictions between its tables, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from cbench.screen.config import model, treatments
from cbench.screen.config.model import NO_PROFILER, Level, Response, Screen, ScreenFactor, Treatment
from cbench.study.instruments import perf_record
from cbench.study.instruments.instrument import SAMPLES, Sampling
from cbench.study.resets.reboot import RebootReset
from cbench.study.toml_table import TomlTable
from quiet import UsageError

GOVERNOR = "cpufreq.governor"
MOST_TESTS, MOST_TRIALS = 10_000, 100_000_000
VARIABLE = re.compile(r"[A-Z0-9_]+")
"""The characters allowed after CBENCH_LEVEL_ in the name of a shell variable."""
ONCE: tuple[tuple[str, Callable[[Level], bool]], ...] = (
    ("cpus", lambda level: bool(level.cpus)),
    ("aslr", lambda level: level.aslr is not None),
    ("profiler", lambda level: bool(level.profiler)),
    ("profile", lambda level: bool(level.profile)),
)
"""The settings that only one factor can control, each with a test for levels that use it."""


def _knobs(level: Level) -> list[str]:
    """The names of quiet's knobs that a level sets; a governor counts as one."""
    return [*level.knobs, *([GOVERNOR] if level.governor else [])]


NAMED: tuple[tuple[str, Callable[[Level], Iterable[str]]], ...] = (
    ("the variable", lambda level: level.environment),
    ("the knob", _knobs),
    ("the kernel parameter", lambda level: [word.partition("=")[0] for word in level.kernel or ()]),
)
"""The settings that several factors can control if each factor sets different names, with a function for the names that
a level sets.
"""


def check_screen(screen: Screen, whole: TomlTable) -> None:
    """Check a whole experiment. Raises UsageError, with the place in the file, for the first contradiction."""
    _names(screen, whole)
    _ways(screen, whole)
    _profile(screen, whole)
    _workloads(screen, whole)
    _batches(screen, whole)
    _design(screen, whole)
    try:
        planned = treatments.treatments(screen)
    except UsageError as error:
        raise whole.error("factor", str(error)) from None
    tests = len(planned) * len(screen.workloads)
    if tests > MOST_TESTS:
        raise whole.error(
            "factor", f"{tests:,} combinations of treatment and workload; at most {MOST_TESTS:,} are supported"
        )
    if screen.runs is not None and screen.runs != len(planned):
        raise whole.error_at(
            ("screen", "runs"), f"{screen.runs}: the requested design has {len(planned)} treatments: write this number"
        )
    _constraints(screen, planned, whole)
    _samples(screen, planned, whole)
    _abridgments(screen, planned, whole)
    if (trials := tests * screen.iterations * screen.batches) > MOST_TRIALS:
        raise whole.error_at(("screen", "iterations"), f"{trials:,} trials; at most {MOST_TRIALS:,} are supported")


def _names(screen: Screen, whole: TomlTable) -> None:
    factors = [factor.name for factor in screen.factors]
    for key, names in (("factor", factors), ("response", [response.name for response in screen.responses])):
        for number, name in enumerate(names):
            if name in model.RESERVED:
                raise whole.error_at(
                    (key, number, "name"), f"{name!r} is a reserved column name of exported tables; choose another name"
                )
            if key == "response" and name in factors:
                raise whole.error_at(
                    (key, number, "name"), f"{name!r} is also the name of a factor; choose another name"
                )


def _ways(screen: Screen, whole: TomlTable) -> None:
    """Check that each setting has only one source, because otherwise only the last value would take effect.

    Raises UsageError if two factors, or a factor and [environment], set the same thing, or if a factor applies a
    profile and another factor sets knobs.
    """
    for (_, earlier), (number, later) in combinations(enumerate(screen.factors), 2):
        place = ("factor", number, "level")
        for key, has in ONCE:
            if any(map(has, earlier.levels)) and any(map(has, later.levels)):
                raise whole.error_at(
                    place, f"{earlier.name} and {later.name} both set {key}: merge them into one factor"
                )
        for what, names in NAMED:
            if both := _named(earlier, names) & _named(later, names):
                raise whole.error_at(
                    place, f"{earlier.name} and {later.name} both set {what} {min(both)}: merge them into one factor"
                )
        for first, second in ((earlier, later), (later, earlier)):
            if any(level.profile for level in first.levels) and _named(second, _knobs):
                raise whole.error_at(
                    place,
                    f"{first.name} applies a profile, which the knobs of {second.name} would change: use one factor",
                )
    for number, factor in enumerate(screen.factors):
        for level in factor.levels:
            if both := set(level.environment) & set(screen.environment):
                raise whole.error_at(
                    ("factor", number, "level"),
                    f"{factor.name} and [environment] both set {min(both)}: remove one of them",
                )


def _named(factor: ScreenFactor, names: Callable[[Level], Iterable[str]]) -> set[str]:
    return {name for level in factor.levels for name in names(level)}


def _profile(screen: Screen, whole: TomlTable) -> None:
    for number, factor in enumerate(screen.factors):
        if screen.profile and any(level.by_quiet for level in factor.levels):
            raise whole.error_at(
                ("screen", "profile"),
                f"{factor.name} (factor {number + 1}) applies its own settings, and only one profile "
                "can be applied at a time; set the profile in the levels of this factor instead",
            )
    changing = [factor for factor in screen.factors if any(level.by_quiet for level in factor.levels)]
    if len({factor.hard for factor in changing}) > 1:
        easy, hard = (next(each for each in changing if each.hard is kind) for kind in (False, True))
        raise whole.error_at(
            ("factor", screen.factors.index(easy)),
            f"{easy.name} applies quiet's settings for a trial and {hard.name} for a batch; write hard = true in both",
        )
    levels = [level for factor in screen.factors for level in factor.levels]
    if screen.cpus and not screen.profile and not any(level.knobs or level.profile for level in levels):
        raise whole.error_at(("screen", "cpus"), 'needs a profile, such as profile = "bench"')


def _workloads(screen: Screen, whole: TomlTable) -> None:
    ours = [workload.name for workload in screen.workloads if workload.workload]
    for number, factor in enumerate(screen.factors):
        for place, level in enumerate(factor.levels):
            where: tuple[str | int, ...] = ("factor", number, "level", place)
            if level.profiler and ours:
                raise whole.error_at(
                    (*where, "profiler"),
                    f"`perf record` works only with commands, and {ours[0]!r} is a workload of cbench: omit profiler",
                )
            if level.flags is not None and not screen.build:
                raise whole.error_at((*where, "flags"), "apply to `build` in [screen], which is missing: add it")
            if level.cpus and "," in level.cpus + level.cpus.replace("-", ",") and ours:
                raise whole.error_at(
                    (*where, "cpus"),
                    f"{level.cpus}: {ours[0]!r} is a workload of cbench and runs on one CPU: write one CPU",
                )
    built = any(level.build or level.flags is not None for factor in screen.factors for level in factor.levels)
    for place, workload in enumerate(screen.workloads):
        if workload.built and not (built or screen.build):
            raise whole.error_at(
                ("workload", place, "workload"),
                f"{model.BUILT}: nothing is built: write `build` in [screen] or in a level",
            )


def _batches(screen: Screen, whole: TomlTable) -> None:
    hard = screen.hard
    for kernel in (factor for factor in hard if any(level.kernel is not None for level in factor.levels)):
        if not isinstance(screen.reset, RebootReset):
            raise whole.error_at(("reset",), f'{kernel.name} changes only at boot: write kind = "reboot" in [reset]')
        if not screen.reset.command:
            raise whole.error_at(
                ("reset",),
                f"{kernel.name} needs a `command` in [reset] that boots with the parameters in $CBENCH_KERNEL",
            )
        if missing := [level.name for level in kernel.levels if level.kernel is None]:
            raise whole.error_at(
                ("factor", screen.factors.index(kernel), "level"),
                f"{kernel.name}: the level {missing[0]!r} does not list its kernel parameters: write "
                "kernel = [] for none",
            )
    _level_variables(screen, whole)
    if screen.sequence and len(hard) != 1:
        raise whole.error_at(("screen", "sequence"), f"requires exactly one hard factor; there are {len(hard)}")
    if screen.sequence and screen.sequence != (model.MIXED,):
        counts = {name: screen.sequence.count(name) for name in hard[0].names}
        if wrong := [each for each in screen.sequence if each not in counts]:
            raise whole.error_at(("screen", "sequence"), f"{hard[0].name} has no level {wrong[0]!r}")
        if uneven := [name for name, count in counts.items() if count != screen.batches]:
            raise whole.error_at(
                ("screen", "sequence"),
                f"lists the level {uneven[0]!r} {counts[uneven[0]]} times; batches = {screen.batches} requires each "
                f"level {screen.batches} times",
            )


def _level_variables(screen: Screen, whole: TomlTable) -> None:
    """Check that a reset's command finds the level of each hard factor in a separate variable. Raises UsageError if
    not.
    """
    if not screen.reset.command:
        return
    seen: dict[str, str] = {}
    for number, factor in enumerate(screen.factors):
        if not factor.hard:
            continue
        name = factor.name.upper()
        where = f"{factor.name!r}: the command in [reset] reads the level from $CBENCH_LEVEL_{name}"
        if not VARIABLE.fullmatch(name):
            raise whole.error_at(("factor", number, "name"), f"{where}: use only letters, digits and _")
        if name in seen:
            raise whole.error_at(
                ("factor", number, "name"), f"{where}, which {seen[name]!r} also uses: choose another name"
            )
        seen[name] = factor.name


def _design(screen: Screen, whole: TomlTable) -> None:
    if screen.design == model.FULL:
        for key, given in (("runs", screen.runs is not None), ("generators", bool(screen.generators))):
            if given:
                raise whole.error_at(("screen", key), f'does not apply to design = "{model.FULL}"')
        return
    if many := [factor.name for factor in screen.factors if len(factor.levels) != 2]:
        raise whole.error_at(
            ("screen", "design"), f"{screen.design!r} is only for factors with two levels; {many[0]} has more"
        )
    if screen.hard:
        raise whole.error_at(
            ("screen", "design"), f"{screen.design!r} does not support batches, but {screen.hard[0].name} is hard"
        )
    if any(each.kind == model.EXCLUDED for each in screen.constraints):
        raise whole.error_at(
            ("screen", "design"),
            f"{screen.design!r} needs all its treatments: remove constraints of kind '{model.EXCLUDED}'",
        )
    if screen.design == model.PLACKETT_BURMAN and screen.generators:
        raise whole.error_at(("screen", "generators"), f"apply only to design = {model.FRACTION!r}")


def _constraints(screen: Screen, planned: Sequence[model.Treatment], whole: TomlTable) -> None:
    for number, each in enumerate(screen.constraints):
        if each.kind != model.EXCLUDED and not any(
            model.matches(each.where, treatment.levels) for treatment in planned
        ):
            raise whole.error_at(("constraint", number, "where"), "matches no treatment that is run")
    for factor in screen.factors:
        left = {treatment.levels[factor.name] for treatment in planned}
        if missing := [name for name in factor.names if name not in left]:
            raise whole.error(
                "constraint", f"every treatment with {factor.name}={missing[0]} is excluded: remove the level"
            )
    for treatment in planned:
        for workload in screen.workloads:
            if not treatments.obtainable(screen, treatment, workload):
                raise whole.error(
                    "constraint",
                    f"{treatment.name} has no response left for {workload.name!r}: exclude the treatment instead",
                )


def _abridgments(screen: Screen, planned: Sequence[model.Treatment], whole: TomlTable) -> None:
    for number, each in enumerate(screen.abridgments):
        kept = [treatment for treatment in planned if each.keeps(treatment.levels)]
        if not kept:
            raise whole.error_at(("abridgment", number), f"{each.name!r} keeps no treatment")
        if len(kept) == len(planned):
            raise whole.error_at(("abridgment", number), f"{each.name!r} leaves out no treatment")


def _samples(screen: Screen, planned: Sequence[Treatment], whole: TomlTable) -> None:
    """Check the sampling of all treatments. Raises UsageError if a level contradicts a response, or one treatment
    contradicts another.
    """
    if not any(each.metric.source == SAMPLES for each in screen.responses):
        return
    first: dict[str, tuple[Treatment, Sampling]] = {}
    for treatment in planned:
        for workload in screen.workloads:
            counted = [
                each for each in treatments.obtainable(screen, treatment, workload) if each.metric.source == SAMPLES
            ]
            if not counted:
                continue
            try:
                how = treatments.sampled(screen, treatment, workload)
            except UsageError as error:
                raise whole.error("response", str(error)) from None
            for response in counted:
                place = ("response", screen.responses.index(response), "read")
                if wrong := _contradiction(response, how):
                    raise whole.error_at(place, f"{treatment.name} {wrong}")
                assert how is not None
                other, before = first.setdefault(response.name, (treatment, how))
                if _counts(before) != _counts(how):
                    raise whole.error_at(
                        place,
                        f"{other.name} samples {_counts(before)} and {treatment.name} samples {_counts(how)}: sample "
                        "counts cannot be compared",
                    )


def _contradiction(response: Response, how: Sampling | None) -> str:
    """The contradiction between a treatment's sampling and a response, as text; "" if there is none."""
    if how is None:
        return (
            f'is not sampled (profiler = "{NO_PROFILER}"), but {response.name} requests a call graph: omit the call '
            "graph"
        )
    said = perf_record.named(response.metric.detail)
    wanted = perf_record.parse(response.metric.detail)
    event = "event" in said and wanted.event != how.event
    rate = "rate" in said and (wanted.hz, wanted.period) != (how.hz, how.period)
    return f"samples {_counts(how)} and {response.name} requests {_counts(wanted)}" if event or rate else ""


def _counts(how: Sampling) -> str:
    """A sampling as text, such as "cpu-clock at 1,000 Hz"."""
    return how.words.rpartition(", ")[0]

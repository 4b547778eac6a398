"""Define the results of a screening of knobs for `--json`, the table and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from cbench.knobs.judge import LOUDER
from cbench.knobs.options import RESPONSES
from cbench.knobs.search import Search
from cbench.knobs.stored import StoredScreening

MATTERS, WORSE, NEEDED, INERT, UNDECIDED = "matters", "makes it worse", "needed", "does not matter", "undecided"
WITHIN, ALIKE, NOISIER, QUIETER, UNKNOWN = "within", "no difference shown", "noisier", "quieter", "not verified"


@dataclass(frozen=True, slots=True)
class DesignForecast:
    """The simulated average number of applications of a screening in which `matter` knobs matter. `seconds`: the
    measuring time, None if a command is measured.
    """

    matter: int
    applications: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class KnobDesign:
    """The result of `--plan`: the knobs to screen, the knobs that are always applied (`fixed`), and the number of knobs
    that would change nothing on this host (`idle`).

    `boot_left_out`: kernel parameters of the profile that are not screened, because each needs a reboot. `budget_s`:
    None for no time limit.
    """

    profile: str
    cpus: str
    response: str
    knobs: tuple[str, ...]
    fixed: tuple[str, ...]
    idle: int
    boot_left_out: tuple[str, ...]
    most_applications: int
    duration_s: float
    budget_s: float | None
    planning_s: float
    expected: tuple[DesignForecast, ...]


@dataclass(frozen=True, slots=True)
class KnobEffect:
    """The effect of a knob: the response without the knob minus the profile's response, with a 95 % interval;
    `p_adjusted`: corrected for all knobs (Bonferroni).

    `effect`, `interval` and `p_adjusted` are None if the knob was not identified individually. `why`: "KNOB needs it"
    if another knob's need is the only reason to keep this knob, otherwise "".
    """

    knob: str
    verdict: str
    effect: float | None = None
    interval: tuple[float, float] | None = None
    p_adjusted: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class KnobConflict:
    """A conflict that concerns `knobs`, described in `text`. `kind`: needs (the first knob must not be applied without
    the second), replaceable (the knob matters only if others are left out), overlap (some of the knobs remove the same
    noise) or worse (the knob makes the host noisier).
    """

    kind: str
    knobs: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ProfileCheck:
    """The comparison of the smallest profile with the full one, interleaved in random order: the difference in the
    response's unit and in % of the full profile's level. All other figures are None if `pairs` is 0; `interval_pct` is
    also None if that level is 0.
    """

    outcome: str
    pairs: int
    written: float | None
    full: float | None
    difference: float | None
    interval: tuple[float, float] | None
    interval_pct: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class KnobsResult:
    """The result of a screening. `full` and `none`: the response with the whole profile and without any of its knobs;
    `deviation`: the standard deviation of one application's response; each None if unknown.

    `finished`: whether every knob is decided and the smallest profile, unless it is the full one, was compared with the
    full one. `smallest`: the smallest joint effect of dropped knobs that would have been detected, None if no knob was
    dropped as inert. `refused`: for each knob that could not be applied, the reason.
    """

    profile: str
    cpus: str
    response: str
    unit: str
    command: tuple[str, ...]
    screened: int
    fixed: tuple[str, ...]
    idle: int
    boot_left_out: tuple[str, ...]
    applications: int
    seconds: float
    finished: bool
    full: float | None
    none: float | None
    deviation: float | None
    smallest: float | None
    alpha: float
    within: float
    effects: tuple[KnobEffect, ...]
    inert: tuple[str, ...]
    undecided: tuple[str, ...]
    conflicts: tuple[KnobConflict, ...]
    written: tuple[str, ...]
    check: ProfileCheck
    refused: Mapping[str, str]
    seed: int

    @property
    def matter(self) -> tuple[str, ...]:
        """The knobs without which the host is noisier."""
        return tuple(each.knob for each in self.effects if each.verdict == MATTERS)

    @property
    def is_noisier(self) -> bool:
        """Whether the smallest profile was shown to be noisier than the full one."""
        return self.check.outcome == NOISIER

    @property
    def title(self) -> str:
        """The response as a phrase, such as "longest gap on an isolated CPU"."""
        return RESPONSES[self.response].title


def knobs_result(screening: StoredScreening, search: Search, refused: Mapping[str, str]) -> KnobsResult:
    """The result of a screening after its applications so far."""
    options, plan, made = screening.options, screening.plan, screening.applications
    known = len(search.level.values) > 1
    effects = _effects(search) if known else ()
    named = {each.knob for each in effects}
    undecided = tuple(search.undecided) if known else tuple(knob.name for knob in plan.screened)
    full = [each.value for each in made if not each.left_out]
    return KnobsResult(
        profile=plan.profile,
        cpus=plan.isolated,
        response=options.response,
        unit=options.of.unit,
        command=options.words,
        screened=len(plan.screened),
        fixed=plan.fixed,
        idle=plan.idle,
        boot_left_out=plan.boot,
        applications=len(made),
        seconds=round(sum(each.seconds for each in made), 3),
        finished=not undecided and (bool(search.pairs) or not search.dropped),
        full=median(full) if full else None,
        none=next((each.value for each in made if each.left_out == search.every), None),
        deviation=search.level.deviation if known else None,
        smallest=search.smallest or None,
        alpha=options.alpha,
        within=options.within,
        effects=effects,
        inert=tuple(k.name for k in plan.screened if k.name in search.dropped and k.name not in named),
        undecided=undecided,
        conflicts=tuple(_conflicts(search)) if known else (),
        written=(*plan.fixed, *search.kept),
        check=_check(search),
        refused=dict(refused),
        seed=options.seed,
    )


def _effects(search: Search) -> tuple[KnobEffect, ...]:
    found = [
        KnobEffect(
            each.knob,
            MATTERS if each.sign == LOUDER else WORSE,
            each.effect,
            (each.low, each.high),
            each.p,
        )
        for each in search.findings()
    ]
    needed = [KnobEffect(knob, NEEDED, why=f"{by} needs it") for knob, by in search.needed.items()]
    return (*found, *(each for each in needed if each.knob not in search.matter))


def _conflicts(search: Search) -> list[KnobConflict]:
    found = [
        KnobConflict("needs", (by, knob), f"{by} must not be applied without {knob}, so both are kept")
        for knob, by in search.needed.items()
        if knob not in search.matter
    ]
    found += [
        KnobConflict("worse", (each.knob,), f"the host is quieter without {each.knob}, so {each.knob} is left out")
        for each in search.findings()
        if each.sign != LOUDER
    ]
    found += [
        KnobConflict(
            "replaceable",
            (knob,),
            f"{knob} matters only because other knobs are left out: in the full profile, one of them removes the same "
            "noise",
        )
        for knob in search.replaceable
    ]
    if search.not_replaceable and not search.replaceable:
        together, expected = search.together or (0.0, 0.0)
        names = tuple(search.not_replaceable)
        share = f"{together / expected:.0%} of" if expected else "less than"
        found.append(
            KnobConflict(
                "overlap",
                names,
                f"the effects of {', '.join(names)} overlap: left out together, these knobs have {share} the sum of "
                "their effects, so some of them remove the same noise",
            )
        )
    return found


def _check(search: Search) -> ProfileCheck:
    found = search.difference()
    if found is None:
        same = not search.dropped and search.next is None
        return ProfileCheck(WITHIN if same else UNKNOWN, 0, None, None, None, None, None)
    allowed = search.options.within * abs(found.full)
    outcome = WITHIN if -allowed <= found.low and found.high <= allowed else ALIKE
    if found.low > 0 and found.high > allowed:
        outcome = NOISIER
    elif found.high < 0 and outcome != WITHIN:
        outcome = QUIETER
    percent = (100 * found.low / found.full, 100 * found.high / found.full) if found.full else None
    return ProfileCheck(
        outcome, found.pairs, found.written, found.full, found.written - found.full, (found.low, found.high), percent
    )

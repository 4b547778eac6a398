"""Experiments from textbooks, their published results, and the options of `cbench screen analyze` for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from cbench.screen.analysis.result import EffectResult, ResponseResult, ScreenResult
from cbench.screen.data.roles import Chosen
from tests.textbook import data
from tests.textbook.data import Rows

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class Published:
    """The published size, F and p of one effect, with the published number of digits; None if not published."""

    effect: float | None = None
    f: float | None = None
    p: float | None = None
    digit: float = 6e-4
    """The allowed difference between the computed and the published size."""


@dataclass(frozen=True, slots=True)
class Case:
    """One experiment. `found`: the effects that the source considers real; the verdict lists each in its first line, or
    as significant individually. `options`: options of the command line; `ranked`: the effects at the top of a published
    ranking without a test, which the verdict lists as significant individually.
    """

    name: str
    title: str
    rows: Rows
    published: Mapping[str, Published]
    found: tuple[str, ...]
    words: str
    options: str = ""
    chosen: Chosen = field(default_factory=Chosen)
    ranked: tuple[str, ...] = ()

    def shown(self, line: str) -> bool:
        """Whether a line of the verdict goes into the documentation."""
        return line.startswith(("effects that matter", "significant individually"))


def x(*names: str) -> str:
    """An interaction's name."""
    return TIMES.join(names)


def effect(size: float) -> Published:
    return Published(effect=size)


def hundredths(size: float) -> Published:
    """An effect that is published with two decimal places."""
    return Published(effect=size, digit=6e-3)


@cache
def cases() -> tuple[Case, ...]:
    """All cases, in the order of the page."""
    return (
        Case(
            "eddy", "Eddy current probe, 2^3, NIST", data.eddy(),
            {
                "X1": effect(3.1025), "X2": effect(-0.8675), "X3": effect(0.2125), x("X1", "X2"): effect(0.1275),
                x("X1", "X3"): effect(0.2475), x("X2", "X3"): effect(0.2975),
            },
            ("X1", "X2"), "X1 and X2 matter",
        ),
        Case(
            "pilot", "Pilot plant, 2^3, Box, Hunter, Hunter", data.pilot(),
            {"T": effect(23), "C": effect(-5), "K": effect(1.5), x("T", "C"): effect(1.5), x("T", "K"): effect(10)},
            ("T", x("T", "K")),
            "T, T*K and C matter, judged by the error of replicates that the table of means does not contain",
        ),
        Case(
            "filtration", "Filtration rate, 2^4, Montgomery", data.filtration(),
            {
                "A": effect(21.625), "C": effect(9.875), "D": effect(14.625), x("A", "C"): effect(-18.125),
                x("A", "D"): effect(16.625),
            },
            ("A", "C", "D", x("A", "C"), x("A", "D")), "A, C, D, A*C and A*D matter, judged by a normal plot",
        ),
        Case(
            "reactor", "Reactor, 2^5, Box, Hunter, Hunter", data.reactor(),
            {"B": effect(19.5), "D": effect(10.75), "E": effect(-6.25), x("B", "D"): effect(13.25),
             x("D", "E"): effect(-11.0)},
            ("B", "D", "E", x("B", "D"), x("D", "E")), "B, D, E, B*D and D*E matter, judged by a normal plot",
        ),
        Case(
            "bicycle", "Bicycle, 2^(7-4), Box, Hunter, Hunter", data.bicycle(),
            {"seat": effect(3.5), "dynamo": effect(12.0), "handlebars": effect(1.0), "gear": effect(22.5),
             "raincoat": effect(0.5), "breakfast": effect(1.0), "tires": effect(2.5)},
            ("gear", "dynamo"), "gear and dynamo matter",
        ),
        Case(
            "ceramic", "Ceramic strength, JAHANMI2, NIST, as one table", data.ceramic(), {"batch": effect(-77.8427)},
            ("batch", x("speed", "grit"), x("batch", "speed")),
            "the batch matters most (means 688.9986 and 611.1560); speed*grit has the second-largest effect in both "
            "batches, and the effects of the other factors differ between the batches",
        ),
        Case(
            "ceramic-1", "Ceramic strength, JAHANMI2, batch 1", data.ceramic_batch(1),
            {"speed": hundredths(-30.77), "grit": hundredths(-7.18), x("speed", "grit"): hundredths(-20.25),
             x("speed", "feed"): hundredths(9.70)},
            ("speed", x("speed", "grit")), "speed has by far the largest effect, and speed*grit the second-largest",
        ),
        Case(
            "ceramic-2", "Ceramic strength, JAHANMI2, batch 2", data.ceramic_batch(2),
            {"feed": hundredths(18.22), "grit": hundredths(-14.71), x("speed", "grit"): hundredths(-16.71)},
            (), "only a ranking of the effects: feed, speed*grit, grit", ranked=("feed", x("speed", "grit")),
        ),
        Case(
            "penicillin", "Penicillin, randomized blocks, Box, Hunter, Hunter", data.penicillin(),
            {"variant": Published(f=1.24, p=0.34)}, (), "no evidence of a difference between variants",
            "--block blend", Chosen(block="blend"),
        ),
        Case(
            "poisons", "Poisons, 3x4, Box, Cox", data.poisons(),
            {"poison": Published(f=23.222, p=3.331e-7), "treat": Published(f=13.806, p=3.777e-6),
             x("poison", "treat"): Published(f=1.874, p=0.1123)},
            ("poison", "treat"), "poison and treatment matter",
        ),
        Case(
            "npk", "Peas, npk, 2^3 in six incomplete blocks, R", data.npk(),
            {"N": Published(5.617, 12.2587, 0.004372), "P": Published(-1.183, 0.5441, 0.474904),
             "K": Published(-3.983, 6.1657, 0.028795), x("N", "P"): Published(None, 1.3783, 0.263165),
             x("N", "K"): Published(None, 2.1460, 0.168648), x("P", "K"): Published(None, 0.0312, 0.862752)},
            ("N", "K"), "N (p 0.0044) and K (0.029) matter", "--block plot", Chosen(block="plot"),
        ),
        Case(
            "warpbreaks", "Warp breaks, 2x3, R", data.warpbreaks(),
            {"wool": Published(-5.7778, 3.7653, 0.058213), "tension": Published(None, 8.4980, 0.000693),
             x("wool", "tension"): Published(None, 4.1891, 0.021044)},
            ("tension", x("wool", "tension")), "tension (p 0.0007) and wool*tension (0.021) matter",
        ),
        Case(
            "ToothGrowth", "Tooth growth, 2x3, R", data.tooth_growth(),
            {"supp": Published(-3.7, 15.572, 0.0002312), "dose": Published(None, 92.0, 4.046e-18),
             x("supp", "dose"): Published(None, 4.107, 0.0218603)},
            ("supp", "dose", x("supp", "dose")), "supp, dose and supp*dose matter",
        ),
        Case(
            "corrosion", "Corrosion resistance, split plot, Box, Hunter, Hunter", data.corrosion(),
            {"temperature": Published(f=2.75), "coating": Published(f=11.48),
             x("temperature", "coating"): Published(f=4.376)},
            ("coating", x("temperature", "coating")),
            "coating and temperature*coating matter; six heats cannot decide on temperature",
            "--batch heat", Chosen(batch="heat"),
        ),
        Case(
            "pulp", "Paper pulp, split plot in replicates, Montgomery", data.pulp(),
            {"method": Published(f=7.078, p=0.0485), "temperature": Published(f=36.427),
             x("method", "temperature"): Published(f=3.154, p=0.0271)},
            ("method", "temperature", x("method", "temperature")),
            "method, temperature and method*temperature matter, each tested at 5 %",
            "--hard method --block replicate", Chosen(hard=("method",), block="replicate"),
        ),
        Case(
            "oats", "Oats, split plot in blocks, Yates", data.oats(),
            {"variety": Published(f=1.485, p=0.2724), "nitrogen": Published(f=37.686, p=2.458e-12),
             x("variety", "nitrogen"): Published(f=0.3028, p=0.9322)},
            ("nitrogen",), "nitrogen matters; the varieties do not differ measurably",
            "--hard variety --block field", Chosen(hard=("variety",), block="field"),
        ),
        Case(
            "Machines", "Machines and workers, mixed model, nlme", data.machines(),
            {"machine": Published(f=20.576, p=0.000286)}, ("machine",),
            "the machines differ by more than the variation between workers explains",
            "--batch worker", Chosen(batch="worker"),
        ),
    )  # fmt: skip


def only(result: ScreenResult) -> ResponseResult:
    """The one response of a case."""
    (row,) = result.responses.values()
    return row


def named(result: ScreenResult) -> dict[str, EffectResult]:
    """The effects of a case by name."""
    return dict(only(result).every_effect)

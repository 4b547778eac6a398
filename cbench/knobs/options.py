"""Define the validated options of `cbench screen knobs`, and its responses."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quiet import KNOBS, UsageError


@dataclass(frozen=True, slots=True)
class KnobResponse:
    """A response that is measured under each application; less is better. `unit`: the unit of displayed values;
    `scale`: the factor by which values are multiplied to be stored as integers. `adds`: whether causes add up.
    `command`: whether a command or workload is measured instead of the CPUs themselves.
    """

    name: str
    unit: str
    scale: int
    title: str
    adds: bool = True
    command: bool = False


RESPONSES = {
    each.name: each
    for each in (
        KnobResponse("lost", "%", 10**9, "lost share of the isolated CPUs' time"),
        KnobResponse("gap", "us", 10**6, "longest gap on an isolated CPU", adds=False),
        KnobResponse("interrupts", "/s", 10**6, "interrupts per second on an isolated CPU"),
        KnobResponse("median", "ns", 10**3, "median time of a run", command=True),
        KnobResponse(
            "spread", "%", 10**9, "interquartile range of the run times, relative to their median", command=True
        ),
        KnobResponse(
            "floor", "%", 10**9, "noise floor (apparent difference between equal runs A and A')", command=True
        ),
    )
}
FEWEST = 15
"""The minimum of --applications, even for a screening of a few knobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobOptions:
    """The options of a screening. Raises UsageError for invalid ones.

    `cpus`: "" for the profile's. `words`: the command or workload; `trials`: its runs in each application, None for the
    default of `cbench run`. `duration`, `budget`: in seconds; `budget`: None for no limit. `within`: the
    allowed extra noise of the smallest profile, as a share of the noise of the whole profile.
    """

    profile: str = "bench"
    response: str = "lost"
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    cpus: str = ""
    words: tuple[str, ...] = ()
    is_command: bool = False
    trials: int | None = None
    duration: float = 10.0
    within: float = 0.05
    applications: int = 40
    budget: float | None = None
    seed: int = 1
    alpha: float = 0.05

    def __post_init__(self) -> None:
        response = RESPONSES.get(self.response)
        if response is None:
            raise UsageError(f"--response {self.response}: choose one of {', '.join(RESPONSES)}")
        for option, names in (("--only", self.only), ("--without", self.without)):
            for name in names:
                if name not in KNOBS:
                    raise UsageError(f"{option} {name}: unknown knob; `quiet explain` lists the knobs")
        self._check_words(response)
        if not 0.1 <= self.duration <= 3600:
            raise UsageError(f"--duration {self.duration:g}: must be from 0.1 to 3600 seconds")
        if not 0 < self.within <= 10:
            raise UsageError(f"--within {self.within:.0%}: must be above 0 % and at most 1000 %")
        if self.applications < FEWEST:
            raise UsageError(f"--applications {self.applications}: must be at least {FEWEST}")
        if self.budget is not None and not 0 < self.budget < math.inf:  # also refuses nan
            raise UsageError(f"--budget {self.budget:g}: must be a finite number of seconds above 0")
        if self.trials is not None and self.trials < 4:
            raise UsageError(f"--trials {self.trials}: must be at least 4")
        if not 0 < self.alpha < 1:
            raise UsageError(f"--alpha {self.alpha:g}: must lie between 0 and 1")

    def _check_words(self, response: KnobResponse) -> None:
        if response.command and not self.words:
            raise UsageError(f"--response {self.response} measures a command: give a workload, or a command after --")
        if not response.command and self.words:
            choices = ", ".join(name for name, each in RESPONSES.items() if each.command)
            raise UsageError(f"--response {self.response} measures only the CPUs: omit the command, or use {choices}")
        if len(self.words) > 1 and not self.is_command:
            raise UsageError(f"{self.words[1]}: only one workload can be measured; put a command after --")

    @property
    def of(self) -> KnobResponse:
        """The response to measure."""
        return RESPONSES[self.response]


def share(text: str) -> float:
    """The share that a text such as "5%" or "0.05" denotes. Raises UsageError for any other text."""
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise UsageError(f"--within {text}: write a percentage such as 5%") from None

"""Read the measured effect of each knob, which `make effects` writes to effects.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from quiet.knobs.knob import Knob


class MeasuredEffect(NamedTuple):
    """The interruptions of an isolated CPU that a knob removes ("cause before → after/s"), largest first.

    `kernels`: the releases on which the effect was measured, "" if the knob could not be applied alone. `least_per_s`:
    if the knob removed none, the lowest rate of interruptions that the measurement would have detected.
    """

    kernels: str
    removed: tuple[str, ...] = ()
    least_per_s: str = ""


def effect_seen(knob: Knob) -> str:
    """The measured effect of a knob as text; "" if none was measured."""
    measured = measured_effect(knob)
    if knob.effect or measured is None:
        return knob.effect
    if not measured.kernels:
        return "could not be applied alone"
    removed = "; ".join(measured.removed) or f"none detected (limit {measured.least_per_s} events/s)"
    return f"{removed} (Linux {measured.kernels})"


def measured_effect(knob: Knob) -> MeasuredEffect | None:
    """The measured effect of a knob; None if it was not measured in the lab."""
    return _measured().get(knob.name)


@cache
def _measured() -> Mapping[str, MeasuredEffect]:
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "effects.toml"), "rb") as file:
        return {
            name: MeasuredEffect(each["kernels"], tuple(each.get("removed", ())), each.get("least_per_s", ""))
            for name, each in tomllib.load(file).items()
        }

"""What each knob was seen to do, as `make effects` has measured and written it beside this file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from quiet.knobs.knob import Knob


def effect_seen(knob: Knob) -> str:
    """What was measured, in words; "" while nothing was."""
    return knob.effect or _measured().get(knob.name, "")


@cache
def _measured() -> Mapping[str, str]:
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "effects.toml"), "rb") as file:
        return tomllib.load(file)

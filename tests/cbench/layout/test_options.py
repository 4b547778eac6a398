"""Options that draw nothing are refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from cbench.layout.options import LayoutOptions
from quiet import UsageError

FREE = LayoutOptions(
    preset="free",
    build="cc -DSEED={seed} -o {program} prog.c",
    run="",
    objects=(),
    builds=5,
    effect=0.01,
    budget_s=10,
    blocks=None,
    cpus=(),
    profile="",
    timeout=None,
    seed=1,
)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"preset": "luck"}, "--preset 'luck': must be one of alignment"),
        ({"build": ""}, "--build is missing"),
        ({"build": "make SEED={seed}"}, "--build has no {program}"),
        ({"build": "cc -o {program} x.c"}, "--build has no {seed}"),
        ({"preset": "alignment"}, "--build has no {layout}"),
        ({"objects": ("a.o",)}, "--objects applies only to --preset link-order: omit --objects"),
        ({"builds": 2}, "--builds 2: must be from 3 to 200"),
        ({"budget_s": 0.0}, "--budget 0"),
        ({"blocks": 4}, "--blocks 4: must be from 5"),
        ({"timeout": math.nan}, "--timeout nan: must be above 0"),
        ({"timeout": -1.0}, "--timeout -1: must be above 0"),
        (
            {"preset": "link-order", "build": "cc -o {program} {objects}", "objects": ("a.o",)},
            "needs at least two files to link",
        ),
        ({"preset": "environment"}, "builds nothing"),
        ({"preset": "environment", "build": ""}, "--run is missing: give the command to measure"),
        ({"preset": "environment", "build": "", "run": "{program} 1"}, "--run contains {program}, but"),
    ],
)
def test_a_preset_that_randomizes_nothing_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as error:
        replace(FREE, **changes)  # type: ignore[arg-type]
    assert says in str(error.value)

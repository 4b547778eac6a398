"""Layouts are drawn from the seed; options that draw nothing are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cbench.layout.options import LayoutOptions, draw
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


def test_a_layout_is_the_same_for_a_seed_and_another_for_each_build() -> None:
    assert draw(FREE, 3, "/x y/p") == draw(FREE, 3, "/x y/p")
    commands = {draw(FREE, number, "/x y/p").build for number in range(5)}
    assert len(commands) == 5
    assert all(command.startswith("cc -DSEED=") and command.endswith("-o '/x y/p' prog.c") for command in commands)
    assert draw(replace(FREE, seed=2), 3, "/p") != draw(FREE, 3, "/p")


@pytest.mark.parametrize(
    ("preset", "holds"),
    [
        ("alignment", "-falign-functions="),
        ("lld", "-fuse-ld=lld -Wl,--shuffle-sections=*="),
        ("mold", "-fuse-ld=mold -Wl,--shuffle-sections="),
        ("go", "-ldflags=-randlayout="),
    ],
)
def test_a_preset_puts_its_flags_in_the_place_of_layout(preset: str, holds: str) -> None:
    options = replace(FREE, preset=preset, build="build {layout} -o {program}")
    assert holds in draw(options, 0, "/p").build


def test_objects_are_linked_in_a_drawn_order() -> None:
    options = replace(FREE, preset="link-order", build="cc -o {program} {objects}", objects=tuple("abcdef"))
    orders = {tuple(draw(options, number, "/p").build.split()[3:]) for number in range(5)}
    assert len(orders) > 1
    assert {tuple(sorted(each)) for each in orders} == {tuple("abcdef")}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"preset": "luck"}, "--preset 'luck': one of alignment"),
        ({"build": ""}, "--build is missing"),
        ({"build": "make SEED={seed}"}, "--build has no {program}"),
        ({"build": "cc -o {program} x.c"}, "--build has no {seed}"),
        ({"preset": "alignment"}, "--build has no {layout}"),
        ({"objects": ("a.o",)}, "--objects: files for preset link-order"),
        ({"builds": 2}, "--builds 2: from 3 to 200"),
        ({"budget_s": 0.0}, "--budget 0"),
        ({"blocks": 1}, "--blocks 1: from 2"),
        ({"preset": "environment"}, "builds nothing"),
        ({"preset": "environment", "build": ""}, "give the command to measure with --run"),
    ],
)
def test_what_draws_nothing_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as error:
        replace(FREE, **changes)  # type: ignore[arg-type]
    assert says in str(error.value)

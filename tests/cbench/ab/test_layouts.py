"""Layouts are drawn from the seed, and a build command receives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbench.ab.layouts import draw

BUILD = "cc -DSEED={seed} -o {program} prog.c"


def test_a_layout_is_the_same_for_a_seed_and_different_for_each_build() -> None:
    target = Path("/x y/p")
    assert draw("free", 1, 3) == draw("free", 1, 3)
    commands = {draw("free", 1, number).command(BUILD, target) for number in range(5)}
    assert len(commands) == 5
    assert all(command.startswith("cc -DSEED=") and command.endswith("-o '/x y/p' prog.c") for command in commands)
    assert draw("free", 2, 3) != draw("free", 1, 3)


@pytest.mark.parametrize(
    ("preset", "holds"),
    [
        ("alignment", "-falign-functions="),
        ("lld", "-fuse-ld=lld -Wl,--shuffle-sections=*="),
        ("mold", "-fuse-ld=mold -Wl,--shuffle-sections="),
        ("go", "-ldflags=-randlayout="),
    ],
)
def test_a_preset_replaces_layout_by_its_flags(preset: str, holds: str) -> None:
    assert holds in draw(preset, 1, 0).command("build {layout} -o {program}", Path("/p"))


def test_objects_are_linked_in_a_drawn_order() -> None:
    layouts = [draw("link-order", 1, number, "abcdef") for number in range(5)]
    orders = {tuple(each.command("cc -o {program} {objects}", Path("/p")).split()[3:]) for each in layouts}
    assert len(orders) > 1
    assert {tuple(sorted(each)) for each in orders} == {tuple("abcdef")}


def test_the_name_of_an_arm_is_quoted_for_the_shell() -> None:
    assert draw("free", 1, 0).command("cc {arm}.c", Path("/p"), arm="a b; rm x") == "cc 'a b; rm x'.c"

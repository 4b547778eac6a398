"""Known kernel parameters, and those that the bundled profiles want."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet.boot.parameters import cmdline
from quiet.boot.parameters.parameter import FLAG
from quiet.boot.parameters.registry import BY_NAME, PARAMETERS, known
from quiet.settings.profile import bundled, load
from tests.quiet.commands import Quiet
from tests.trees import machine, plant

NEVER = (
    "mitigations",
    "nokaslr",
    "norandmaps",
    "init_on_alloc",
    "nosmt",
    "audit",
    "randomize_kstack_offset",
    "split_lock_detect",
    "idle",
    "maxcpus",
)


def test_each_name_is_known_once_and_in_both_spellings() -> None:
    assert len(BY_NAME) == len(PARAMETERS)
    for item in PARAMETERS:
        assert known(f"{item.name.replace('_', '-')}={item.example}") is item


@pytest.mark.parametrize("item", PARAMETERS, ids=[item.name for item in PARAMETERS])
def test_a_parameter_says_why_and_where_it_is_documented(quiet: Quiet, item: object) -> None:
    parameter = next(other for other in PARAMETERS if other is item)
    assert parameter.why
    assert not parameter.why.endswith(".")
    assert (parameter.takes == FLAG) == (not parameter.example)
    done = quiet("explain", parameter.name)
    assert all(text in done.out for text in (parameter.why, parameter.document, parameter.risk))
    shape = quiet("explain", parameter.name, "--json").json
    assert shape.get("boot", shape)["doc"] == parameter.document  # some are knobs too, by the same name


def test_a_parameter_reports_the_interruptions_that_it_stops(quiet: Quiet) -> None:
    assert "\n  stops " in quiet("explain", "nohz-full").out
    assert quiet("explain", "rcu_nocbs", "--json").json["stops"]


@pytest.mark.parametrize("name", bundled())
def test_a_bundled_profile_wants_only_known_words_and_none_that_weakens_security(name: str) -> None:
    wanted = load(name).boot
    assert wanted
    for word in wanted:
        parameter = known(word)
        assert parameter, word
        assert parameter.name not in NEVER
        assert ("{" in word) == parameter.cpus
    assert len({cmdline.name(word) for word in wanted}) == len(wanted)


def test_strict_wants_all_that_bench_wants() -> None:
    assert set(load("bench").boot) < set(load("strict").boot)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            '["nohz_full={isolatd}"]',
            "'nohz_full={isolatd}': unknown placeholder; the known placeholders are {isolated}, {housekeeping}, {do",
        ),
        ('["a b"]', "'a b' is not a valid kernel parameter"),
        ('["x=$(reboot)"]', "is not a valid kernel parameter"),
        ("[]", "sets no kernel parameters"),
    ],
)
def test_a_profile_that_wants_something_else_is_refused_in_one_line(
    quiet: Quiet, tmp_path: Path, wanted: str, said: str
) -> None:
    (tmp_path / "mine.toml").write_text(f"[boot]\nwanted = {wanted}\n")
    root = plant(tmp_path / "machine", machine(4))
    done = quiet("boot", "plan", "--root", root, "--profile", tmp_path / "mine.toml")
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_plan_lists_the_words_that_boot_apply_would_add(quiet: Quiet, tmp_path: Path) -> None:
    root = plant(tmp_path, machine(4))
    assert "`quiet boot apply` would add:\n  isolcpus=managed_irq,2-3" in quiet("plan", "--all", "--root", root).out
    assert "`quiet boot plan`): isolcpus=managed_irq,2-3" in quiet("plan", "--root", root).out

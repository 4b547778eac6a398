"""docs/knobs.md and `quiet explain` say of every knob and kernel parameter what the code has, and nothing else."""

from __future__ import annotations

import pytest

from quiet.boot.parameters.cmdline import name
from quiet.boot.parameters.registry import PARAMETERS
from quiet.cli import json_output
from quiet.cli import text as render
from quiet.knobs.knob import Knob
from quiet.knobs.registry import BY_NAME, KNOBS
from quiet.settings.profile import Profile, load
from tests import CHECKOUT

PAGE = (CHECKOUT / "docs" / "knobs.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the tables of one part of the page, without the heads."""
    part = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def at_boot(profile: Profile, parameter: str) -> str:
    words = [word for word in profile.boot if name(word) == name(parameter)]
    return f"`{words[0]}`" if words else ""


def test_the_page_has_every_knob_once() -> None:
    assert sorted(row[0].strip("`") for row in rows("At run time")) == sorted(BY_NAME)


def test_the_page_says_what_a_knob_is_and_what_the_profiles_choose() -> None:
    bench, strict = load("bench").knobs, load("strict").knobs
    for knob, what, in_bench, in_strict, also in rows("At run time"):
        found = BY_NAME[knob.strip("`")]
        assert (what, in_bench, in_strict) == (found.title, bench[found.name], strict[found.name]), knob
        assert also, knob


def test_the_page_has_every_kernel_parameter_with_its_reason_and_the_profiles_choices() -> None:
    told = rows("On the kernel command line")
    expected = [
        [f"`{item.name}`", item.why, at_boot(load("bench"), item.name), at_boot(load("strict"), item.name)]
        for item in PARAMETERS
    ]
    assert told == expected


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_explain_tells_order_entanglement_targets_and_risk(knob: Knob, capsys: pytest.CaptureFixture[str]) -> None:
    told = json_output.knob(knob)
    assert (told["after"], told["targets"], told["why"]) == (list(knob.after), knob.targets, knob.why)
    assert (told["risk"], told["entangled"]) == (knob.risk or None, knob.moves or None)
    assert bool(knob.moves) == (knob.entangled is not BY_NAME["aslr"].entangled)
    render.explain(knob, [])
    words = " ".join(capsys.readouterr().out.split())
    assert all(text in words for text in (knob.why, knob.targets, knob.moves, knob.risk, *knob.after))


WRONG = ("arch/x86/tsc", "sysfs-devices-power (energy_perf_bias)")


def test_no_document_is_named_that_the_kernel_does_not_have_or_that_says_nothing_of_it() -> None:
    named = [knob.doc for knob in KNOBS] + [item.document for item in PARAMETERS]
    assert not [doc for doc in named if any(wrong in doc for wrong in WRONG)]


@pytest.mark.parametrize(
    ("knob", "said"),
    [
        ("rt_throttling", "from Linux 6.12 on the fair server takes that time instead"),
        ("perf.sample_rate", "perf record -F"),
        ("rcu.normal", "interrupts only CPUs that hold it up"),
        ("clocksource", "or a hypervisor's"),
    ],
)
def test_what_a_knob_does_not_stop_or_what_it_costs_is_said(knob: str, said: str) -> None:
    assert said in f"{BY_NAME[knob].why} {BY_NAME[knob].risk}"


def test_links_are_kept_awake_by_a_policy_and_not_by_leaving_them_alone() -> None:
    items = {item.name: item for item in PARAMETERS}
    assert "awake" in items["pcie_aspm.policy"].why
    assert "awake" not in items["pcie_aspm"].why


LEFT_OUT = ("`rq_affinity`", "`sched_itmt_enabled`", "`halt_poll_ns`", "the fair server")
KNOWN = {"preempt", "default_hugepagesz", "cpuidle.off", "amd_prefcore", "rcupdate.rcu_cpu_stall_suppress"}


def test_what_others_ask_for_is_either_known_or_left_out_with_the_reason() -> None:
    part = PAGE.partition("## What others have and `quiet` leaves out")[2]
    assert all(name in part for name in LEFT_OUT)
    assert {item.name for item in PARAMETERS} >= KNOWN

"""docs/knobs.md and `quiet explain` agree with the code about every knob and kernel parameter."""

from __future__ import annotations

import pytest

from quiet.boot.parameters.registry import PARAMETERS
from quiet.cli import json_output
from quiet.cli import text as render
from quiet.knobs.effects import effect_seen
from quiet.knobs.knob import Knob
from quiet.knobs.registry import BY_NAME, KNOBS
from quiet.settings.profile import bundled
from tests.quiet.knobs import page

PAGE = page.FILE.read_text()


def names(heading: str) -> list[str]:
    """The prefix of the rows of one part of the page."""
    lines = page.part(PAGE, heading).splitlines()
    return [line.split("`")[1] for line in lines if line.startswith("| `")]


def test_the_page_has_every_knob_once() -> None:
    assert sorted(names(page.RUN_TIME)) == sorted(BY_NAME)


def test_the_page_has_every_kernel_parameter_in_the_order_of_the_tables() -> None:
    assert names(page.BOOT) == [item.name for item in PARAMETERS]


@pytest.mark.slow
def test_every_row_agrees_with_the_code() -> None:
    assert page.written(PAGE) == PAGE, "run `python -m tests.quiet.knobs.page`"


def test_every_knob_names_what_other_tools_have() -> None:
    rows = [line for line in page.part(PAGE, page.RUN_TIME).splitlines() if line.startswith("| `")]
    assert all(row.removesuffix(" |").rpartition(" | ")[2].strip() for row in rows)


def test_every_profile_has_a_column() -> None:
    assert list(page.PROFILES) == bundled()


def test_a_knob_writes_a_file_a_call_or_a_unit() -> None:
    assert BY_NAME["irq"].paths == "/proc/irq/N/smp_affinity_list"
    assert BY_NAME["timer_migration"].paths == "/proc/sys/kernel/timer_migration"
    assert BY_NAME["services"].paths == "unit:NAME"
    assert not [knob.name for knob in KNOBS if not knob.paths or " of every" in knob.paths]


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_explain_reports_order_entanglement_targets_and_risk(knob: Knob, capsys: pytest.CaptureFixture[str]) -> None:
    output = json_output.knob(knob)
    assert (output["after"], output["targets"], output["why"]) == (list(knob.after), knob.targets, knob.why)
    assert (output["risk"], output["entangled"]) == (knob.risk or None, knob.moves or None)
    assert (output["paths"], output["kernels"], output["effect"]) == (
        knob.paths,
        knob.kernels or None,
        effect_seen(knob) or None,
    )
    assert bool(knob.moves) == (knob.entangled is not BY_NAME["aslr"].entangled)
    render.explain(knob, [])
    words = " ".join(capsys.readouterr().out.split())
    assert all(
        text in words
        for text in (
            knob.why,
            knob.targets,
            knob.moves,
            knob.risk,
            knob.kernels,
            knob.paths,
            effect_seen(knob) or "not measured yet",
            *knob.after,
        )
    )


WRONG = ("arch/x86/tsc", "sysfs-devices-power (energy_perf_bias)")


def test_no_document_is_named_that_the_kernel_does_not_have_or_that_says_nothing_of_it() -> None:
    named = [knob.doc for knob in KNOBS] + [item.document for item in PARAMETERS]
    assert not [doc for doc in named if any(wrong in doc for wrong in WRONG)]


@pytest.mark.parametrize(
    ("knob", "said"),
    [
        ("rt_throttling", "the fair server takes this time"),
        ("perf.sample_rate", "perf record -F"),
        ("rcu.normal", "interrupts only CPUs that delay it"),
        ("clocksource", "or a hypervisor's"),
    ],
)
def test_a_knobs_limits_and_costs_are_reported(knob: str, said: str) -> None:
    assert said in f"{BY_NAME[knob].why} {BY_NAME[knob].risk}"


def test_links_are_kept_awake_by_a_policy_and_not_by_leaving_them_alone() -> None:
    items = {item.name: item for item in PARAMETERS}
    assert "awake" in items["pcie_aspm.policy"].why
    assert "awake" not in items["pcie_aspm"].why


LEFT_OUT = (
    *("`rq_affinity`", "`sched_itmt_enabled`", "`halt_poll_ns`", "taken offline and online to flush timers"),
    *("prefetchers", "APST", "clock discipline", "page_alloc.shuffle", "`wbt_lat_usec`", "runtime power management"),
    *("freeze_on_smi", "Data Fabric", "tmpfs", "power-limit"),
)
KNOWN = {"preempt", "default_hugepagesz", "cpuidle.off", "amd_prefcore", "rcupdate.rcu_cpu_stall_suppress"}


def test_settings_of_other_tools_are_either_known_or_left_out_with_the_reason() -> None:
    part = PAGE.partition("## Settings of other tools that quiet omits")[2]
    assert all(name in part for name in LEFT_OUT)
    assert {item.name for item in PARAMETERS} >= KNOWN

"""An experiment's tables that contradict each other: boots, the levels a reset finds, samples, sizes of designs."""

from __future__ import annotations

import pytest

from cbench.screen.config import treatments
from cbench.screen.config.file import parse
from cbench.screen.config.model import Screen
from quiet.errors import UsageError
from tests.cbench.screen.running import experiment, factor

REBOOT = "[reset]\nkind = 'reboot'\ncommand = 'x'\n"


def read(text: str) -> Screen:
    return parse(text, "e.toml", "/tmp")


def said(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def boot(name: str, *words: str, other: str = "kernel = []") -> str:
    return factor(name, {"0": other, "1": f"kernel = {list(words)}"}, "hard = true")


def two(name: str) -> str:
    return factor(name, {each: f"environment = {{ V_{name.replace('-', '_')} = '{each}' }}" for each in "01"})


def held(name: str) -> str:
    return two(name).replace("\n\n", "\nhard = true\n", 1)


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        (["nosmt"], ["nosmt"], "nosmt"),
        (["quiet", "nosmt"], ["nosmt"], "nosmt"),
        (["mitigations=off"], ["mitigations=auto"], "mitigations"),
    ],
)
def test_two_factors_that_set_the_same_parameter_of_the_kernel_are_refused(
    one: list[str], other: list[str], what: str
) -> None:
    text = experiment(boot("a", *one), boot("b", *other), more=REBOOT)
    assert f"factor[2].level: a and b both set the kernel parameter {what}: merge them into one factor" in said(text)


def test_two_factors_may_set_different_parameters_of_the_kernel() -> None:
    screen = read(experiment(boot("a", "nosmt"), boot("b", "mitigations=off"), more=REBOOT))
    assert len(treatments.treatments(screen)) == 4


def test_two_boots_with_the_same_words_are_not_two_levels() -> None:
    text = experiment(boot("a", "nosmt", other="kernel = ['nosmt']"), more=REBOOT)
    assert "factor[1].level[2]: the level '1' has the same settings as '0'" in said(text)


def test_a_level_without_words_is_found_in_every_factor_that_a_boot_sets() -> None:
    text = experiment(boot("a", "nosmt"), boot("b", "quiet", other="found = true"), more=REBOOT)
    assert "factor[2].level: b: the level '0' does not list its kernel parameters" in said(text)


@pytest.mark.parametrize("reset", [REBOOT, REBOOT.replace("reboot", "command")])
def test_factors_whose_levels_a_reset_could_not_distinguish_are_refused(reset: str) -> None:
    where = "the command in [reset] reads the level from $CBENCH_LEVEL_"
    text = experiment(held("a"), held("A"), more=reset)
    assert f"factor[2].name: 'A': {where}A, which 'a' also uses: choose another name" in said(text)
    text = experiment(held("my-factor"), more=reset)
    assert f"e.toml:4: factor[1].name: 'my-factor': {where}MY-FACTOR: use only letters, digits and _" in said(text)


def test_names_that_no_reset_uses_are_unrestricted() -> None:
    assert read(experiment(held("a"), held("A")))
    assert read(experiment(held("my-factor"), more="[reset]\nkind = 'drop-caches'\n"))
    assert read(experiment(held("1_a"), two("my-factor"), two("A"), two("a"), more=REBOOT))


def sampled(read_: str, *levels: str, more: str = "") -> str:
    """An experiment with a response of samples and these profilers."""
    ways = {str(number): f"profiler = '{level}'" for number, level in enumerate(levels)}
    return experiment(factor("p", ways), more=f"[[response]]\nname = 'n'\nread = '{read_}'\n{more}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            sampled("samples:", "fp", "dwarf,hz=500"),
            "p=0 samples cpu-clock at 1,000 Hz and p=1 samples cpu-clock at 500 Hz: sample counts cannot be compared",
        ),
        (
            sampled("samples:", "none", "fp,event=cycles", "dwarf"),
            "p=1 samples cycles at 1,000 Hz and p=2 samples cpu-clock at 1,000 Hz: sample counts cannot be compared",
        ),
        (
            sampled("samples:event=cpu-clock,hz=1000", "fp,hz=500", "dwarf,hz=500"),
            "p=0 samples cpu-clock at 500 Hz and n requests cpu-clock at 1,000 Hz",
        ),
        (
            sampled("samples:hz=500", "fp,event=cpu-clock", "dwarf,event=cpu-clock"),
            "p=0 samples cpu-clock at 1,000 Hz and n requests cpu-clock at 500 Hz",
        ),
        (
            sampled("samples:event=cycles", "fp,period=1000", "dwarf,period=1000"),
            "p=0 samples cpu-clock every 1,000 events and n requests cycles at 1,000 Hz",
        ),
        (
            sampled("samples:fp", "none", "fp"),
            'p=0 is not sampled (profiler = "none"), but n requests a call graph: omit the call graph',
        ),
    ],
)
def test_samples_that_are_not_the_same_thing_in_all_treatments_are_refused(text: str, words: str) -> None:
    assert said(text).endswith(f"response[2].read: {words}")


def test_two_ways_to_sample_one_treatment_are_refused_before_anything_runs() -> None:
    assert "p=1 is sampled in two ways: use either dwarf or fp" in said(sampled("samples:fp", "fp", "dwarf"))
    assert "p=1 is sampled in two ways" in said(sampled("samples:fp", "fp", "dwarf,hz=1000"))
    text = sampled("samples:", "fp", "dwarf", more="[[response]]\nname = 'm'\nread = 'samples:hz=500'\n")
    assert "p=0 is sampled in two ways, but runs under one `perf record`: use one event and rate" in said(text)


def test_the_rate_may_be_given_by_the_levels_or_by_the_response() -> None:
    for text in (
        sampled("samples:", "none", "fp,hz=500", "dwarf,hz=500"),
        sampled("samples:hz=500", "none", "fp", "dwarf"),
        sampled("samples:hz=500", "none", "fp,hz=500", "dwarf"),
    ):
        screen = read(text)
        how = [treatments.sampled(screen, each, screen.workloads[0]) for each in treatments.treatments(screen)]
        assert [each and (each.call_graph, each.event, each.hz) for each in how] == [
            None,
            ("fp", "cpu-clock", 500),
            ("dwarf", "cpu-clock", 500),
        ]


def test_rates_may_differ_where_no_response_counts_the_samples_or_one_treatment_has_none() -> None:
    assert read(experiment(factor("p", {"0": "profiler = 'fp,hz=500'", "1": "profiler = 'fp,hz=2000'"})))
    more = "[[constraint]]\nkind = 'unobtainable'\nwhere = 'p=0'\nresponses = ['n']\nreason = 'another rate'\n"
    assert read(sampled("samples:", "fp,hz=500", "fp,hz=2000", more=more))


def test_a_size_that_contradicts_the_generators_is_refused() -> None:
    head = "iterations = 1\ndesign = 'fraction'\nruns = {}\ngenerators = ['C=AB']"
    factors = [two(name) for name in "abc"]
    text = experiment(*factors, head=head.format(8))
    assert said(text) == "e.toml:4: screen.runs: 8: the requested design has 4 treatments: write this number"
    assert len(treatments.treatments(read(experiment(*factors, head=head.format(4))))) == 4


@pytest.mark.parametrize("character", ["\\u001b", "\\u0007", "\\u0001", "\\u007f", "\\u009b"])
def test_a_name_has_no_control_character(character: str) -> None:
    name = f'"a{character}[31m"'
    plain = experiment(two("a"))
    for place, text in (
        ("factor[1].name", plain.replace("name = 'a'", f"name = {name}")),
        ("factor[1].level[1].name", plain.replace("name = '0'", f"name = {name}")),
        ("response[1].name", plain.replace("name = 'y'", f"name = {name}")),
        ("workload[1].name", plain.replace("[[workload]]\n", f"[[workload]]\nname = {name}\n")),
    ):
        assert text != plain
        message = said(text)
        assert f"{place}: " in message
        assert message.isprintable()


def test_names_may_be_of_any_alphabet() -> None:
    assert read(experiment(two("a").replace("name = 'a'", "name = 'größe'"))).factors[0].name == "größe"

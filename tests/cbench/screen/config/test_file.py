"""An experiment's file: an error is named with file, line and key, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbench.screen.config import treatments
from cbench.screen.config.example import EXAMPLE
from cbench.screen.config.file import load, parse
from cbench.screen.config.model import Screen
from quiet.errors import UsageError
from tests.cbench.screen.running import experiment, factor

A = factor("a", {"0": "found = true", "1": "environment = { A = '1' }"})
B = factor("b", {"0": "aslr = false", "1": "aslr = true"})
HARD = factor("h", {"0": "found = true", "1": "command = 'x'\nrestore = 'y'"}, "hard = true")
BOOT = factor("k", {"0": "kernel = []", "1": "kernel = ['nosmt']"}, "hard = true")
REBOOT = "[reset]\nkind = 'reboot'\ncommand = 'x'\n"


def read(text: str) -> Screen:
    return parse(text, "e.toml", "/tmp")


def said(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_example_is_an_experiment_with_eight_treatments() -> None:
    screen = parse(EXAMPLE, "example.toml", "/somewhere")
    assert [factor.names for factor in screen.factors] == [("O0", "O2"), ("off", "on"), ("small", "large")]
    assert len(treatments.treatments(screen)) == 8
    assert (screen.folder, screen.seed, screen.confidence) == ("/somewhere", 1, 0.95)


def test_omitted_keys_have_their_defaults() -> None:
    screen = read(experiment(A, B))
    assert (screen.batches, screen.seed, screen.alpha, screen.design, screen.reset.kind) == (1, 1, 0.05, "full", "none")
    assert [response.metric.source for response in screen.responses] == ["last-float"]


def test_treatments_are_numbered_with_the_last_factor_changing_first() -> None:
    found = treatments.treatments(read(experiment(A, B)))
    assert [each.name for each in found] == ["a=0 b=0", "a=0 b=1", "a=1 b=0", "a=1 b=1"]
    assert [each.number for each in found] == [0, 1, 2, 3]


def test_excluded_treatments_are_not_run_questionable_ones_are_marked_and_responses_may_be_unobtainable() -> None:
    more = (
        "[[response]]\nname = 'z'\n"
        "[[constraint]]\nkind = 'excluded'\nwhere = 'a=0 b=0'\nreason = 'r1'\n"
        "[[constraint]]\nkind = 'questionable'\nwhere = 'a=1 b=*'\nreason = 'r2'\n"
        "[[constraint]]\nkind = 'unobtainable'\nwhere = 'b=1'\nreason = 'r3'\nresponses = ['z']\n"
    )
    found = treatments.treatments(screen := read(experiment(A, B, more=more)))
    assert [each.name for each in found] == ["a=0 b=1", "a=1 b=0", "a=1 b=1"]
    assert [each.questionable for each in found] == ["", "r2", "r2"]
    assert [dict(each.unobtainable) for each in found] == [{"z": "r3"}, {}, {"z": "r3"}]
    tests = treatments.study_tests(screen, found, lambda treatment: "")
    assert [[metric.name for metric in test.metrics] for test in tests] == [["y"], ["y", "z"], ["y"]]


def test_the_technical_notes_design_has_twelve_treatments_and_three_abridgments() -> None:
    os = factor("os", {"0": "found = true", "1": "command = 'x'\nrestore = 'y'"}, "hard = true")
    fp = factor("fp", {"0": "flags = '-fomit-frame-pointer'", "1": "flags = '-fno-omit-frame-pointer'"})
    prf = factor("prf", {"0": "profiler = 'none'", "1": "profiler = 'fp'", "2": "profiler = 'dwarf'"})
    more = (
        "[[response]]\nname = 'samples'\nread = 'samples:'\n"
        "[[constraint]]\nkind = 'questionable'\nwhere = 'fp=0 prf=2'\nreason = 'dysfunctional'\n"
        "[[abridgment]]\nname = 'first'\nminus = ['fp=0 prf=2']\n"
        "[[abridgment]]\nname = 'second'\nminus = ['prf=2']\n"
        "[[abridgment]]\nname = 'third'\nonly = ['fp=0 prf=1', 'fp=1 prf=2']\n"
    )
    screen = read(experiment(os, fp, prf, head="iterations = 1\nbuild = 'true'", more=more))
    found = treatments.treatments(screen)
    assert len(found) == 12
    assert [sum(one.keeps(each.levels) for each in found) for one in screen.abridgments] == [10, 8, 4]
    assert sum("samples" not in each.unobtainable for each in found) == 8
    workload = screen.workloads[0]
    sampled = [treatments.sampled(screen, each, workload) for each in found[:3]]
    assert [each and each.call_graph for each in sampled] == [None, "fp", "dwarf"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            experiment(factor("a", {"0": "", "1": "aslr = true"})),
            "e.toml:6: factor[1].level[1]: the level '0' has no setting",
        ),
        (experiment(factor("a", {"0": "found = false", "1": "aslr = true"})), "has no setting"),
        (
            experiment(factor("a", {"0": "found = true\ncpus = '0'", "1": "aslr = true"})),
            "the level '0' has both found = true and cpus",
        ),
        (experiment(factor("a", {"0": "found = true"})), "'a' has 1: a factor needs at least 2 levels"),
        (experiment(A, A), "factor[2].name: 'a' appears twice"),
        (experiment(A.replace("'1'\n", "'0'\n", 1)), "'0' appears twice"),
        (experiment(), "factor: is missing: an experiment needs at least one [[factor]]"),
        ("[screen]\n" + A, "workload: is missing"),
        (f"[screen]\niterations = 1\n{A}[[workload]]\ncommand = 'x'\n", "response: is missing"),
        (experiment(A, head=""), "e.toml:1: screen.iterations: is missing"),
        (experiment(A, head="iterations = 0"), "e.toml:2: screen.iterations: 0: must be from 1 to 1,000,000"),
        (experiment(A, head="iterations = 1\nrepetitions = 2"), "screen.repetitions: unknown; valid here:"),
        (experiment(A.replace("'a'", "'a b'")), "write a string without spaces, control characters, = , * or :"),
        (experiment(A.replace("'a'", "'batch'")), "'batch' is a reserved column name"),
        (experiment(A.replace("'a'", "'y'")), "response[1].name: 'y' is also the name of a factor"),
        (experiment(factor("a", {"0": "found = true", "1": "restore = 'x'\naslr = true"})), "has no command to undo"),
        (experiment(factor("a", {"0": "found = true", "1": "cpus = 'x'"})), "factor[1].level[2].cpus"),
        (
            experiment(factor("a", {"0": "found = true", "1": "knob = 'nothing'"})),
            "'nothing': unknown; `quiet explain`",
        ),
        (experiment(factor("a", {"0": "found = true", "1": "profile = 'nothing'"})), "nothing: no such profile"),
        (experiment(factor("a", {"0": "found = true", "1": "profiler = 'gprof'"})), "profiler: 'gprof'"),
        (experiment(factor("a", {"0": "found = true", "1": "profiler = 'hz=9'"})), "begin with the call graph"),
        (experiment(factor("a", {"0": "found = true", "1": "command = ' '"})), "factor[1].level[2].command: is empty"),
        (
            experiment(factor("a", {"0": "found = true", "1": "flags = '-O2'"})),
            "apply to `build` in [screen], which is missing: add it",
        ),
        (experiment(factor("a", {"0": "found = true", "1": "environment = { CBENCH_RUN = '1' }"})), "cbench sets it"),
        (
            experiment(factor("a", {"0": "found = true", "1": "environment = { 'A=B' = '1' }"})),
            "not the name of an environment variable",
        ),
        (experiment(A, B, B.replace("'b'", "'c'")), "b and c both set aslr: merge them into one factor"),
        (experiment(A, A.replace("'a'", "'c'")), "a and c both set the variable A"),
        (experiment(A, more="[environment]\nA = '2'\n"), "a and [environment] both set A: remove one of them"),
        (
            experiment(*(factor(n, {"0": "found = true", "1": "knob = 'timer_migration'"}) for n in "ab")),
            "a and b both set the knob timer_migration",
        ),
        (
            experiment(
                factor("a", {"0": "found = true", "1": "knob = 'timer_migration'"}),
                head="iterations = 1\nprofile = 'bench'",
            ),
            "screen.profile: a (factor 1) applies its own settings",
        ),
        (
            experiment(
                factor("a", {"0": "found = true", "1": "governor = 'powersave'"}),
                factor("b", {"0": "found = true", "1": "knob = 'cpufreq.governor'"}),
            ),
            "a and b both set the knob cpufreq.governor",
        ),
        (
            experiment(
                factor("a", {"0": "found = true", "1": "profile = 'bench'"}),
                factor("b", {"0": "found = true", "1": "governor = 'powersave'"}),
            ),
            "a applies a profile, which the knobs of b would change: use one factor",
        ),
        (
            experiment(
                factor("a", {"0": "found = true", "1": "knob = 'timer_migration'"}),
                factor("b", {"0": "found = true", "1": "governor = 'powersave'"}, "hard = true"),
            ),
            "a applies quiet's settings for a trial and b for a batch",
        ),
        (experiment(BOOT.replace("hard = true", "")), "changes only at boot: write hard = true"),
        (experiment(BOOT), 'reset: k changes only at boot: write kind = "reboot" in [reset]'),
        (
            experiment(BOOT, more="[reset]\nkind = 'reboot'\n"),
            "a `command` in [reset] that boots with the parameters",
        ),
        (
            experiment(BOOT.replace("kernel = []", "found = true"), more=REBOOT),
            "'0' does not list its kernel parameters",
        ),
        (experiment(A, head="iterations = 1\nsequence = ['0']"), "requires exactly one hard factor; there are 0"),
        (experiment(HARD, head="iterations = 1\nsequence = ['0', '2']"), "h has no level '2'"),
        (
            experiment(HARD, head="iterations = 1\nsequence = ['0', '0', '1']"),
            "lists the level '0' 2 times; batches = 1 requires",
        ),
        (experiment(A, head="iterations = 1\nruns = 4"), 'runs: does not apply to design = "full"'),
        (experiment(HARD, head="iterations = 1\ndesign = 'fraction'"), "does not support batches, but h is hard"),
        (
            experiment(
                factor("a", {n: f"environment = {{ A = '{n}' }}" for n in "012"}),
                head="iterations = 1\ndesign = 'plackett-burman'",
            ),
            "is only for factors with two levels; a has more",
        ),
        (experiment(A, B, head="iterations = 1\ndesign = 'fraction'\ngenerators = ['x']"), "x"),
        (experiment(A, more="[[constraint]]\nkind = 'bad'\n"), "one of excluded, questionable, unobtainable"),
        (
            experiment(A, more="[[constraint]]\nkind = 'excluded'\nwhere = 'c=1'\nreason = 'r'\n"),
            "constraint[1].where: unknown factor 'c'; the factors are a",
        ),
        (
            experiment(A, more="[[constraint]]\nkind = 'excluded'\nwhere = 'a=2'\nreason = 'r'\n"),
            "a has no level '2'; its levels are 0, 1",
        ),
        (
            experiment(A, more="[[constraint]]\nkind = 'excluded'\nwhere = 'a=0,1'\nreason = 'r'\n"),
            "every treatment is excluded",
        ),
        (
            experiment(A, B, more="[[constraint]]\nkind = 'excluded'\nwhere = 'a=0'\nreason = 'r'\n"),
            "every treatment with a=0 is excluded: remove the level",
        ),
        (
            experiment(
                A,
                B,
                more="".join(
                    f"[[constraint]]\nkind = '{k}'\nwhere = 'a=0 b=0'\nreason = 'r'\n"
                    for k in ("excluded", "questionable")
                ),
            ),
            "constraint[2].where: matches no treatment that is run",
        ),
        (
            experiment(
                A, more="[[constraint]]\nkind = 'unobtainable'\nwhere = 'a=0'\nreason = 'r'\nresponses = ['y']\n"
            ),
            "a=0 has no response left for 'workload': exclude the treatment instead",
        ),
        (
            experiment(A, more="[[constraint]]\nkind = 'unobtainable'\nwhere = 'a=0'\nreason = 'r'\n"),
            "responses: is missing: list the unobtainable responses",
        ),
        (experiment(A, more="[[abridgment]]\nname = 'x'\n"), "abridgment[1].minus: is missing"),
        (experiment(A, more="[[abridgment]]\nname = 'x'\nminus = ['a=0,1']\n"), "'x' keeps no treatment"),
        (experiment(A, more="[[abridgment]]\nname = 'x'\nonly = ['a=*']\n"), "'x' leaves out no treatment"),
        (experiment(A, more="[[abridgment]]\nname = 'x'\nminus = ['a']\n"), "write FACTOR=LEVEL"),
        (experiment(A, more="[[controlled]]\nname = 'x'\n"), "write either `value`, or a `command`"),
        (
            experiment(
                *(
                    factor(f"f{n}", {str(level): f"environment = {{ V{n} = '{level}' }}" for level in range(10)})
                    for n in range(5)
                )
            ),
            "100000 treatments; at most 10000",
        ),
        (experiment(A, head="iterations = 1000000\nbatches = 10000"), "trials; at most 100,000,000 are supported"),
        (experiment(A, more="[[response]]\nname = 'v'\nread = 'value'\n"), "cannot be read from commands"),
        (experiment(A, more="[[response]]\nname = 'v'\nworkloads = ['w']\n"), "'w': must be one of workload"),
    ],
)
def test_an_error_is_reported_in_one_line_that_names_the_place(text: str, words: str) -> None:
    assert words in said(text)
    assert said(text).startswith("e.toml")


def test_a_workload_of_cbench_can_have_neither_a_profiler_nor_several_cpus() -> None:
    workload = "[[workload]]\nworkload = 'hash'\n[[response]]\nname = 'y'\n"
    for way, words in (
        ("profiler = 'fp'", "`perf record` works only with commands"),
        ("cpus = '0-1'", "runs on one CPU"),
    ):
        text = f"[screen]\niterations = 1\n{factor('a', {'0': 'found = true', '1': way})}{workload}"
        assert words in said(text)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory; `cbench screen init` writes an example"):
        load(tmp_path / "e.toml")


def test_a_screen_states_once_how_its_commands_numbers_are_read() -> None:
    made = read(experiment(A, head="iterations = 2\nread = 'wall'"))
    assert made.responses[0].metric.source == "wall"
    own = read(experiment(A, head="iterations = 2\nread = 'wall'", more="read = 'user'\n"))
    assert own.responses[0].metric.source == "user"

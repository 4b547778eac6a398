"""A study file: each error message contains the file, line and key."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cbench.study.config import load, parse
from cbench.study.example import EXAMPLE
from cbench.study.toml_table import MOST_BYTES, line_of, lines
from quiet.errors import UsageError

PLAIN = """
[study]
repetitions = 10

[[test]]
name = "a"
command = "echo 1"

[[test]]
name = "b"
workload = "hash"
params = { n = 1000 }

[[test]]
name = "c"
command = "x"
[[test.metric]]
name = "latency"
read = "regex:lat=([0-9.]+)"
[[test.metric]]
name = "rate"
read = "json:a.b"
better = "higher"
"""


def said(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse(text, "s.toml", "/tmp")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_example_is_a_study_with_every_kind_of_test() -> None:
    study = parse(EXAMPLE, "example.toml", "/somewhere")
    assert [test.name for test in study.tests] == ["sort", "hash", "both"]
    assert [metric.name for metric in study.tests[2].metrics] == ["latency", "throughput"]
    assert study.folder == "/somewhere"


def test_tests_keep_their_order_and_omitted_keys_have_their_defaults() -> None:
    study = parse(PLAIN, "s.toml", "/tmp")
    assert [test.name for test in study.tests] == ["a", "b", "c"]
    assert (study.design, study.seed, study.alpha, study.reset.kind) == ("interleaved", 1, 0.05, "none")
    assert study.tests[0].metrics[0].source == "last-float"
    assert study.tests[1].metrics[0].source == "value"
    assert [(each.name, each.better) for each in study.tests[2].metrics] == [("latency", "lower"), ("rate", "higher")]


WRONG = [
    ('command = "echo 1"', 'comand = "echo 1"', "s.toml:7: test[1].comand: unknown; did you mean command?"),
    ('command = "echo 1"', 'run = "echo 1"', "s.toml:5: test[1].command: a test is either a command or a workload"),
    ("repetitions = 10", "repititions = 10", "s.toml:3: study.repititions: unknown; did you mean repetitions?"),
    ("repetitions = 10", "", "s.toml:2: study.repetitions: is missing"),
    ("repetitions = 10", "repetitions = 0", "s.toml:3: study.repetitions: 0: must be from 1 to 1,000,000"),
    ("repetitions = 10", "repetitions = true", "s.toml:3: study.repetitions: True: must be a whole number"),
    ("repetitions = 10", "repetitions = 10\nalpha = nan", "s.toml:4: study.alpha: nan: must be from 1e-09 to 0.5"),
    (
        "repetitions = 10",
        'repetitions = 10\ndesign = "abab"',
        "s.toml:4: study.design: 'abab': must be one of interleaved",
    ),
    (
        "repetitions = 10",
        'repetitions = 10\ndesign = "williams"',
        "s.toml:3: study.repetitions: 10: must be a multiple of 6 for 3 tests",
    ),
    ("repetitions = 10", 'repetitions = 10\ncpus = "2"', "s.toml:4: study.cpus: needs a profile"),
    ("repetitions = 10", "repetitions = 10\nrepeat = 1", "s.toml:4: study.repeat: unknown; valid here: "),
    ('name = "b"', 'name = "a"', "s.toml:10: test[2].name: 'a' appears twice"),
    ('name = "b"', 'name = "a:b"', "s.toml:10: test[2].name: 'a:b': must be a nonempty name without colons"),
    ("n = 1000", "n = 1.5", "s.toml:12: test[2].params.n: must be a whole number"),
    ("([0-9.]+)", "[0-9.]+", "s.toml:19: test[3].metric[1].read: 'lat=[0-9.]+': must have exactly one group"),
    ("([0-9.]+)", "([0-9.]+", "s.toml:19: test[3].metric[1].read: 'lat=([0-9.]+' is not a regular expression"),
    ('"json:a.b"', '"json"', "s.toml:22: test[3].metric[2].read: 'json': must be one of last-float"),
    ('"higher"', '"more"', "s.toml:23: test[3].metric[2].better: 'more': must be one of higher, lower"),
    ('name = "rate"', 'name = "latency"', "s.toml:21: test[3].metric[2].name: 'latency' appears twice"),
    ("repetitions = 10", "repetitions = ", "s.toml:3: Invalid value"),
    ("repetitions = 10", 'repetitions = 10\n[reset]\nkind = "service"', "s.toml:4: reset.unit: is missing"),
    ("repetitions = 10", 'repetitions = 10\n[reset]\nkind = "cool-down"', "s.toml:4: reset.celsius: is missing"),
    ("repetitions = 10", "[other]", "s.toml:2: study.repetitions: is missing"),
    ("[study]", "[other]\n[study]", "s.toml:2: other: unknown; valid here: study, suite, test, reset, environment"),
    ("repetitions = 10", "repetitions = 10\nrepetitions = 11", "s.toml:4: Cannot overwrite a value"),
    ("repetitions = 10", "repetitions = '10'", "s.toml:3: study.repetitions: '10': must be a whole number"),
    ("repetitions = 10", "repetitions = 10\nseed = 0.5", "s.toml:4: study.seed: 0.5: must be a whole number"),
    ("repetitions = 10", "repetitions = 10\nseed = 9223372036854775808", "s.toml:4: study.seed: 9223372036854775808: "),
    ("repetitions = 10", "repetitions = 10\ntimeout = 0", "s.toml:4: study.timeout: 0: must be from 0.1 to 604800"),
    ("repetitions = 10", "repetitions = 10\nsetup = [1]", "s.toml:4: study.setup: 1 is not a string"),
    ("repetitions = 10", 'repetitions = 10\nsetup = ["a\\u0000b"]', "s.toml:4: study.setup: contains a null character"),
    ("repetitions = 10", "repetitions = 10\nteardown = 1", "s.toml:4: study.teardown: 1: must be a list or a string"),
    (
        "repetitions = 10",
        "repetitions = 10\nfailures = 'all'",
        "s.toml:4: study.failures: 'all': must be one of trial, run",
    ),
    (
        "repetitions = 10",
        "repetitions = 10\ncounter = 'ticks'",
        "s.toml:4: study.counter: 'ticks': must be auto or a counter from",
    ),
    ("repetitions = 10", 'repetitions = 10\nname = "a\\u0000b"', "s.toml:4: study.name: "),
    ("[study]", "study = 1", "s.toml:2: study: 1: must be a table"),
    ('name = "a"', "", "s.toml:5: test[1].name: is missing"),
    ('name = "a"', "name = 1", "s.toml:6: test[1].name: 1: must be a string"),
    ('name = "a"', 'name = ""', "s.toml:6: test[1].name: '': must be a nonempty name without colons"),
    ('command = "echo 1"', 'command = " "', "s.toml:7: test[1].command: is empty"),
    ('command = "echo 1"', 'command = ""', "s.toml:7: test[1].command: is empty"),
    ('workload = "hash"', 'workload = ""', "s.toml:11: test[2].workload: is empty"),
    (
        "[study]\nrepetitions = 10",
        "repetitions = 10\n[study]",
        "s.toml:2: repetitions: is above every table: ",
    ),
    ("[study]", "setup = ['x']\n[study]", "s.toml:2: setup: is above every table: "),
    ("[study]\nrepetitions = 10", "repetitions = 10", "s.toml:2: repetitions: is above every table: move it into "),
    (
        "repetitions = 10",
        'repetitions = 10\nprofile = "bnch"',
        "s.toml:4: study.profile: bnch: no such profile; ",
    ),
    ("repetitions = 10", 'repetitions = 10\nprofile = "/no.toml"', "s.toml:4: study.profile: /no.toml: no such file"),
    (
        'command = "x"',
        'command = "x"\ndirectory = "none"',
        "s.toml:17: test[3].directory: /tmp/none: no such dir",
    ),
    *(
        (
            "[[test]]",
            f"[environment]\n{name} = 'x'\n[[test]]",
            f"s.toml:6: environment.{name}: cannot be set here: cbench sets",
        )
        for name in ("CBENCH_RUN", "CBENCH_POSITION", "CBENCH_TEST", "CBENCH_TRIAL", "CBENCH_PADDING")
    ),
    ('command = "echo 1"', 'command = "x"\nworkload = "hash"', "s.toml:7: test[1].command: a test is either"),
    ('command = "echo 1"', 'command = "x"\nparams = { n = 1 }', "s.toml:8: test[1].params: only a workload has"),
    ('command = "echo 1"', 'command = "x"\ntimeout = -1', "s.toml:8: test[1].timeout: -1: must be from 0.1"),
    (
        'command = "echo 1"',
        'command = "x"\nread = "mean"',
        "s.toml:8: test[1].read: 'mean': must be one of last-float, wall",
    ),
    (
        'command = "echo 1"',
        'command = "x"\nread = "cycles:k"',
        "s.toml:8: test[1].read: 'cycles:k': must be one of last-",
    ),
    (
        'workload = "hash"',
        'workload = "hsh"',
        "s.toml:11: test[2].workload: unknown workload 'hsh': use ",
    ),
    ('workload = "hash"', 'workload = "none.c:f"', "s.toml:11: test[2].workload: /tmp/none.c: no such file"),
    (
        'workload = "hash"',
        'workload = "hash"\nread = "wall"',
        "s.toml:12: test[2].read: 'wall': must be 'value' for a workload",
    ),
    (
        'workload = "hash"',
        'workload = "hash"\ndirectory = "x"',
        "s.toml:12: test[2].directory: applies only to commands",
    ),
    ("{ n = 1000 }", "{ m = 1 }", "s.toml:12: test[2].params: m: unknown; hash takes n"),
    ("{ n = 1000 }", "{ n = -1 }", "s.toml:12: test[2].params: n=-1: hash takes n"),
    ("{ n = 1000 }", "3", "s.toml:12: test[2].params: 3: must be a table"),
    ('command = "x"', 'command = "x"\nread = "wall"', "s.toml:17: test[3].read: write it in each [[test.metric]]"),
    (
        'name = "rate"',
        'name = "a:b"',
        "s.toml:21: test[3].metric[2].name: 'a:b': must be a nonempty name without colons",
    ),
    ('name = "rate"', 'nam = "rate"', "s.toml:21: test[3].metric[2].nam: unknown; did you mean name?"),
    ('better = "higher"', "betr = 1", "s.toml:23: test[3].metric[2].betr: unknown; valid here: name, read, unit"),
    (
        "repetitions = 10",
        'repetitions = 10\n[reset]\nkind = "wipe"',
        "s.toml:5: reset.kind: 'wipe': must be one of none, command",
    ),
    ("repetitions = 10", 'repetitions = 10\n[reset]\nkind = "command"', "s.toml:4: reset.command: is missing"),
    ("repetitions = 10", 'repetitions = 10\n[reset]\ncommand = "x"', "s.toml:5: reset.command: does not apply to a"),
    (
        "repetitions = 10",
        "repetitions = 10\n[reset]\nsettle = -1",
        "s.toml:5: reset.settle: -1: must be from 0 to 86400",
    ),
    ("repetitions = 10", "repetitions = 10\n[environment]\nA = 1", "s.toml:5: environment.A: must be a string"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_an_error_is_one_line_with_the_files_line_and_the_key(old: str, new: str, message: str) -> None:
    assert message in said(PLAIN.replace(old, new, 1))


def test_a_malformed_test_table_is_reported_with_the_correct_form() -> None:
    assert said("test = [1]\n[study]\nrepetitions = 1\n") == "s.toml:1: test: 1: write it as a table, [[test]]"
    assert said("[study]\nrepetitions = 1\n[test]\nname = 'a'\n") == (
        "s.toml:3: test: is a single table: write [[test]], because there may be several"
    )


@pytest.mark.parametrize("maker", ["setup = 'mkdir made'", "[reset]\nkind = 'command'\ncommand = 'mkdir -p made'"])
def test_a_directory_that_the_study_creates_need_not_exist_yet(maker: str, tmp_path: Path) -> None:
    text = PLAIN.replace('command = "x"', 'command = "x"\ndirectory = "made"')
    with pytest.raises(UsageError, match="made: no such directory"):
        parse(text, "s.toml", str(tmp_path))
    made = parse(text.replace("repetitions = 10", f"repetitions = 10\n{maker}", 1), "s.toml", str(tmp_path))
    assert made.tests[2].directory == "made"


def test_stored_data_are_read_without_checking_this_host() -> None:
    text = PLAIN.replace("repetitions = 10", "repetitions = 10\nprofile = 'gone'").replace(
        'command = "x"', "command = 'x'\ndirectory = 'gone'"
    )
    made = parse(f"{text}\n[environment]\nCBENCH_RUN = 'x'\n", "s.toml", "/tmp", check=False)
    assert (made.profile, made.tests[2].directory, dict(made.environment)) == ("gone", "gone", {"CBENCH_RUN": "x"})


def test_without_tests_there_is_no_study() -> None:
    assert (
        said("[study]\nrepetitions = 1\n")
        == "s.toml: test: is missing: a study needs at least one [[test]], or a [suite]"
    )


def test_a_file_that_cannot_be_read_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xff")
    for path, why in (
        (tmp_path / "none", "cbench order init"),
        (tmp_path, "is a directory"),
        (tmp_path / "latin", "UTF-8"),
    ):
        with pytest.raises(UsageError, match=why):
            load(path)


def test_lines_are_found_in_quotes_in_arrays_and_not_within_long_texts() -> None:
    found = lines('a = """\nb = 1\n"""\n[x]\n"c d" = 1\n[[y]]\n[[y]]\nz.w = 2\n[y.k]\nq = 1\n')
    assert ("b",) not in found
    assert found[("x", "c d")] == 5
    assert found[("y", 1, "z", "w")] == 8
    assert found[("y", 1, "k", "q")] == 10
    assert line_of(found, ("y", 1, "missing")) == 7
    assert line_of(found, ("missing",)) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('Q = "a\\u0000b"', "s.toml:6: environment.Q: contains a null character"),
        ('"A=B" = "x"', "s.toml:5: environment: 'A=B' is not the name of an environment variable"),
        ('"" = "x"', "s.toml:5: environment: '' is not the name of an environment variable"),
        ('"A\\u0000" = "x"', "s.toml:5: environment: 'A\\x00' is not the name of an environment variable"),
    ],
)
def test_an_impossible_variable_is_reported(line: str, words: str) -> None:
    assert words in said(PLAIN.replace("[[test]]", f"[environment]\n{line}\n[[test]]", 1))


def test_an_environment_variable_over_the_kernels_size_limit_is_rejected() -> None:
    def text(size: int) -> str:
        return PLAIN.replace("[[test]]", f"[environment]\nQ = '{'x' * size}'\n[[test]]", 1)

    most = MOST_BYTES - len("Q=") - 1
    value = parse(text(most), "s.toml", "/tmp").environment["Q"]
    subprocess.run(["/bin/true"], env={"Q": value}, check=True)
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["/bin/true"], env={"Q": f"{value}x"}, check=False)
    assert f"s.toml:6: environment.Q: {MOST_BYTES + 1:,} bytes with its name: the kernel allows" in said(text(most + 1))
    assert parse(text(most + 1), "s.toml", "/tmp", check=False).environment  # another host's store is still read


def test_variables_whose_names_a_shell_does_not_know_are_left_to_the_processes_that_do() -> None:
    study = parse(PLAIN.replace("[[test]]", "[environment]\n'my-var.x' = '1'\n[[test]]", 1), "s.toml", "/tmp")
    assert study.environment == {"my-var.x": "1"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a = " + "[" * 5000, id="lists that do not end"),
        pytest.param("a = " + "[" * 60 + "]" * 60, id="lists"),
        pytest.param(".".join("a" * 5000) + " = 1", id="tables"),
    ],
)
def test_deep_nesting_is_reported_in_one_line(text: str) -> None:
    assert said(text) == "s.toml: tables and lists are nested too deeply"


def test_a_number_with_too_many_digits_is_reported_in_one_line() -> None:
    assert said(f"[study]\nrepetitions = {'1' * 5000}\n").startswith("s.toml: Exceeds the limit")


def test_the_hint_for_an_unknown_key_names_each_valid_key_once() -> None:
    text = said(PLAIN.replace("repetitions = 10", "repetitions = 10\n[reset]\nfoo = 1"))
    hint = text.partition("valid here: ")[2].split(", ")
    assert sorted(hint) == ["celsius", "check", "command", "khz", "kind", "settle", "timeout", "unit"]


def test_a_study_states_once_how_its_commands_numbers_are_read() -> None:
    parsed = parse(PLAIN.replace("repetitions = 10", "repetitions = 10\nread = 'wall'"), "s.toml", "/tmp")
    assert [test.metrics[0].source for test in parsed.tests] == ["wall", "value", "regex"]
    with pytest.raises(UsageError, match=r"s.toml:4: study.read: "):
        parse(PLAIN.replace("repetitions = 10", "repetitions = 10\nread = 'no'"), "s.toml", "/tmp")

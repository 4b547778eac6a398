"""The command: exit codes, one object on stdout with --json, one line on stderr for an error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import quiet as package
from quiet.knobs.registry import KNOBS
from tests.quiet.commands import Done, Quiet
from tests.quiet.kernels import tree
from tests.trees import contents, machine, plant

PROFILE = """\
name = "mine"
[cpus]
isolated = "3"
[knobs]
ksm = "quiet"
irq = "quiet"
"vm.stat_interval" = 60
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path / "machine")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(PROFILE)
    return path


def is_error(done: Done, code: int, said: str) -> None:
    assert done.code == code
    assert done.err.startswith("quiet: error: ")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert done.out == ""


def test_the_exit_codes_from_plan_to_restore(quiet: Quiet, root: Path, mine: Path) -> None:
    found = contents(root)
    profile = ("--root", root, "--profile", mine)
    assert quiet("plan", *profile).code == 0
    assert quiet("verify", *profile).code == 1
    assert quiet("apply", *profile).code == 0
    assert quiet("apply", *profile).code == 0
    assert quiet("verify", "--root", root).code == 0
    (root / "sys/kernel/mm/ksm/run").write_text("2\n")
    assert quiet("restore", "--root", root).code == 4
    assert quiet("restore", "--root", root, "--force").code == 0
    assert quiet("restore", "--root", root).code == 0
    assert contents(root) == found


def test_verify_ends_with_1_when_something_has_drifted(quiet: Quiet, root: Path, mine: Path) -> None:
    quiet("apply", "--root", root, "--profile", mine)
    (root / "sys/kernel/mm/ksm/run").write_text("1\n")
    done = quiet("verify", "--root", root)
    assert done.code == 1
    assert "1 setting drifted" in done.out
    assert "1 -> 0" in done.out


def test_an_apply_that_fails_in_part_ends_with_1(quiet: Quiet, root: Path, mine: Path) -> None:
    mine.write_text(PROFILE.replace('ksm = "quiet"', 'irqbalance = "quiet"'))
    plant(root, {"sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs": "1"})
    done = quiet("apply", "--root", root, "--profile", mine, "--json")
    assert done.code == 1
    assert [item["target"] for item in done.json["failures"]] == ["unit:irqbalance.service"]


@pytest.mark.parametrize(
    "args",
    [
        ("plan",),
        ("plan", "--cpus", "2"),
        ("status",),
        ("verify",),
        ("restore",),
        ("explain",),
        ("explain", "irq"),
        ("profiles",),
    ],
)
def test_with_json_there_is_exactly_one_object_on_stdout(quiet: Quiet, root: Path, args: tuple[str, ...]) -> None:
    where = () if args[0] in ("explain", "profiles") else ("--root", str(root))
    done = quiet(*args, *where, "--json")
    assert isinstance(done.json, dict)
    assert done.err == ""


def test_with_json_an_error_leaves_stdout_empty(quiet: Quiet, root: Path) -> None:
    is_error(quiet("plan", "--root", root, "--cpus", "9", "--json"), 2, "--cpus: no such CPU: 9")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("plan", "--bogus"), "--bogus"),
        (("bogus",), "bogus"),
        (("plan", "--cpus"), "--cpus"),
        (("explain", "bogus"), "unknown knob 'bogus'; `quiet explain` lists the knobs"),
        (("plan", "--profile", "bogus"), "no such profile; bundled profiles: as-is, bench"),
        (("plan", "--profile", "/none/x.toml"), "/none/x.toml: no such file"),
        (("restore", "--force", "--keep"), "contradict each other"),
        (("run",), "CMD"),
    ],
)
def test_wrong_usage_is_reported_in_one_line_that_names_it(quiet: Quiet, args: tuple[str, ...], said: str) -> None:
    is_error(quiet(*args), 2, said)


@pytest.mark.parametrize("command", ["plan", "status", "verify", "restore", "apply"])
def test_a_missing_root_is_reported_in_one_line(quiet: Quiet, command: str) -> None:
    is_error(quiet(command, "--root", "/none/such"), 2, "--root /none/such: no such directory")


@pytest.mark.parametrize("wish", ["a", "3-1"])
def test_a_cpu_request_that_is_not_a_list_names_its_option(quiet: Quiet, root: Path, wish: str) -> None:
    is_error(quiet("plan", "--root", root, "--cpus", wish), 2, f"--cpus: '{wish}' is not a CPU list")


def test_an_empty_root_is_not_this_host(quiet: Quiet) -> None:
    is_error(quiet("plan", "--root", ""), 2, "--root")


def test_a_journal_that_has_no_place_is_refused_and_nothing_is_changed(quiet: Quiet, root: Path, mine: Path) -> None:
    (root / "run").write_text("a file\n")
    found = contents(root)
    is_error(quiet("apply", "--root", root, "-p", mine), 3, "nothing was changed")
    assert contents(root) == found


def test_cpus_that_leave_none_for_housekeeping_are_refused_with_3(quiet: Quiet, root: Path) -> None:
    is_error(quiet("plan", "--root", root, "--cpus", "0-3"), 3, "no housekeeping CPU")


def test_a_host_with_one_core_is_refused_with_3(quiet: Quiet, tmp_path: Path) -> None:
    is_error(quiet("plan", "--root", plant(tmp_path, machine(cpus=1))), 3, "nothing can be isolated")


def test_a_second_profile_is_refused_with_3_and_the_remedy(quiet: Quiet, root: Path, mine: Path) -> None:
    quiet("apply", "--root", root, "--profile", mine)
    mine.with_name("two.toml").write_text(PROFILE)
    is_error(quiet("apply", "--root", root, "-p", mine.with_name("two.toml")), 3, "run `quiet restore` first")


def test_a_conflict_is_named_with_both_remedies(quiet: Quiet, root: Path, mine: Path) -> None:
    quiet("apply", "--root", root, "--profile", mine)
    (root / "proc/sys/vm/stat_interval").write_text("5\n")
    done = quiet("restore", "--root", root)
    assert done.code == 4
    assert "/proc/sys/vm/stat_interval: changed to '5' after the apply (original '1', applied '60')" in done.out
    assert "--force" in done.out
    assert "--keep" in done.out
    assert "nothing left changed" not in done.out
    kept = quiet("restore", "--root", root, "--keep", "--json").json
    assert kept["complete"] is True
    assert [each["target"] for each in kept["accepted"]] == ["file:/proc/sys/vm/stat_interval"]
    assert (root / "proc/sys/vm/stat_interval").read_text() == "5\n"


def test_restore_says_that_nothing_is_left_changed(quiet: Quiet, root: Path, mine: Path) -> None:
    assert "nothing is applied: nothing left changed" in quiet("restore", "--root", root).out
    quiet("apply", "--root", root, "--profile", mine)
    assert quiet("restore", "--root", root).out.endswith("nothing left changed\n")


@pytest.mark.parametrize("knob", [knob.name for knob in KNOBS])
def test_every_knob_is_explained_in_words_and_as_an_object(quiet: Quiet, knob: str) -> None:
    words, shape = quiet("explain", knob), quiet("explain", knob, "--json").json
    assert (words.code, words.err) == (0, "")
    assert shape["name"] == knob
    for key in ("title", "why", "targets", "doc"):
        assert shape[key] in words.out
    assert all(reason in words.out for reason in shape["refusals"].values())


def test_explain_without_a_name_lists_every_knob(quiet: Quiet) -> None:
    assert [line.split()[0] for line in quiet("explain").out.splitlines()] == [knob.name for knob in KNOBS]


def test_profiles_lists_the_bundled_ones(quiet: Quiet) -> None:
    assert [line.split()[0] for line in quiet("profiles").out.splitlines()] == ["as-is", "bench", "strict"]


@pytest.mark.slow
def test_a_recording_is_not_overwritten(quiet: Quiet, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.tar.gz"
    done = quiet("record", file, "--root", root, "--json")
    assert done.json["file"] == str(file)
    assert done.json["files"] > 20
    is_error(quiet("record", file, "--root", root), 2, "already exists")


def test_as_a_program_it_prints_its_version_and_ends_with_0() -> None:
    done = subprocess.run([sys.executable, "-m", "quiet", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"quiet {package.__version__}\n"


def test_as_a_program_its_exit_code_is_the_refusal(root: Path) -> None:
    command = [sys.executable, "-m", "quiet", "plan", "--root", str(root), "--cpus", "0-3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("quiet: error: isolating 0")


def test_a_closed_pipe_causes_no_traceback(root: Path) -> None:
    command = [sys.executable, "-m", "quiet", "plan", "--root", str(root), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 141


def test_plan_in_words_and_as_an_object_have_the_same_targets(quiet: Quiet, root: Path, mine: Path) -> None:
    words = quiet("plan", "--all", "--root", root, "-p", mine).out
    shape = json.loads(quiet("plan", "--root", root, "-p", mine, "--json").out)
    assert f"{len(shape['changes'])} changes by 3 knobs" in words
    assert all(change["target"].removeprefix("file:") in words for change in shape["changes"])


@pytest.mark.parametrize("command", ["plan", "verify", "status"])
def test_a_command_prints_the_same_with_and_without_typer(quiet: Quiet, root: Path, command: str) -> None:
    plain = quiet(command, "--root", root, "--json")
    parsed = quiet(command, f"--root={root}", "--json")
    assert plain.out == parsed.out != ""
    assert plain.code == parsed.code

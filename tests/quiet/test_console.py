"""Messages of both commands: they contain no control characters, and are one line each."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from quiet.console import check_savable, ended, one_line, printable, save
from quiet.errors import QuietError, UsageError
from tests import CHECKOUT
from tests.quiet.commands import Quiet
from tests.trees import machine, plant

STEERING = ["\x1b]0;title\x07", "\x9b31m", "\x7f", "\u202egnp.exe", "\u2066", "\r", "\b"]


@pytest.mark.parametrize("text", STEERING)
def test_control_characters_are_escaped(text: str) -> None:
    assert printable(f"a {text} b").isprintable()
    assert printable(f"a {text} b").startswith("a \\")


def test_other_text_is_unchanged() -> None:
    text = "naïve 日本語 │ ┄\n\tµs"
    assert printable(text) == text


def test_a_message_is_one_line_of_bounded_length() -> None:
    assert one_line("a\nb\x1b") == "a\\nb\\x1b"
    assert len(one_line("profile " + "x" * 10_000_000 + ": unknown")) < 500
    assert one_line("profile " + "x" * 10_000 + ": unknown").endswith("x: unknown")


@pytest.mark.parametrize("option", ["--profile", "--cpus", "--root"])
def test_whatever_the_argument_the_error_is_one_short_line(quiet: Quiet, tmp_path: Path, option: str) -> None:
    plant(tmp_path, machine(4))
    for value in ("a\nb\x1b[2J", "x" * 1_000_000):
        done = quiet("plan", *(() if option == "--root" else ("--root", tmp_path)), option, value)
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert len(done.err) <= 500
        assert done.err[:-1].isprintable()


def test_a_link_where_a_file_is_written_first_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("victim")
    (tmp_path / f"out.html.{os.getpid()}.new").symlink_to(victim)
    with pytest.raises(QuietError, match=r"--output .*out\.html: File exists"):
        save(str(tmp_path / "out.html"), "text", "--output")
    assert victim.read_text() == "victim"


def test_a_link_of_ones_own_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    save(str(tmp_path / "link"), "text", "--output")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "text"


def test_what_is_saved_to_stdout_follows_what_was_printed_and_stdout_stays(tmp_path: Path) -> None:
    calls = "save('/dev/stdout', 'two\\n', '-o'); print('three')"
    code = f"from quiet.console import save; print('one', flush=True); {calls}"
    (tmp_path / "link").symlink_to("/dev/stdout")
    before = os.lstat("/dev/stdout").st_ino
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", str(tmp_path / "link")):
        with (tmp_path / "out").open("w") as out:
            there = code.replace("/dev/stdout", name)
            subprocess.run([sys.executable, "-c", there], stdout=out, check=True, cwd=CHECKOUT)
        assert (tmp_path / "out").read_text() == "one\ntwo\nthree\n"
    assert os.lstat("/dev/stdout").st_ino == before


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no /dev/shm")
def test_a_file_in_memory_is_a_file() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for text in ("one", "two"):
            check_savable(f"{folder}/out.html", "--output")
            save(f"{folder}/out.html", text, "--output")
        assert Path(f"{folder}/out.html").read_text() == "two"


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_a_file_that_is_not_open_for_writing_is_refused_before_the_work(folder: str) -> None:
    closed = max(int(each) for each in os.listdir("/proc/self/fd")) + 1
    with pytest.raises(UsageError, match="--output /"):
        check_savable(f"{folder}/{closed}", "--output")


def test_a_folder_that_cannot_be_written_is_reported_before_the_work(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tmp_path / "out.html").write_text("")
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="not writable"):
        check_savable(str(tmp_path / "out.html"), "--output")


def test_a_defect_is_one_line_and_never_has_the_exit_code_of_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    def call() -> int:
        return {}["absent"]

    assert ended(call, "quiet") == 2
    line = capsys.readouterr().err
    assert line.startswith("quiet: error: internal error: KeyError: 'absent' at tests.quiet.test_console:")
    assert line.count("\n") == 1

"""Commands are run to their end or the end of their time; numbers are read from what they left."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.study.instruments.instrument import NoNumber
from cbench.study.instruments.registry import BY_SOURCE
from cbench.study.process.run_command import MOST_OUTPUT, Execution, execute
from tests.cbench.running import alive, comes


def printed(text: str) -> Execution:
    return Execution(0, text.encode(), b"", 0, 0, 1, 1.5, 0.5, 0.25)


def number(source: str, text: str, detail: str = "", folder: str = "/") -> tuple[float, str]:
    return BY_SOURCE[source].read(detail, printed(text), folder)


@given(st.floats(min_value=-1e150, max_value=1e150))
def test_the_last_number_of_the_output_is_read_and_its_text_is_kept(value: float) -> None:
    assert number("last-float", f"first 3\nthen {value!r} s\n") == (value, repr(value))


def test_a_number_too_large_to_be_squared_fails_the_trial() -> None:
    said = r"'1e300' is beyond ±1e\+150, too large to be squared; use a larger unit"
    with pytest.raises(NoNumber, match=said):
        number("last-float", "1e300\n")


@pytest.mark.parametrize(
    ("text", "found"), [("12ms", "12"), ("sha256 -3", "-3"), ("a=.5e-3,", ".5e-3"), ("1.2.3 7", "7"), ("5.", "5.")]
)
def test_a_number_may_be_followed_by_a_unit_but_is_not_part_of_a_word(text: str, found: str) -> None:
    assert number("last-float", text)[1] == found


NUMBERS = [
    ("12,345.6 ops/s", 12345.6),
    ("-1,234,567", -1234567),
    ("$1,234.50.", 1234.5),
    ("1 234", 234),
    ("3, 5", 5),
    ("run 3: latency nan, now 4", 4),
    ("1.2.3 then 99%", 99),
    ("3.5s", 3.5),
    ("took 12ms.", 12),
    ("5 \u00b5s", 5),
    ("7\u00b5s", 7),
    ("1.5e-3,", 0.0015),
    ("2.E+3", 2000),
    ("info nanosleep 3", 3),
    ("3 info nanosleep", 3),
]


@pytest.mark.parametrize(("text", "value"), NUMBERS)
@pytest.mark.parametrize("source", ["last-float", "file"])
def test_numbers_are_read_whole_or_not_at_all(source: str, text: str, value: float, tmp_path: Path) -> None:
    (tmp_path / "result").write_text(text)
    assert number(source, text, "result", str(tmp_path))[0] == value


AMBIGUOUS = ["1,234", "1,5", "1_000", "0x10", "0xff", "1.2.3", "\u22125", "1.234,5", "1,23,456", "1234,567.8", "12h30m"]
AMBIGUOUS += ["1:02.5", "2024-01-31", "3/4", "1'234", "1\u202f234", "1.5\u00d710^6", "1,5ms", "12.5\u00b10.3"]


@pytest.mark.parametrize("token", AMBIGUOUS)
@pytest.mark.parametrize("around", ["{}", "run 3: {} ms\n", "5\na={},\n"])
def test_an_ambiguous_number_is_refused_with_the_printed_text(token: str, around: str) -> None:
    with pytest.raises(NoNumber) as caught:
        number("last-float", around.format(token))
    assert str(caught.value) == f"{token!r} is not a plain number; read it with regex:EXPRESSION"


@pytest.mark.parametrize("word", ["nan", "-nan", "NaN", "inf", "-Infinity", "nanms", "infs"])
def test_a_number_before_an_invalid_one_is_not_the_last_number(word: str) -> None:
    for text in (f"run 3: latency {word}", f"5\nresult={word}\n", f"3 {word}%"):
        with pytest.raises(NoNumber, match=rf"^'{word}' is not a finite number$"):
            number("last-float", text)
    with pytest.raises(NoNumber, match=r"^'1e999' is not a finite number$"):
        number("last-float", "1e999")


def test_an_expression_takes_its_last_match() -> None:
    assert number("regex", "lat=1 lat=2.50 x=3", r"lat=([0-9.]+)") == (2.5, "2.50")


def test_a_path_leads_through_json_and_digits_are_kept_as_printed() -> None:
    text = json.dumps({"jobs": [{"iops": 1}, {"iops": 2}]}).replace("2}", "2.5000}")
    assert number("json", text, "jobs.-1.iops") == (2.5, "2.5000")


def test_a_file_is_read_where_the_command_ran(tmp_path: Path) -> None:
    (tmp_path / "result").write_text("total 17\n")
    assert number("file", "", "result", str(tmp_path)) == (17.0, "17")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_a_number_in_a_file_of_another_user_is_read_only_if_the_file_was_written_in_this_trial() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        result = Path(folder, "result")
        result.write_text("3\n")
        os.utime(result, (5, 5))
        os.seteuid(65534)
        try:
            BY_SOURCE["file"].prepare("result", folder)
        finally:
            os.seteuid(0)
        with pytest.raises(NoNumber, match="result: was not written in this trial"):
            number("file", "", "result", folder)
        result.write_text("4\n")
        assert number("file", "", "result", folder)[0] == 4


def test_times_are_those_of_the_command() -> None:
    assert [number(source, "")[0] for source in ("wall", "user", "sys")] == [1.5, 0.5, 0.25]


WHY = [
    ("last-float", "", "nothing", "no number in its output"),
    ("regex", "x=([a-z]+)", "x=y", "'y' is not a number"),
    ("regex", "x=([0-9]+)", "y", "nothing in its output matches"),
    ("regex", "x=(.*)", "x=inf", "'inf' is not a finite number"),
    ("json", "a.b", "{", "its output is not JSON"),
    ("json", "a.b", '{"a": []}', "nothing at 'a.b' in its output"),
    ("json", "a", '{"a": true}', "'a' in its output is not a number"),
    ("file", "missing", "", "No such file"),
]


@pytest.mark.parametrize(("source", "detail", "text", "why"), WHY, ids=[why for *_, why in WHY])
def test_an_unreadable_number_says_why(source: str, detail: str, text: str, why: str) -> None:
    with pytest.raises(NoNumber, match=why):
        number(source, text, detail)


def test_a_command_has_its_folder_its_environment_and_its_times(tmp_path: Path) -> None:
    busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    done = execute(f"pwd; echo $A >&2; {busy}; exit 3", str(tmp_path), {"A": "b", "PATH": os.environ["PATH"]}, 60)
    assert (done.code, done.output.decode().strip(), done.errors) == (3, str(tmp_path), b"b\n")
    assert 0 < done.user_s + done.sys_s <= done.wall_s + 0.02
    assert done.ended_ns > done.begun_ns


def test_a_signal_is_reported_as_a_shell_reports_it() -> None:
    assert execute("kill -TERM $$", "/", {}, 60).code == 128 + 15


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = execute("sleep 300 & echo $!; sleep 300", "/", {"PATH": os.environ["PATH"]}, 2)
    assert done.code is None
    assert time.monotonic() - begun < 200
    assert comes(lambda: not alive(int(done.output)))


def test_of_much_output_the_end_is_kept() -> None:
    done = execute(f"head -c {MOST_OUTPUT + 10} /dev/zero; echo 7", "/", {"PATH": os.environ["PATH"]}, 60)
    assert (len(done.output), done.cut) == (MOST_OUTPUT, 12)
    assert done.output.endswith(b"7\n")


def test_processes_that_a_command_leaves_running_do_not_delay_it() -> None:
    done = execute("sleep 60 & echo $!", "/", {"PATH": os.environ["PATH"]}, 60)
    assert done.code == 0
    os.kill(int(done.output), signal.SIGKILL)  # it still runs


LINES = 100_000
LONG = {
    "brackets": ("[\n" * 2**19, "nested too deeply"),
    "objects": ('{"a":\n' * 2**17, "nested too deeply"),
    "dates": ("[2026-01-01 00:00:00] began\n" * LINES, "its output is not JSON: Expecting ',' delimiter"),
    "texts": ('["' * LINES + "\n", "its output is not JSON"),
    "half a list": ("[\n" + "[1],\n" * LINES, "its output is not JSON"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", LONG)
def test_large_output_that_is_not_json_is_refused_quickly(what: str) -> None:
    text, why = LONG[what]
    begun = time.process_time()
    with pytest.raises(NoNumber, match=why):
        number("json", text, "a")
    assert time.process_time() - begun < 5


def test_of_many_lines_of_json_the_last_one_is_read_at_once() -> None:
    begun = time.process_time()
    assert number("json", '{"i":1}\n' * LINES + '{"i":2}\n', "i")[0] == 2
    assert number("json", "[2026] began\n" * LINES + '\t{"i":\n 3}\n \n', "i")[0] == 3
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("source", ["last-float", "regex"])
def test_a_number_of_a_million_digits_is_shortened_where_it_is_refused(source: str) -> None:
    with pytest.raises(NoNumber, match="is not a finite number") as caught:
        number(source, "9" * 10**6, "([0-9]+)" if source == "regex" else "")
    assert len(str(caught.value)) < 200

"""Words are added to lines of other programs' files, and removed even after another program has changed the line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quiet.boot.loaders.atomic_files import Saved
from quiet.boot.loaders.loader import WORDS, rewritten
from quiet.boot.parameters.cmdline import parse
from quiet.boot.parameters.merge import Merged
from quiet.boot.record import BootRecord, FileEntry

OTHERS = ["ro", "quiet", "root=UUID=0b0b", 'dyndbg="file a.c +p"', "isolcpus=10", "nohz_full=1-30", "x.y=1", "xxy=1"]
OURS = ["isolcpus=1", "nohz_full=1-3", "skew_tick=1", "x.y=11"]
OLD = ["skew_tick=0", "isolcpus=0", "nohz=off"]


def changed(line: str, add: list[str], drop: list[str]) -> str:
    return rewritten(line, Merged(parse(line).changed(drop, add), (), tuple(drop), tuple(add)))


def cleaned(text: str, add: list[str], drop: list[str]) -> str:
    entry = FileEntry("/line", WORDS, Saved(b"first", 0o644, 0, 0, 0, 0), b"ours")
    record = BootRecord("x", "bench", "1", (), tuple(add), tuple(drop), 0.0, files=[entry])
    return (record.cleaned("/line", text.encode()) or b"").decode()


@given(
    st.lists(st.sampled_from(OTHERS), unique=True),
    st.lists(st.sampled_from(OURS), min_size=1, unique=True),
    st.lists(st.sampled_from(OLD), unique=True),
    st.sampled_from(["{}\n", "append {}\n", 'parameters = "{}"\n', "{} -- single\n"]),
)
def test_other_words_stay_whatever_is_added_and_removed(
    others: list[str], ours: list[str], old: list[str], shape: str
) -> None:
    first = " ".join([*others[:2], *old, *others[2:]])
    made = changed(first, ours, old)
    assert sorted(parse(made).words) == sorted([*others, *ours])
    back = cleaned(shape.format(made + " later=1"), ours, old)
    assert sorted(parse(back.replace('= "', "= ").replace('"\n', "\n")).words) == sorted(
        parse(shape.format(" ".join([*others, *old, "later=1"])).replace('= "', "= ").replace('"\n', "\n")).words
    )


def test_changes_of_another_program_to_our_word_are_kept() -> None:
    assert cleaned("ro isolcpus=1-2 skew_tick=1\n", ["isolcpus=1", "skew_tick=1"], []) == "ro isolcpus=1-2\n"


def test_an_unchanged_or_regenerated_file_is_recognized() -> None:
    assert cleaned("ours", ["a"], []) == "first"
    assert cleaned("first", ["a"], []) == "first"

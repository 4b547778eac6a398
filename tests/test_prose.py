"""The words that our prose avoids, in every tracked text file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import CHECKOUT

# Files that quote the words.
EXCLUDED = ("tests/test_prose.py",)
WORDS = (
    *("told", "tells", "put back", "puts back", "anew", "meanwhile", "somebody", "nobody's", "what is there"),
    *("made up", "as it is found", "as it was found", "which one", "of which", "what of"),
)
# A use that has to stay, with its reason.
EXCEPTIONS = {
    "not_told": "a key of the JSON of `cbench doctor`",
}
SUFFIXES = {"", ".md", ".py", ".pyi", ".c", ".h", ".toml", ".config", ".cmdline", ".sh", ".yml", ".jinja", ".html"}
GENERATED = {"requirements.lock", "LICENSE"}
_ANY = "|".join(word.replace(" ", r"\s+") for word in WORDS)
WORD = re.compile(rf"(?<![\w-])(?:{_ANY})(?![\w-])", re.IGNORECASE)


def tracked() -> list[str]:
    """The text files of the checkout; without git, every one that is not built."""
    listed = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=False).stdout
    suffixed = (each for each in listed.splitlines() if Path(each).suffix in SUFFIXES and each not in GENERATED)
    return [each for each in suffixed if (CHECKOUT / each).is_file()]


def avoidable(text: str) -> list[str]:
    """Each use of a word, as `line: word`."""
    for exception in EXCEPTIONS:
        text = text.replace(exception, " " * len(exception))
    return [f"{text.count(chr(10), 0, use.start()) + 1}: {' '.join(use[0].split())}" for use in WORD.finditer(text)]


@pytest.mark.slow
def test_no_text_uses_a_word_that_our_style_avoids() -> None:
    files = [each for each in tracked() if not each.startswith(EXCLUDED)]
    if not files:
        pytest.skip("not a git checkout")
    uses = [f"{file}:{use}" for file in files for use in avoidable((CHECKOUT / file).read_text())]
    assert uses == []


def test_a_use_is_reported_with_its_line_and_an_exception_is_not() -> None:
    assert avoidable("fine\nit is put\nback\n`not_told` retells; Told\n") == ["2: put back", "4: Told"]


def test_the_readme_has_at_most_900_words() -> None:
    assert len((CHECKOUT / "README.md").read_text().split()) <= 900

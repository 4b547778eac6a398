"""Define a suite: the commands that list and run its tests, and the source of their order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

PROGRAM, TESTS, ORDER, FILTER, SEED, RESULTS = "{program}", "{tests}", "{order}", "{filter}", "{seed}", "{results}"
SELECTING = (TESTS, ORDER, FILTER)
Isolation = Literal["no", "yes", "both"]
Control = Literal["given", "drawn", "own"]
SPECIAL = re.compile(r"[.\[\\()*+?{|^$]")
"""Matches the characters that a backslash escapes in POSIX extended, RE2, Java, Rust and ECMAScript expressions."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The table `[suite]`.

    `harness`: the harness's name for messages; `names`: a regular expression that matches a test's name in a line of
    the output of `discover`. `shuffles`, `ordered`, `escape`, `counts`: see Preset. `timeout_s`: the time limit of one
    process in seconds.
    """

    harness: str
    program: tuple[str, ...]
    discover: tuple[str, ...]
    run: tuple[str, ...]
    names: str
    shuffles: bool
    ordered: bool
    escape: str
    counts: bool
    environment: Mapping[str, str]
    isolated: Isolation
    timeout_s: float
    directory: str
    better: str

    @property
    def control(self) -> Control:
        """The source of the order within a process: "given" (by cbench), "drawn" (at random by the harness), or "own"
        (the harness's own order).
        """
        if self.shuffles or self._uses(SEED):
            return "drawn"
        return "own" if self._uses(FILTER) else "given"

    @property
    def results_on_stdout(self) -> bool:
        return not any(RESULTS in each for each in (*self.run, *self.environment.values()))

    def needs_order_file(self) -> bool:
        return self._uses(ORDER)

    def order_file(self, tests: Sequence[str]) -> str:
        """The content of the file that {order} names: one test name per line, with a backslash before each character of
        `escape`.
        """
        escaped = ("".join(f"\\{each}" if each in self.escape else each for each in name) for name in tests)
        return "".join(f"{name}\n" for name in escaped)

    def command(self, tests: Sequence[str], seed: int, results: str, order: str) -> list[str]:
        """The words of the command that runs these tests; `results`, `order`: paths. The command runs without a
        shell.
        """
        values = {FILTER: expression(tests), SEED: str(seed), RESULTS: results, ORDER: order}
        return self._filled(self.run, tests, values)

    def discovery(self, results: str) -> list[str]:
        """The words of the command that lists the tests."""
        return self._filled(self.discover, (), {RESULTS: results})

    def variables(self, results: str) -> dict[str, str]:
        """The environment variables for the harness."""
        return {name: value.replace(RESULTS, results) for name, value in self.environment.items()}

    def _uses(self, placeholder: str) -> bool:
        return any(placeholder in word for word in self.run)

    def _filled(self, words: Sequence[str], tests: Sequence[str], values: Mapping[str, str]) -> list[str]:
        whole: dict[str, Sequence[str]] = {PROGRAM: self.program, TESTS: tests}
        known = re.compile("|".join(map(re.escape, values)))
        filled: list[str] = []
        for word in words:
            filled += whole.get(word) or [known.sub(lambda found: values[found[0]], word)]
        return filled


def expression(tests: Sequence[str]) -> str:
    """A regular expression that matches exactly these names."""
    return f"^({'|'.join(SPECIAL.sub(lambda found: chr(92) + found[0], name) for name in tests)})$"

"""Read the XML of Catch2 (`--reporter xml`), versions 2 and 3."""

from __future__ import annotations

import re
from xml.parsers import expat

from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError
from cbench.formats.reader import ResultReader, TestSample

ROOT = re.compile(rb"<(Catch2TestRun|Catch)[\s>]")
WHY = "the file contains only means: Catch2 writes no samples"


class Catch2Reader(ResultReader):
    """A file is one process with one value per benchmark, the mean in ns, because Catch2 does not write the samples.

    A benchmark that a test case repeats for each of its sections has one value per section.
    """

    name = "Catch2 XML"
    more = "run the test program {n} times, each with its own --out, and give the directory of these files"

    def matches(self, content: Content) -> bool:
        return content.head.lstrip()[:1] == b"<" and ROOT.search(content.head) is not None

    def read(self, content: Content) -> tuple[TestSample, ...]:
        means = _Means()
        try:
            means.parser.Parse(content.text.encode(), True)
        except expat.ExpatError as error:
            raise DamagedError(f"line {error.lineno}", expat.ErrorString(error.code)) from None
        if not means.found:
            raise DamagedError("", "contains no BenchmarkResults: run the program with its benchmarks")
        return tuple(self.sample(name, "ns", [values], summary=WHY) for name, values in means.found.items())


class _Means:
    """Collects the means of benchmarks; each name is prefixed with those of the test case and the sections."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate("UTF-8")  # the declared encoding does not apply: the text is already decoded
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.found: dict[str, list[float]] = {}
        self._names: list[str] = []

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if element in ("TestCase", "Section", "BenchmarkResults"):
            self._names.append(attributes.get("name", ""))
        if element == "mean" and self._names:
            mean = self._number(attributes.get("value", ""))
            self.found.setdefault(": ".join(self._names), []).append(mean)

    def _end(self, element: str) -> None:
        if element in ("TestCase", "Section", "BenchmarkResults"):
            self._names.pop()

    def _doctype(self, *_: object) -> None:
        raise DamagedError(self._place, "contains a document type, which Catch2 never writes")

    def _number(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1
        if not 0 <= value < float("inf"):
            raise DamagedError(self._place, f"the mean {text[:40]!r} is not a time")
        return value

    @property
    def _place(self) -> str:
        return f"line {self.parser.CurrentLineNumber}"

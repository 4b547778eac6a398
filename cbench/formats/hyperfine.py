"""Read the JSON of hyperfine (`--export-json`)."""

from __future__ import annotations

from cbench.formats.content import Content
from cbench.formats.json_value import JsonValue
from cbench.formats.reader import ResultReader, TestSample


class HyperfineReader(ResultReader):
    """A command is a test, and each of its runs a process with one value: wall-clock seconds."""

    name = "hyperfine JSON"
    more = "hyperfine --runs {n}"

    def matches(self, content: Content) -> bool:
        document = content.json
        if document is None or not document.has("results") or not document["results"].is_list:
            return False
        return all(each.has("command") for each in document["results"].items())

    def read(self, content: Content) -> tuple[TestSample, ...]:
        document = content.json
        assert document is not None
        return tuple(self._sample(each) for each in document["results"].items())

    def _sample(self, result: JsonValue) -> TestSample:
        name, times = result["command"].text(), result.get("times")
        if times is not None:
            return self.sample(name, "second", ((seconds,) for seconds in times.numbers()))
        summary = result.get("median") or result["mean"]
        why = "only summaries are in it: `times` is missing"
        return self.sample(name, "second", [[summary.number()]], summary=why)

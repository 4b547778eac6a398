"""Read the JSON of hyperfine (`--export-json`)."""

from __future__ import annotations

from collections import Counter

from cbench.formats.content import Content
from cbench.formats.json_value import JsonValue
from cbench.formats.reader import ResultReader, TestSample, numbered


class HyperfineReader(ResultReader):
    """A command is a test, and each of its runs a process with one value: wall-clock seconds.

    Results of the same command have names of their own, by hyperfine's parameters or by a number.
    """

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
        results = document["results"].items()
        commands = Counter(each["command"].text() for each in results)
        names = numbered(_name(each, commands) for each in results)
        return tuple(self._sample(name, each) for name, each in zip(names, results, strict=True))

    def _sample(self, name: str, result: JsonValue) -> TestSample:
        times = result.get("times")
        if times is not None:
            return self.sample(name, "second", ((seconds,) for seconds in times.numbers()))
        summary = result.get("median") or result["mean"]
        why = "only summaries are in it: `times` is missing"
        return self.sample(name, "second", [[summary.number()]], summary=why)


def _name(result: JsonValue, commands: Counter[str]) -> str:
    """The command, with hyperfine's parameters where another result has the same command."""
    command, parameters = result["command"].text(), result.get("parameters")
    if commands[command] == 1 or parameters is None:
        return command
    return " ".join([command, *(f"{name}={value.value}" for name, value in parameters.members())])

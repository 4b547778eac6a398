"""Read the JSON of hyperfine (`--export-json`), versions 1 and 2."""

from __future__ import annotations

from collections import Counter

from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError, JsonValue, Number
from cbench.formats.reader import ResultReader, TestSample, numbered


class HyperfineReader(ResultReader):
    """A command is a test, and each of its runs is a process with one value: wall-clock seconds.

    If several results have the same command, hyperfine's parameters or a number make their names distinct.
    """

    name = "hyperfine JSON"
    more = "hyperfine --runs {n}"

    def matches(self, content: Content) -> bool:
        document = content.json
        results = document.get("results") if document is not None and document.has("results") else None
        return results is not None and results.is_list and all(each.has("command") for each in results.items())

    def read(self, content: Content) -> tuple[TestSample, ...]:
        document = content.json
        assert document is not None
        results = document["results"].items()
        commands = Counter(_command(each) for each in results)
        names = numbered(_name(each, commands) for each in results)
        return tuple(self._sample(name, each) for name, each in zip(names, results, strict=True))

    def _sample(self, name: str, result: JsonValue) -> TestSample:
        times, measurements = result.get("times"), result.get("measurements")
        if times is not None:
            return self.sample(name, "second", ((seconds,) for seconds in times.numbers()))
        if measurements is not None:  # since version 2
            walls = [each["time_wall_clock"] for each in measurements.items()]
            if not walls:
                raise DamagedError(measurements.place, "no values")
            return self.sample(name, "second", ((_seconds(wall),) for wall in walls))
        summary = result.get("median") or result["mean"]
        why = "the file contains only summaries: `times` is missing"
        return self.sample(name, "second", [[summary.number()]], summary=why)


def _command(result: JsonValue) -> str:
    """The user's name for a command, or else the command; before version 2, one key holds either of the two."""
    return (result.get("name") or result["command"]).text()


def _name(result: JsonValue, commands: Counter[str]) -> str:
    """The test's name: the command, followed by hyperfine's parameters if another result has the same command."""
    command, parameters = _command(result), result.get("parameters")
    if commands[command] == 1 or parameters is None:
        return command
    return " ".join([command, *(f"{name}={_parameter(value)}" for name, value in parameters.members())])


def _parameter(value: JsonValue) -> object:
    return value["value"].value if value.has("value") else value.value


def _seconds(wall: JsonValue) -> Number:
    if (unit := wall["unit"].text()) != "second":
        raise DamagedError(f"{wall.place}.unit", f"{unit[:20]!r} must be 'second'")
    return wall["value"].number()

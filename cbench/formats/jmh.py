"""Read the JSON of the Java Microbenchmark Harness (`-rf json -rff FILE`)."""

from __future__ import annotations

from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError, JsonValue
from cbench.formats.reader import Number, ResultReader, TestSample
from cbench.formats.units import NANOSECONDS


class JmhReader(ResultReader):
    """A fork is a process, and its measured iterations are the process's values. Times per operation are in ns; other
    units, such as operations per second, are unchanged.

    In sample mode an iteration has a histogram; its mean is used, as in JMH's own score. Secondary metrics
    (profilers) are omitted.
    """

    name = "JMH JSON"
    more = "JMH's -f {n}"

    def matches(self, content: Content) -> bool:
        document = content.json
        if document is None or not document.is_list:
            return False
        results = document.items()
        return bool(results) and results[0].has("benchmark", "primaryMetric")

    def read(self, content: Content) -> tuple[TestSample, ...]:
        document = content.json
        assert document is not None
        return tuple(self._sample(each) for each in document.items())

    def _sample(self, result: JsonValue) -> TestSample:
        metric = result["primaryMetric"]
        factor, unit = _unit(metric["scoreUnit"])
        name = _name(result)
        raw, histogram = metric.get("rawData"), metric.get("rawDataHistogram")
        if raw is not None:
            forks = [each.numbers() for each in raw.items()]
        elif histogram is not None:
            forks = [tuple(_mean(each) for each in fork.items()) for fork in histogram.items()]
        else:
            why = "the file contains only summaries: `rawData` is missing"
            return self.sample(name, unit, [[metric["score"].number() * factor]], summary=why)
        if not forks or not all(forks):
            raise DamagedError(metric.place, "no values")
        return self.sample(name, unit, ([value * factor for value in fork] for fork in forks))


def _name(result: JsonValue) -> str:
    """The test's name: the method, its parameters, and the mode unless that is the average time."""
    name, mode, params = result["benchmark"].text(), result.get("mode"), result.get("params")
    pairs = [] if params is None else [f"{key}={value.text()}" for key, value in params.members()]
    if mode is not None and mode.text() != "avgt":
        pairs.append(f"mode={mode.text()}")
    return " ".join([name, *pairs])


def _unit(score: JsonValue) -> tuple[Number, str]:
    """The factor and the unit of the converted values: times per operation become ns, all others are unchanged."""
    unit = score.text()
    time, _, per = unit.partition("/")
    return (NANOSECONDS[time], "ns") if per == "op" and time in NANOSECONDS else (1, unit)


def _mean(histogram: JsonValue) -> Number:
    total, count = 0.0, 0.0
    for each in histogram.items():
        pair = each.numbers()
        if len(pair) != 2 or pair[1] < 0:
            raise DamagedError(each.place, "not a pair of a value and its count")
        total, count = total + pair[0] * pair[1], count + pair[1]
    if not count:
        raise DamagedError(histogram.place, "no values")
    return total / count

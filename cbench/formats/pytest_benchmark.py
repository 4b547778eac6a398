"""Read the JSON of pytest-benchmark (`--benchmark-json`, or `--benchmark-save` with `--benchmark-save-data`)."""

from __future__ import annotations

from cbench.formats.content import Content
from cbench.formats.json_value import JsonValue
from cbench.formats.reader import ResultReader, TestSample


class PytestBenchmarkReader(ResultReader):
    """A file is one process, the run of pytest; the rounds of a benchmark are its values, in seconds per call."""

    name = "pytest-benchmark JSON"
    more = "run pytest {n} times, each with its own --benchmark-json, and give the directory of these files"

    def matches(self, content: Content) -> bool:
        document = content.json
        return document is not None and document.has("machine_info", "benchmarks")

    def read(self, content: Content) -> tuple[TestSample, ...]:
        document = content.json
        assert document is not None
        date = document.get("datetime")
        begun, machine = () if date is None else (date.moment(),), document["machine_info"]
        host, kernel = _cpu(machine), _kernel(machine)
        return tuple(self._sample(each, host, kernel, begun) for each in document["benchmarks"].items())

    def _sample(self, benchmark: JsonValue, host: str, kernel: str, begun: tuple[int, ...]) -> TestSample:
        name = (benchmark.get("fullname") or benchmark["name"]).text()
        stats = benchmark["stats"]
        data = stats.get("data")
        if data is not None and data.value != []:
            return self.sample(name, "second", [data.numbers()], host=host, kernel=kernel, begun=begun)
        why = "the file contains only summaries: save with --benchmark-save-data or --benchmark-json"
        median = stats["median"].number()
        return self.sample(name, "second", [[median]], host=host, kernel=kernel, begun=begun, summary=why)


def _cpu(machine: JsonValue) -> str:
    """The model of the CPU, from `brand_raw` or, before version 3.2.3, `brand`; "" if unknown."""
    cpu = machine.get("cpu")
    if cpu is None or not cpu.has():
        return ""
    brand = cpu.get("brand_raw") or cpu.get("brand")
    return "" if brand is None else brand.text()


def _kernel(machine: JsonValue) -> str:
    """The kernel release of a Linux system; "" for other systems."""
    system, release = machine.get("system"), machine.get("release")
    return "" if release is None or system is None or system.text() != "Linux" else release.text()

"""Write results as a Markdown table in GitHub's dialect."""

from __future__ import annotations

from statistics import median

from cbench.export.exporter import Exporter, ExportSource, headlines
from cbench.formats.reader import Number, TestSample

HEAD = ("test", "unit", "median", "lowest", "highest", "processes", "values")


class MarkdownExporter(Exporter):
    """Writes a row per test: median, lowest and highest value of its processes, with each process represented by its
    median.
    """

    name = "markdown"

    def write(self, source: ExportSource, clean_only: bool) -> str:
        rows = [HEAD, ("---", "---", *["---:"] * 5), *(_row(each) for each in source.tests(clean_only))]
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(sample: TestSample) -> tuple[str, ...]:
    values = headlines(sample)
    numbers = (_number(each) for each in (median(values), min(values), max(values)))
    return (_cell(sample.name), _cell(sample.unit), *numbers, f"{len(values):,}", f"{sample.trials:,}")


def _number(value: Number) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

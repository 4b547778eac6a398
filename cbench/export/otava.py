"""Write results as a CSV for Apache Otava, which detects change points in a series of measurements."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from statistics import median

from cbench.export.exporter import Exporter, ExportSource
from quiet import UsageError


class OtavaExporter(Exporter):
    """Writes a column per test and a row per process in chronological order: row n has the n-th process of every test.

    Otava requires a time in each row and a number in each cell. A series is a directory of files, or a store to which
    `cbench run` has appended.
    """

    name = "otava"

    def write(self, source: ExportSource, clean_only: bool) -> str:
        tests = source.tests(clean_only)
        for each in tests:
            if len(each.begun) != len(each.processes):
                raise UsageError(
                    f"{source.path}: {each.name}: the start time of each process is unknown, but Otava needs it; "
                    "use --format csv"
                )
        counts = {len(each.processes): each.name for each in tests}
        if len(counts) > 1:
            (few, some), (many, others) = sorted(counts.items())[:2]
            had = f"{some} has {few:,} and {others} {many:,} processes"
            raise UsageError(f"{source.path}: {had}, but Otava needs a number in each row")
        columns = [
            sorted(zip(each.begun, (median(values) for values in each.processes), strict=True)) for each in tests
        ]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["time", *(" ".join(each.name.split()) for each in tests)])
        for row in zip(*columns, strict=True):
            at = datetime.fromtimestamp(min(begun for begun, _ in row) // 10**9, UTC)
            writer.writerow([at.isoformat(), *(value for _, value in row)])
        return text.getvalue()

"""Export as CSV."""

from __future__ import annotations

import csv
import io

from cbench.export.exporter import Exporter, ExportSource


class CsvExporter(Exporter):
    """RFC 4180 with line feeds: yes and no as 1 and 0, numbers in full, missing values as empty fields."""

    name = "csv"

    def write(self, source: ExportSource, clean_only: bool) -> str:
        table, text = source.table(), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows([int(cell) if isinstance(cell, bool) else cell for cell in row] for row in table.rows)
        return text.getvalue()

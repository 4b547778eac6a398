"""Measure every error rate and power that the docs state, in simulated studies (`make error-rates`).

    python -m tests.error_rates [--studies N] [--only WORD] [--docs FILE]

Runs on all processors, prints a line for each measured rate, writes the tables between the marks of FILE
(docs/error-rates.md; with --only, rates that are not measured keep their rows), and exits with 1 if a stated bound does
not hold. All seeds are fixed. To add a part, write a module with a tuple RATES in this directory and add it to PARTS.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path

from tests.error_rates.rate import MeasuredRate, Rate

PARTS = ("order", "fleet", "compare", "screen", "ab", "gate")
CHUNK = 25
BEGIN, END = "<!-- make error-rates: begin -->", "<!-- make error-rates: end -->"


@cache
def rates() -> tuple[Rate, ...]:
    return tuple(rate for part in PARTS for rate in import_module(f"tests.error_rates.{part}").RATES)


def chunk(key: str, numbers: range) -> int:
    """The number of these studies in which the event of the rate occurs; runs in a worker process."""
    rate = next(each for each in rates() if each.key == key)
    said = 0
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            said += bool(rate.study(number, Path(folder)))
    return said


def measured(chosen: list[Rate], studies: int) -> list[MeasuredRate]:
    found = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting = []
        for rate in chosen:
            count = max(CHUNK, round(rate.weight * studies))
            chunks = [range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
            waiting.append((rate, count, [pool.submit(chunk, rate.key, each) for each in chunks]))
        for rate, count, parts in waiting:
            made = MeasuredRate(rate, sum(part.result() for part in parts), count)
            found.append(made)
            sign = "ok   " if made.holds else "FAILS"
            bounds = f"{rate.low:g} to {rate.high:g}"
            print(f"{sign} {made.percent:5.1f} % ({bounds})  {rate.key}  [{count:,} studies]", flush=True)
    return found


def row(made: MeasuredRate) -> str:
    """The rate as a row of a Markdown table."""
    rate = made.rate
    stated = f"at most {rate.high:g}" if not rate.low else f"at least {rate.low:g}"
    stated = f"{rate.low:g} to {rate.high:g}" if rate.low and rate.high < 100 else stated
    return f"| {rate.name} | {made.percent:.1f} | {stated} | {made.studies:,} |"


def written(text: str) -> dict[str, str]:
    """The rows of the tables, by the keys of their rates."""
    rows, title = {}, ""
    for line in text.splitlines():
        title = line.removeprefix("### ") if line.startswith("### ") else title
        if line.startswith("| ") and title:
            rows[f"{title}: {line.split(' | ')[0].removeprefix('| ')}"] = line
    return rows


def tables(rows: dict[str, str]) -> str:
    """The tables as Markdown, in the order of the rates."""
    lines = []
    for title, group in groupby((rate for rate in rates() if rate.key in rows), key=lambda rate: rate.table):
        lines += [
            "",
            f"### {title}",
            "",
            "| situation | rate in % | stated bound in % | studies |",
            "| --- | ---: | ---: | ---: |",
        ]
        lines += [rows[rate.key] for rate in group]
    return "\n".join(lines).strip() + "\n"


def write(path: Path, found: list[MeasuredRate]) -> None:
    """Write the tables to the file. Rates that were not measured in this run keep their rows; rates that no longer
    exist lose them.
    """
    before, _, rest = path.read_text().partition(BEGIN)
    kept, _, after = rest.partition(END)
    rows = written(kept) | {made.rate.key: row(made) for made in found}
    path.write_text(f"{before}{BEGIN}\n{tables(rows)}{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000, help="number of simulated studies per rate")
    parser.add_argument("--only", default="", help="measure only the rates whose name contains this text")
    parser.add_argument("--docs", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    start = time.monotonic()
    found = measured([rate for rate in rates() if options.only in rate.key], options.studies)
    wrong = [each for each in found if not each.holds]
    print(f"{len(found)} rates in {(time.monotonic() - start) / 60:.1f} minutes; {len(wrong)} outside their bounds")
    if options.docs:
        write(options.docs, found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Write docs/textbook-cases.md: the verdicts of `cbench screen analyze` on textbook experiments. `make
textbook-cases`.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.analysis.result import ScreenResult
from tests import CHECKOUT
from tests.cbench.screen.screens import screened, table
from tests.textbook.cases import Case, cases, named

TARGET = CHECKOUT / "docs" / "textbook-cases.md"
HEAD = """# Textbook cases

This page compares the verdicts of `cbench screen analyze` on experiments from textbooks with the published results.
`make textbook-cases` writes it. The tests in `tests/textbook` check that each figure agrees with the published figure
to the precision of the publication. `tests/textbook/data.py` contains the data and their sources.

The tables compare p-values without correction. The first line of a verdict has one error rate of 5 % for all effects
together (Holm's procedure, or Lenth's method with stepwise comparison), so an effect with p just below 0.05 may be
listed only in the second line.

The case "Poisons" uses the original scale of the response. Box and Cox also analyzed its reciprocal; that analysis is
not among the cases.
"""


def analysis(case: Case) -> ScreenResult:
    """By the way of the command line: a table in a file."""
    with TemporaryDirectory() as folder:
        path = table(Path(folder) / f"{case.name}.csv", case.rows)
        return screened(path, ScreenOptions(subsamples=0), case.chosen)[0]


def page() -> str:
    """The whole text."""
    return HEAD + "".join(_section(case) for case in cases())


def _section(case: Case) -> str:
    made = analysis(case)
    effects = named(made)
    lines = [f"\n## {case.title}\n", f"Published: {case.words}.\n"]
    options = f" {case.options}" if case.options else ""
    lines.append(f"    $ cbench screen analyze {case.name}.csv{options}")
    lines += [f"    {line}" for line in made.verdict if case.shown(line)]
    lines += ["", "| effect | published | cbench |", "| --- | --- | --- |"]
    for name, published in case.published.items():
        each = effects[name]
        test = each.test
        assert test is not None
        printed = (("", published.effect), ("F", published.f), ("p", published.p))
        there = [f"{key} {value:g}" for key, value in printed if value is not None]
        here = [f"{each.effect:+.5g}" if each.signed and each.effect is not None else ""]
        here += [f"F {test.statistic:.5g}"] if published.f is not None and test.statistic is not None else []
        here.append(f"p {test.p:.4g}")
        lines.append(f"| {name} | {', '.join(there).strip()} | {', '.join(each for each in here if each)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(f"{TARGET} written")

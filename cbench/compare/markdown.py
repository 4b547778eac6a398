"""Format the summary of `cbench compare` for a pull request, as GitHub-flavored Markdown with regressions first."""

from __future__ import annotations

from collections.abc import Sequence

from cbench.compare.result import CompareResult
from cbench.compare.verdict import change, limits
from quiet import printable


def summary(result: CompareResult) -> str:
    """The Markdown text, which shows regressions and improvements, and folds all other tests."""
    changed = [*result.regressions, *result.improvements]
    other = [name for name in result.tests if name not in set(changed)]
    lines = [f"**{plain_text(result.counted)}**", ""]
    if changed:
        lines += [*_table(result, [name for name in result.tests if name in set(changed)]), ""]
    if result.hosts_differ:
        lines += [f"Hosts differ: {plain_text('; '.join(result.hosts_differ))}", ""]
    left_out = _left_out(result)
    lines += [line for each in result.interrupted for line in (f"I{plain_text(each[1:])}", "")]
    if other or left_out:
        tests = f"{len(other):,} other test{'' if len(other) == 1 else 's'}"
        lines += ["<details>", f"<summary>{tests}{', and notes' if left_out else ''}</summary>", ""]
        lines += [*_table(result, other), ""] if other else []
        lines += [*left_out, ""] if left_out else []
        lines += ["</details>", ""]
    return "\n".join(lines)


def _table(result: CompareResult, names: Sequence[str]) -> list[str]:
    lines = [
        f"| test | outcome | change | {100 * result.level:g} % interval | adjusted p | n |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        test = result.tests[name]
        p = "" if test.claim_p is None else f"{test.claim_p:.2g}"
        processes = f"{test.n[0]}, {test.n[1]}"
        moved, interval = change(test.delta_pct, test.interval_pct, " %"), limits(test.interval_pct, " %")
        cells = (code_span(name), test.outcome, moved, interval, p, processes)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _left_out(result: CompareResult) -> list[str]:
    """The lines of a list: failed tests, tests that only one file has, possible renames, tests that are not compared,
    and the notes.
    """
    lines = [f"- failed: {plain_text(line)}" for line in result.failed]
    lines += [f"- only in OLD: {code_span(name)}" for name in result.only_in_old]
    lines += [f"- only in NEW: {code_span(name)}" for name in result.only_in_new]
    lines += [f"- possibly renamed: {code_span(each.old)} to {code_span(each.new)}" for each in result.possible_renames]
    lines += [f"- not compared: {plain_text(why)}" for why in (*result.skipped, *result.other_units)]
    return lines + [f"- {plain_text(remark)}" for remark in (*result.remarks, *filter(None, [result.too_few]))]


def code_span(name: str) -> str:
    """A name as a code span, escaped so that it cannot end its table cell or its code span, mention a user, or be read
    as HTML.
    """
    plain = printable(name).replace("`", "'").replace("|", "\\|")
    return f"`{' '.join(plain.split()) or ' '}`"


def plain_text(line: str) -> str:
    """A line of text, escaped so that Markdown shows it literally."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#@~&" else letter for letter in printable(line))

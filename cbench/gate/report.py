"""Format a gate's result as lines of text, as Markdown for a pull request, and as JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log1p
from xml.etree import ElementTree

from cbench.ab.design import BUDGET, EFFECT
from cbench.compare.markdown import code_span, plain_text
from cbench.compare.suite import CANNOT_TELL
from cbench.external.table import disturbed_line
from cbench.gate.judge import CANNOT_JUDGE, IMPROVEMENT, JUDGED, NOT_CONFIRMED, PASSED, REGRESSION, JudgedTest
from cbench.gate.result import GateResult, counts
from cbench.report.text import about, counted
from quiet import printable

SUITE, CLASS = "cbench gate", "cbench.gate"
SHOWN = (REGRESSION, CANNOT_JUDGE, NOT_CONFIRMED, IMPROVEMENT)
"""The outcomes of tests that the Markdown summary shows unfolded."""
SKIPPED = (CANNOT_JUDGE, CANNOT_TELL)
"""The outcomes that become "skipped" in JUnit, which has no better term."""
DAY_S = 86_400


def sentence(test: JudgedTest) -> str:
    """The result of a test as text, without the name of the test."""
    if test.why or test.interval_pct is None or test.delta_pct is None:
        return test.why
    low, high = test.interval_pct
    text = f"{test.delta_pct:+.3g} % ({low:+.3g} to {high:+.3g} % at {100 * test.level:.3g} %)"
    text += f"; old differs from its own copy by at most {amount(test.floor_pct)} %"
    if test.outcome in SKIPPED and test.detectable_pct is not None:
        text += f"; only a slowdown of at least {amount(test.detectable_pct)} % would have been detected"
    if test.outcome == NOT_CONFIRMED:
        text = f"suspected in the first session, not confirmed in the second: {text}"
    if test.outcome == CANNOT_JUDGE:
        text = f"suspected in the first session, neither confirmed nor cleared by the second: {text}"
    return text


def amount(percent: float) -> str:
    """A percentage with two significant digits, or as a whole number from 99.5 on: 0.62, 5, 140."""
    return f"{percent:.2g}" if percent < 99.5 else f"{percent:,.0f}"


def power(result: GateResult) -> str:
    """A sentence on the slowdowns that were ruled out or would have been detected, and on the budget or blocks that the
    threshold would need; "" if no sensitivity is known. Tests with a regression do not count.
    """
    others = [test for test in result.tests if test.outcome != REGRESSION]
    known = [test.detectable_pct for test in others if test.detectable_pct is not None]
    if not known:
        return ""
    enough = sum(test.outcome in JUDGED for test in others)
    tests = counted(len(others), "test" if len(others) == len(result.tests) else "other test")
    line = f"a slowdown of {result.threshold_pct:g} % was ruled out or would have been detected in {enough} of {tests}"
    if enough == len(others):
        return line
    return f"{line}, and a slowdown of {amount(max(known))} % in {len(known)}{_more(result, max(known))}"


def _more(result: GateResult, detectable_pct: float) -> str:
    """The budget or the blocks needed to detect the threshold; intervals narrow with the square root of the blocks."""
    times = (log1p(detectable_pct / 100) / log1p(result.threshold_pct / 100)) ** 2
    first = result.sessions[0]
    if times <= 1 or first.ended == EFFECT:
        return ""
    key, value = ("budget_s", first.seconds) if first.ended == BUDGET else ("blocks", first.blocks)
    if times * first.seconds > DAY_S:
        return "; use a quieter host, or a higher threshold"
    enough = about(ceil(times * value))
    return f"; to detect {result.threshold_pct:g} %, use a quieter host, or raise {key} to about {enough:,}"


def lines(result: GateResult) -> list[str]:
    """The lines of the text: the summary, every test that did not pass or was not judged, the detectable slowdowns, and
    the sessions.
    """
    rows = [f"**{result.counted}**"]
    rows += [
        f"  {test.outcome}: {printable(test.name)}: {sentence(test)}" for test in result.tests if test.outcome != PASSED
    ]
    rows += [f"  {_failed(printable(name), why)}" for name, why in result.failed_in_new.items()]
    rows += [f"  not judged: {printable(name)}: {printable(why)}" for name, why in result.left_out.items()]
    rows += [f"  only in old: {printable(name)}" for name in result.only_in_old]
    rows += [f"  only in new: {printable(name)}" for name in result.only_in_new]
    rows += [f"  {text}" for text in (power(result),) if text]
    for number, each in enumerate(result.sessions, 1):
        layouts = f" of {each.layouts} layouts" if each.layouts > 1 else ""
        copied = f"; the copy is old itself: {each.not_copied}" if each.not_copied else ""
        rows.append(
            f"  session {number}: {each.blocks} blocks{layouts} in {each.seconds:.3g} s, ended by {each.ended}{copied}"
        )
        rows.append(f"    {disturbed_line(each.polluted, each.runs, each.causes)}")
    return rows


def _failed(name: str, why: str) -> str:
    """The line of a test that failed in new only; `why` says in how many runs, and gives the first message."""
    return f"cannot judge: {name}: {printable(why)}"


def markdown(result: GateResult) -> str:
    """The result as GitHub-flavored Markdown, regressions first; tests that passed or are undecided are folded."""
    shown = [test for test in result.tests if test.outcome in SHOWN]
    folded = [test for test in result.tests if test.outcome not in SHOWN]
    rows = [f"**cbench gate: {plain_text(result.counted)}**", ""]
    rows += [*_table(shown), ""] if shown else []
    failed = result.failed_in_new.items()
    rows += [*(f"- {_failed(code_span(name), plain_text(why))}" for name, why in failed), ""] if failed else []
    rows += [f"{plain_text(power(result))}.", ""] if power(result) else []
    others = [f"- not judged: {code_span(name)}: {plain_text(why)}" for name, why in result.left_out.items()]
    others += [f"- only in old: {code_span(name)}" for name in result.only_in_old]
    others += [f"- only in new: {code_span(name)}" for name in result.only_in_new]
    others += [
        f"- session {number}: {plain_text(disturbed_line(each.polluted, each.runs, each.causes))}"
        for number, each in enumerate(result.sessions, 1)
    ]
    if folded or others:
        rows += ["<details>", f"<summary>{counts(folded) or 'details'}</summary>", ""]
        rows += [*_table(folded), ""] if folded else []
        rows += [*others, ""] if others else []
        rows += ["</details>", ""]
    return "\n".join(rows)


def markdown_error(message: str) -> str:
    """Markdown for a gate that ended with an error, as contrib/gate.sh writes it."""
    return f"**cbench gate: cannot judge**\n\n    cbench: error: {printable(message)}\n"


def junit(result: GateResult) -> str:
    """The result as JUnit XML: a regression is a failure, and a test without a verdict is skipped."""
    skipped = sum(test.outcome in SKIPPED for test in result.tests) + len(result.left_out)
    root = ElementTree.Element(
        "testsuite",
        name=SUITE,
        tests=str(len(result.tests) + len(result.left_out) + len(result.failed_in_new)),
        failures=str(len(result.regressions)),
        errors=str(len(result.failed_in_new)),
        skipped=str(skipped),
        time=f"{sum(each.seconds for each in result.sessions):.3f}",
    )
    for test in result.tests:
        case = ElementTree.SubElement(root, "testcase", classname=CLASS, name=printable(test.name))
        if test.outcome == REGRESSION:
            ElementTree.SubElement(case, "failure", message=f"regression: {sentence(test)}")
        elif test.outcome in SKIPPED:
            ElementTree.SubElement(case, "skipped", message=f"{test.outcome}: {sentence(test)}")
    for name, why in result.failed_in_new.items():
        case = ElementTree.SubElement(root, "testcase", classname=CLASS, name=printable(name))
        ElementTree.SubElement(case, "error", message=printable(why))
    for name, why in result.left_out.items():
        case = ElementTree.SubElement(root, "testcase", classname=CLASS, name=printable(name))
        ElementTree.SubElement(case, "skipped", message=printable(why))
    return _xml(root)


def junit_error(message: str) -> str:
    """JUnit XML for a gate that ended with an error: a single test with that error."""
    root = ElementTree.Element("testsuite", name=SUITE, tests="1", failures="0", errors="1", skipped="0", time="0.000")
    case = ElementTree.SubElement(root, "testcase", classname=CLASS, name="gate")
    ElementTree.SubElement(case, "error", message=printable(message))
    return _xml(root)


def _xml(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _table(tests: Sequence[JudgedTest]) -> list[str]:
    rows = [
        "| test | outcome | change | interval | noise floor | blocks |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for test in tests:
        interval = "" if test.interval_pct is None else "{:+.3g} to {:+.3g} %".format(*test.interval_pct)
        delta = test.why if test.delta_pct is None else f"{test.delta_pct:+.3g} %"
        cells = (code_span(test.name), test.outcome, delta, interval, f"{amount(test.floor_pct)} %")
        rows.append(f"| {' | '.join(cells)} | {test.blocks} |")
    return rows

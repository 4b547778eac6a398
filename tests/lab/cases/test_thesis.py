"""The processing of reports by `make thesis`, without booting anything."""

from __future__ import annotations

from typing import Any

from tests.lab.thesis import table
from tests.lab.thesis.rows import BOOTS, Boot, Row

ROW = Row("quiet", "quiet system", "a72", 10)
MODULE = Row("module", "kernel module", "exact", 10, "--in-kernel", exact=True)
TICK = "interrupt 11 (arch_timer)"


def report(values: list[int], polluted: dict[int, str]) -> dict[str, Any]:
    causes = [
        {"cause": cause, "trials": list(polluted.values()).count(cause)} for cause in dict.fromkeys(polluted.values())
    ]
    marked = [{"trial": number, "cause": cause} for number, cause in polluted.items()]
    result = {"trials": values, "polluted": marked, "causes": causes, "settling": {"values": [130, 101, 100]}}
    return {"results": [result]}


VALUES = [100] * 6 + [150, 160, 170, 100]


def test_trials_that_differ_are_distinguished_by_whether_an_interrupt_explains_them() -> None:
    found = table.line(ROW, report(VALUES, {6: TICK, 9: TICK}))
    assert (found.mode, found.p90, found.p100, found.range) == (100, 60, 70, 70)
    assert (found.explained, found.unexplained, found.their_most, found.for_nothing) == (1, 2, 70, 1)
    text = table.explanation(found, shared_clock=True)
    assert "1 of 10 trials differ and were interrupted" in text
    assert "2 differ with no interrupt on that CPU (the shared clock), by 70 cycles at most" in text
    assert f"{TICK} (2)" in text
    assert "NOT EXPLAINED" in table.explanation(found, shared_clock=False)


def test_the_clean_trials_are_those_without_a_cause() -> None:
    found = table.clean_line(ROW, report(VALUES, {6: TICK, 7: TICK, 8: TICK}))
    assert (found.trials, found.range, found.explained, found.unexplained) == (7, 0, 0, 0)


def test_it_fails_when_the_module_or_a_clean_trial_is_not_exact() -> None:
    boot = Boot(BOOTS[0].machine, "one CPU", (ROW, MODULE))
    exact = {"quiet": report(VALUES, {6: TICK, 7: TICK, 8: TICK}), "module": report([100] * 10, {})}
    assert table.failures({"one": list(table.lines(boot, exact))}) == []
    unmarked = {**exact, "quiet": report(VALUES, {6: TICK, 7: TICK})}
    assert table.failures({"one": list(table.lines(boot, unmarked))}) == [
        "NOT EXACT: quiet system: its clean trials: range 70 cycles"
    ]
    varying = {**exact, "module": report([100] * 9 + [101], {})}
    assert table.failures({"one": list(table.lines(boot, varying))}) == ["NOT EXACT: kernel module: range 1 cycles"]


def test_the_settling_is_shown_as_differences_from_the_mode() -> None:
    found = table.line(ROW, report(VALUES, {}))
    assert table.settling(found) == "quiet system: 1: +30  2: +1  3: +0"


def test_every_row_has_a_unique_name_in_its_machine_and_the_claim_in_the_relevant_row() -> None:
    rows = [row for boot in BOOTS for row in boot.rows]
    assert len({row.key for row in rows}) == len(rows)
    text = table.table("one", [table.line(MODULE, report([100] * 10, {}))])
    assert text.splitlines()[-1].split()[-6:] == ["100", "0", "0", "0", "0", "-"]

"""The processing of reports by `make effects`, without booting anything."""

from __future__ import annotations

from math import comb
from typing import Any

import pytest

from quiet.knobs.registry import BY_NAME
from tests.lab.effects import analyze, table

KNOBS = ("cpuset", "irq", "net.rps", "ksm")
BUSY = {"IRQ 30 virtio": 200, "task sleep": 80, "IPI: reschedule": 100}


def part(causes: dict[str, int]) -> dict[str, Any]:
    return {"seconds": 4.0, "causes": causes}


def reports() -> dict[str, dict[str, Any]]:
    """`irq` removes a device's interrupts, `ksm` nothing; rescheduling goes up and down by itself."""
    rows: dict[str, Any] = {}
    for number, name in enumerate(KNOBS):
        moving = BUSY | {"IPI: reschedule": 20 + 100 * number}
        without_irq = {cause: count for cause, count in moving.items() if name != "irq" or "IRQ" not in cause}
        rows[name] = {"none": part(moving), "alone": part(without_irq)}
    rows["ksm"]["alone"]["causes"]["IPI: reschedule"] = 40
    return {"plain-6.12": {"kernel": "6.12.1-amd64", "knobs": rows, "all": part({"tick": 4})}}


def seen(knob: str) -> analyze.Effect:
    (found,) = (each for each in analyze.effects(reports()) if each.knob == knob)
    return found


def test_a_cause_removed_by_a_knob_is_found() -> None:
    (removed,) = seen("irq").removed
    assert removed.cause == "IRQ 30 virtio"
    assert removed.removed_per_s == pytest.approx(50)


def test_a_cause_that_fluctuates_is_not_an_effect() -> None:
    assert seen("ksm").removed == () == seen("ksm").added


def test_the_p_of_two_counts_is_the_binomial_distributions() -> None:
    for without, with_it in ((20, 3), (5, 5), (0, 4), (100, 80)):
        both = without + with_it
        wanted = sum(comb(both, k) * 3**k * 4 ** (both - k) for k in range(with_it + 1)) / 7**both
        assert analyze.rarer(without, 4.0, with_it, 3.0) == pytest.approx(wanted)


def test_each_knob_has_one_entry_in_the_shipped_data() -> None:
    lines = table.toml(analyze.effects(reports()), 4.0).splitlines()
    assert '"irq" = { kernels = "6.12", removed = ["IRQ 30 virtio 50 → 0/s"] }' in lines
    assert '"ksm" = { kernels = "6.12", least_per_s = "4" }' in lines
    assert set(KNOBS) <= set(BY_NAME)


def test_the_page_keeps_the_manual_text_around_the_tables() -> None:
    page = table.replaced(f"a\n{table.BEGIN}\nold\n{table.END}\nz\n", reports(), analyze.effects(reports()))
    assert page.startswith("a\n")
    assert page.endswith("\nz\n")
    assert "old" not in page
    assert "| `irq` | plain-6.12 | IRQ 30 virtio 50 → 0/s | - |" in page
    assert "| plain-6.12 | tick 1 |" in page

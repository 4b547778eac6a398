"""One boot of each machine for all tests that use it: booting costs more than what is then done there."""

from __future__ import annotations

import json
from typing import Any

from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.once import once

# Where it is also watched who runs on the isolated CPUs: with and without isolation from the boot on, both kernels.
WATCHED = ("isolated-6.1", "isolated-6.12", "plain-6.1", "plain-6.12")
TIMEOUT_S = 1800  # far more than a busy machine takes


@once
def visit(machine: Machine) -> tuple[Result, list[str]]:
    """Boot, describe the machine, quiet it and restore it; the lines are its output while it ran."""
    lines: list[str] = []
    steps = "round-trip isolation" if machine.name in WATCHED else "round-trip"
    script = f"bash tests/lab/guest/look.sh && python -m tests.lab.guest.drive {steps}"
    return boot(machine, script, timeout=TIMEOUT_S, on_line=lines.append), lines


def seen(result: Result) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition("=") for line in result.output.splitlines())}


def report(machine: Machine) -> dict[str, Any]:
    result, _ = visit(machine)
    found: dict[str, Any] = json.loads(result.files.get("report.json", "{}"))
    assert "broke" not in found, found["broke"]
    assert found, result.output
    return found

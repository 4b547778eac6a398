"""A network device with several queues, in use: none of its work reaches the isolated CPUs, and all is restored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.harness import debian, tap
from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["net", "net-6.1"], indirect=True)]

ISOLATED, HOUSEKEEPING = ("2", "3"), ("0", "1")
ROUNDS = 6
TIMEOUT_S = 1800
SCRIPT = f"python -m tests.lab.guest.network {ROUNDS}"


def programs() -> list[Path]:
    """Debian's ethtool and its library, to run in the guest: a reader that is not ours."""
    root = debian.programs("ethtool", ["ethtool", "libmnl0"])
    (program,) = [path for path in root.glob("*/**/ethtool") if path.is_file() and path.parent.name == "sbin"]
    (library,) = root.glob("**/libmnl.so.0")
    return [program, library]


@once
def report(machine: Machine) -> dict[str, Any]:
    if why := tap.missing():
        pytest.skip(f"not here: a network device for guests: {why}")
    try:
        given = programs()
    except PackageError as error:
        pytest.skip(f"no lab: {error}")
    result = boot(machine, SCRIPT, timeout=TIMEOUT_S, env={"LAB_GUEST": tap.GUEST, "LAB_PEER": tap.PEER}, give=given)
    print(f"{machine.name}: {result.seconds:.0f} s with the boot")
    found: dict[str, Any] = json.loads(result.files.get("report.json", "{}"))
    assert "broke" not in found, found["broke"]
    assert found, result.output
    return found


def said(step: dict[str, Any]) -> str:
    return f"exit status {step['code']}\n{step['out']}{step['err']}"


def test_without_quiet_the_device_interrupts_every_cpu(machine: Machine) -> None:
    without = report(machine)["without"]
    assert all(without["interrupts"][cpu] for cpu in (*ISOLATED, *HOUSEKEEPING)), without
    assert any(without["handed"][cpu] for cpu in ISOLATED), without


def test_with_it_no_interrupt_and_no_packet_reaches_an_isolated_cpu(machine: Machine) -> None:
    apart = dict(report(machine)["with"])
    assert report(machine)["apply"]["code"] == 0, said(report(machine)["apply"])
    assert apart.pop("connections") >= report(machine)["without"]["connections"]
    assert {what: [apart[what][cpu] for cpu in ISOLATED] for what in apart} == {what: [0, 0] for what in apart}
    assert sum(apart["interrupts"][cpu] for cpu in HOUSEKEEPING) > 30  # traffic there was
    assert any(apart["handed"][cpu] for cpu in HOUSEKEEPING), apart


def test_status_plan_and_traffic_change_nothing(machine: Machine) -> None:
    assert report(machine)["left_by_traffic"] == []
    assert report(machine)["left_by_plan"] == []


def test_an_ordinary_user_gets_the_same_plan(machine: Machine) -> None:
    mine, theirs = report(machine)["plan_root"], report(machine)["plan_unprivileged"]
    assert [change for change in mine if "/channels" in change]
    assert theirs == mine


def test_after_apply_the_plan_is_empty_and_verify_succeeds(machine: Machine) -> None:
    assert report(machine)["plan_again"]["json"]["changes"] == []
    assert report(machine)["verify"]["code"] == 0, said(report(machine)["verify"])
    assert "net:" in report(machine)["plan"]["out"]
    assert len(report(machine)["changed"]) > 10


def test_restore_recreates_every_removed_queue(machine: Machine) -> None:
    assert report(machine)["restore"]["code"] == 0, said(report(machine)["restore"])
    assert report(machine)["left"] == []


def test_after_a_kill_at_any_moment_restore_leaves_nothing_changed(machine: Machine) -> None:
    rounds = report(machine)["rounds"]
    assert [(each["code"], each["left"]) for each in rounds] == [(0, [])] * ROUNDS
    assert len([each for each in rounds if each["cut"]]) > ROUNDS / 3


def test_queues_that_a_manual_table_needs_stay_with_the_reason(machine: Machine) -> None:
    assert report(machine)["refused"]["code"] == 0, said(report(machine)["refused"])
    reasons = {skip["target"]: skip["reason"] for skip in report(machine)["refused_plan"]["json"]["skips"]}
    assert [reason for target, reason in reasons.items() if target.endswith("/channels") and "ethtool -X" in reason]
    assert report(machine)["refused_restore"]["code"] == 0, said(report(machine)["refused_restore"])
    assert report(machine)["left_by_refused"] == []


def test_a_replugged_device_is_treated_as_a_new_one_and_nothing_fails(machine: Machine) -> None:
    assert report(machine)["replug_plan"]["code"] in (0, 1), said(report(machine)["replug_plan"])
    restored = report(machine)["replug_restore"]
    assert restored["code"] == 0, said(restored)
    assert [target for target in restored["json"]["gone"] if target.endswith("/channels")]
    assert report(machine)["left_by_replug"] == []

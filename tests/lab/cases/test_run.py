"""`quiet run` by users: as its caller, one at a time, whichever process dies; and attacks of a hostile user on the
helper.
"""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from typing import Any

import pytest

from tests import ABSENT
from tests.lab.harness import debian
from tests.lab.harness.boot import Machine, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["plain-6.12"], indirect=True)]

KILLS = int(os.environ.get("KILLS", "1"))
SCRIPT = """
. tests/lab/guest/users.sh
export VIRTUAL_ENV=/venv
python -m tests.lab.guest.run_users $PARTS >$LAB_OUT/report.json
"""


def report_of(machine: Machine, parts: str, timeout: int) -> dict[str, Any]:
    try:
        sudo = debian.programs("sudo", ["sudo"])
    except PackageError as error:
        pytest.skip(f"{ABSENT}sudo: {error}")
    env = {"SUDO": str(sudo), "PARTS": parts, "KILLS": str(KILLS)}
    result = boot(machine, SCRIPT, timeout=timeout, env=env)
    assert result.code == 0, result.output
    found: dict[str, Any] = json.loads(result.files["report.json"])
    return found


@once
def basics(machine: Machine) -> dict[str, Any]:
    return report_of(machine, "basics", 1200)


@once
def twenty(machine: Machine) -> dict[str, Any]:
    return report_of(machine, "twenty", 3600)


@once
def kills(machine: Machine) -> dict[str, Any]:
    """KILLS=30 in the environment kills at 30 random moments of each kind, not at one."""
    return report_of(machine, "kills", 3600 + 600 * KILLS)


@once
def hostile(machine: Machine) -> dict[str, Any]:
    return report_of(machine, "hostile", 7200)


def test_a_command_runs_as_its_caller(machine: Machine) -> None:
    uid, folder, venv, group = basics(machine)["as_caller"]["out"].split()
    assert (uid, folder, venv) == ("1000", "/home/u", "/venv")
    assert group.startswith("0::/quiet/run-")
    assert basics(machine)["owner"] == 1000


def test_a_user_without_a_rule_is_refused_with_the_reason(machine: Machine) -> None:
    step = basics(machine)["without_rule"]
    assert step["code"] == 3
    assert "nothing was changed" in step["err"]


def test_under_sudo_the_command_runs_as_the_calling_user(machine: Machine) -> None:
    assert basics(machine)["under_sudo"]["out"].split() == ["1000", "/home/u"]
    assert basics(machine)["as_root"]["out"].split() == ["0"]


def test_the_exit_code_and_the_streams_are_the_commands(machine: Machine) -> None:
    assert basics(machine)["exit_code"]["code"] == 7
    assert basics(machine)["killed_by_itself"]["code"] == 137
    assert basics(machine)["pipe"]["out"] == "through\n"


def test_the_report_of_a_run_has_its_interruptions_with_causes_and_its_limits_count(machine: Machine) -> None:
    done, seen = basics(machine)["reported"], basics(machine)["report"]
    assert (done["code"], seen["exit_code"], seen["complete"]) == (1, 0, True), done["err"]
    assert seen["method"] == "trace"
    assert set(seen["cpus_used"]) <= {2, 3}
    assert seen["interrupted"]["count"] == sum(cause["count"] for cause in seen["causes"]) > 0
    assert seen["interrupted"]["total_ns"] > 0
    assert seen["restored"] > 0
    assert f"not quiet: {seen['interrupted']['count']} interruptions, more than 0" in done["err"]
    assert f"quiet: interrupted {seen['interrupted']['count']:,} times, " in done["err"]


@pytest.mark.long
def test_a_task_of_another_user_that_changes_its_own_cpus_blocks_no_run(machine: Machine) -> None:
    assert hostile(machine)["beside_a_mover"] == [0, 0]
    assert hostile(machine)["left_beside_a_mover"] == []


@pytest.mark.long
def test_processes_that_fork_faster_than_they_are_moved_do_not_keep_the_host_from_being_restored(
    machine: Machine,
) -> None:
    assert hostile(machine)["stray"]["code"] == 0, hostile(machine)["stray"]["err"]
    assert hostile(machine)["left_by_stray"] == []


def test_a_run_with_another_profile_ends_one_that_lingers_and_restores(machine: Machine) -> None:
    other = basics(machine)["another_profile"]
    assert other["code"] == 0, other["err"]
    assert other["seconds"] < 60


@pytest.mark.long
def test_twenty_at_once_all_succeed_and_never_two_of_them_at_once(machine: Machine) -> None:
    times = twenty(machine)["twenty"]
    assert [each["code"] for each in times] == [0] * 20
    spans = sorted((each["from"], each["to"]) for each in times)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))


@pytest.mark.long
def test_twenty_at_once_run_in_the_order_of_arrival(machine: Machine) -> None:
    times = twenty(machine)["twenty"]
    assert sorted(times, key=lambda each: each["from"]) == sorted(times, key=lambda each: each["arrived"])


@pytest.mark.long
def test_whichever_process_is_killed_the_host_is_restored_and_the_next_run_starts(machine: Machine) -> None:
    rounds = kills(machine)["kills"]
    done = Counter((each["what"], each["signal"]) for each in rounds if each["killed"])
    assert set(done) == {
        *((what, 9) for what in ("front", "helper", "guard", "command")),
        *(("front", n) for n in (15, 2, 1)),
    }
    assert min(done.values()) >= KILLS
    assert [each for each in rounds if each["left"] or each["alive"] or each["next"] != 0] == []


@pytest.mark.long
def test_a_hostile_user_gains_nothing(machine: Machine) -> None:
    attempts = hostile(machine)["hostile"]
    assert len(attempts) >= 300
    assert {each["case"] for each in attempts if each["kind"] == "lingering"} == {"Permission denied", "'ready'"}
    assert [each for each in attempts if each["gained"]] == []
    assert hostile(machine)["left_by_hostile"] == []


def test_a_short_run_costs_little_while_the_profile_lingers(machine: Machine) -> None:
    print(basics(machine)["seconds"])  # the figures are only printed: in an emulator they have no limits to meet
    assert basics(machine)["lingers"]["applied_again"] == 0
    assert basics(machine)["left_by_linger"] == []

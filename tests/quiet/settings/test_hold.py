"""Values held without a profile, through the journal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quiet.errors import Incomplete, Refused, UsageError
from quiet.host.host import Host
from quiet.knobs.cpufreq import cpufreq_state
from quiet.settings import journal
from quiet.settings.hold import begin_hold, end_hold, hold_settings
from quiet.settings.restore import restore
from quiet.settings.verify import applied_profile
from tests.trees import CPU, contents, cpufreq, machine, plant

BASE = f"/{CPU}/cpufreq/policy2"
LIMITS = (f"file:{BASE}/scaling_max_freq", f"file:{BASE}/scaling_min_freq")
GOVERNOR = f"file:{BASE}/scaling_governor"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(str(plant(tmp_path, machine(cpus=4) | cpufreq(4, "acpi-cpufreq"))))


def limits(host: Host) -> list[str | None]:
    return [host.text(target.removeprefix("file:")) for target in LIMITS]


def both(khz: int) -> dict[str, str]:
    return dict.fromkeys(LIMITS, str(khz))


def test_values_are_held_changed_and_restored(host: Host, tmp_path: Path) -> None:
    before = contents(tmp_path)
    with hold_settings(both(800000), knob="cpufreq.limits", source="test", host=host) as held:
        assert limits(host) == ["800000", "800000"]
        held.set(both(3000000))
        assert limits(host) == ["3000000", "3000000"]
    assert contents(tmp_path) == before
    assert journal.load(host) is None


def test_an_error_inside_the_block_restores(host: Host, tmp_path: Path) -> None:
    before = contents(tmp_path)
    with (
        pytest.raises(KeyboardInterrupt),
        hold_settings(both(800000), knob="cpufreq.limits", source="test", host=host),
    ):
        raise KeyboardInterrupt
    assert contents(tmp_path) == before


def test_a_value_changed_by_another_program_is_left_and_reported(host: Host) -> None:
    with (
        pytest.raises(Incomplete, match="scaling_max_freq: changed to '2500000' after the apply"),
        hold_settings(both(2000000), knob="cpufreq.limits", source="test", host=host),
    ):
        host.write(f"{BASE}/scaling_max_freq", "2500000")
    assert limits(host) == ["2500000", "800000"]


def test_a_second_hold_is_refused_and_changes_nothing(host: Host) -> None:
    with hold_settings(both(2000000), knob="cpufreq.limits", source="first", title="my test", host=host):
        second = hold_settings(both(800000), knob="cpufreq.limits", source="second", host=host)
        with pytest.raises(Refused, match="'my test' is applied to this host; run `quiet restore` first"), second:
            raise AssertionError
        assert limits(host) == ["2000000", "2000000"]


def test_an_unknown_knob_is_an_error_before_anything_is_written(host: Host, tmp_path: Path) -> None:
    before = contents(tmp_path)
    with pytest.raises(UsageError, match="unknown knob 'speed'"):
        begin_hold(host, both(800000), knob="speed", source="test")
    assert contents(tmp_path) == before


def test_a_killed_hold_is_restored_by_its_source_or_by_restore_and_by_no_other_source(host: Host) -> None:
    before = limits(host)
    begin_hold(host, both(2000000), knob="cpufreq.limits", source="killed")
    end_hold(host, "another")
    assert limits(host) == ["2000000", "2000000"]
    end_hold(host, "killed")
    assert limits(host) == before
    begin_hold(host, both(2000000), knob="cpufreq.limits", source="killed")
    assert restore(host).complete
    assert limits(host) == before


def test_the_journal_records_held_and_entangled_targets(host: Host) -> None:
    """A hold of the same source adds to what is applied."""
    begin_hold(host, both(2000000), knob="cpufreq.limits", source="test")
    entangled = cpufreq_state(host)
    assert {GOVERNOR, *LIMITS} <= set(entangled)
    begin_hold(
        host, {GOVERNOR: "powersave"}, knob="cpufreq.governor", source="test", kind="choice", entangled=entangled
    )
    lines = Path(f"{host.root}/run/quiet/journal.jsonl").read_text().splitlines()
    operations = [json.loads(line) for line in lines]
    held = ["begin", "before", "before", "intent", "done", "intent", "done", "settled"]
    later = [item["op"] for item in operations[len(held) :]]
    assert [item["op"] for item in operations[: len(held)]] == held
    assert later == ["before"] * (len(later) - 3) + ["intent", "done", "settled"]
    assert operations[0]["passing"] is True
    assert operations[1]["entries"][0] == ["cpufreq.limits", LIMITS[0], "number", "3000000", None, False]
    rows = [row for item in operations[len(held) :] for row in item.get("entries", ())]
    second = {target: (knob, kind, passing) for knob, target, kind, _, _, passing in rows}
    assert second[GOVERNOR] == ("cpufreq.governor", "choice", False)
    assert not set(LIMITS) & set(second)
    assert all(passing for target, (_, _, passing) in second.items() if target != GOVERNOR)
    end_hold(host, "test")
    assert journal.load(host) is None


def test_nothing_is_held_before_an_incomplete_restore_is_complete(host: Host) -> None:
    """Otherwise its second end would take the value for another program's."""
    begin_hold(host, both(2000000), knob="cpufreq.limits", source="test")
    host.write(f"{BASE}/scaling_max_freq", "2500000")
    with pytest.raises(Incomplete):
        end_hold(host, "test")
    with pytest.raises(Refused, match="a restore is incomplete"):
        begin_hold(host, both(1500000), knob="cpufreq.limits", source="test")
    assert limits(host) == ["2500000", "800000"]
    assert restore(host, force=True).complete
    assert limits(host) == ["3000000", "800000"]


def test_cpus_isolated_at_boot_stay_isolated_during_a_hold(tmp_path: Path) -> None:
    files = machine(cpus=4) | cpufreq(4, "acpi-cpufreq") | {"sys/devices/system/cpu/isolated": "2-3"}
    host = Host(str(plant(tmp_path, files)))
    with hold_settings(both(2000000), knob="cpufreq.limits", source="test", host=host):
        assert journal.isolated_cpus(host) == {2, 3}


def test_a_hold_has_no_profile_to_verify(host: Host) -> None:
    with hold_settings(both(2000000), knob="cpufreq.limits", source="test", title="my test", host=host):
        with pytest.raises(Refused, match="'my test' is applied, but is not a profile; name one with --profile"):
            applied_profile(host, None)
        assert applied_profile(host, "bench").name == "bench"
    assert applied_profile(host, None).name == "bench"

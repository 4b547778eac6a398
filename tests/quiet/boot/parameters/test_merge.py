"""Requested parameters merged with the command line: no duplicate, no contradiction, a CPU left for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiet import cpulist
from quiet.boot.parameters import cmdline
from quiet.boot.parameters.merge import cpus, merge
from quiet.errors import Refused
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from tests.trees import machine, plant

WISH = ["isolcpus=managed_irq,domain,2-3", "nohz_full=2-3", "rcu_nocbs=2-3", "irqaffinity=0-1", "skew_tick=1"]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    files = {"proc/cpuinfo": "vendor_id\t: GenuineIntel"}
    return Facts(Reader(str(plant(tmp_path_factory.mktemp("machine"), machine(4) | files))))


@pytest.mark.parametrize(
    ("there", "wanted", "planned"),
    [
        pytest.param("ro quiet", "skew_tick=1", "ro quiet skew_tick=1", id="a new word comes at the end"),
        pytest.param("ro -- single", "skew_tick=1", "ro skew_tick=1 -- single", id="and ahead of init's"),
        pytest.param("skew_tick=1 ro", "skew_tick=1", "skew_tick=1 ro", id="a present parameter keeps its position"),
        pytest.param("skew-tick=1", "skew_tick=1", "skew-tick=1", id="in whichever spelling"),
        pytest.param("skew_tick=0 ro skew_tick=1", "skew_tick=1", "ro skew_tick=1", id="two of a name become one"),
        pytest.param('x="a b" ro', "skew_tick=1", 'x="a b" ro skew_tick=1', id="quoted values stay whole"),
        pytest.param("tsc=reliable", "tsc=nowatchdog", "tsc=reliable", id="a stronger word already does it"),
        pytest.param("nowatchdog", "nosoftlockup", "nowatchdog", id="so does a wider one"),
        pytest.param("tsc=watchdog", "tsc=nowatchdog", "tsc=nowatchdog", id="what contradicts goes"),
        pytest.param("clocksource=hpet", "tsc=nowatchdog", "clocksource=hpet", id="another clock was chosen: it stays"),
        pytest.param("tsc=unstable", "tsc=nowatchdog", "tsc=unstable", id="a counter known to be bad stays known"),
        pytest.param("notsc", "tsc=nowatchdog", "notsc", id="so does one that nobody is to use"),
        pytest.param("tsc=noirqtime", "tsc=nowatchdog", "tsc=noirqtime tsc=nowatchdog", id="tsc= adds up"),
        pytest.param("mce=no_cmci", "mce=ignore_ce", "mce=no_cmci mce=ignore_ce", id="mce= adds up"),
        pytest.param("mce=off", "mce=ignore_ce", "mce=off", id="no machine checks at all are none to ignore"),
        pytest.param("iommu=soft", "iommu=pt", "iommu=soft iommu=pt", id="iommu= adds up"),
        pytest.param("iommu=soft,pt", "iommu=pt", "iommu=soft,pt", id="one of several in a word is there"),
        pytest.param("iommu=nopt", "iommu=pt", "iommu=pt", id="but not its opposite"),
        pytest.param("nohz=off", "nohz_full=2-3", "nohz_full=2-3", id="no tick stops with nohz=off"),
        pytest.param("nohz=0 quiet", "nohz_full=2-3", "quiet nohz_full=2-3", id="0 is off too"),
        pytest.param("nohz=n highres=0", "nohz_full=2-3", "nohz_full=2-3", id="and n"),
        pytest.param('"nohz=off"', "nohz_full=2-3", "nohz_full=2-3", id="and off in quotes"),
        pytest.param("nohz=on", "nohz_full=2-3", "nohz=on nohz_full=2-3", id="on is not"),
        pytest.param("rcu_nocbs=1", "rcu_nocbs=2-3", "rcu_nocbs=1-3", id="callbacks: both lists together"),
        pytest.param("rcu_nocbs=all", "rcu_nocbs=2-3", "rcu_nocbs=all", id="all CPUs hold these two"),
        pytest.param("rcu_nocbs", "rcu_nocbs=2-3", "rcu_nocbs=2-3", id="a bare word names no CPU"),
        pytest.param("rcu_nocbs=1 rcu-nocbs=2", "rcu_nocbs=3", "rcu_nocbs=1-3", id="several are taken together"),
        pytest.param("isolcpus=1", "isolcpus=managed_irq,3", "isolcpus=managed_irq,domain,1,3", id="bare means domain"),
        pytest.param("isolcpus=1-N", "isolcpus=3", "isolcpus=1-N", id="N is the last CPU"),
        pytest.param("isolcpus=nohz,3", "isolcpus=2", "isolcpus=nohz,2-3", id="flags stay"),
        pytest.param("isolcpus=nohz,3", "isolcpus=nohz,3", "isolcpus=nohz,3", id="the same flags are the same"),
        pytest.param("nohz_full=3", "nohz_full=0,2", "nohz_full=2-3", id="the boot CPU keeps its tick"),
        pytest.param("irqaffinity=0", "irqaffinity=0-1", "irqaffinity=0", id="fewer CPUs for interrupts are as good"),
        pytest.param("irqaffinity=0-3", "irqaffinity=0-1", "irqaffinity=0-1", id="more are not"),
        pytest.param("mitigations=off", "skew_tick=1", "mitigations=off skew_tick=1", id="others' words stay"),
        pytest.param('x="a b" ro', "x=1", "ro x=1", id="a value with blanks is replaced whole"),
        pytest.param("ro", "a=1 b=1 a=1", "ro b=1 a=1", id="a word wanted twice comes once"),
        pytest.param("a=1 a=2", "a=1 a=2", "a=1 a=2", id="several of a name are there in that order"),
        pytest.param("a=2 a=1", "a=1 a=2", "a=1 a=2", id="in another order they are not"),
    ],
)
def test_a_word(facts: Facts, there: str, wanted: str, planned: str) -> None:
    assert str(merge(cmdline.parse(there), wanted.split(), facts).line) == planned


def test_of_two_lists_for_one_tick_the_kernel_would_drop_one_so_they_become_one(facts: Facts) -> None:
    merged = merge(cmdline.parse("isolcpus=nohz,domain,1"), ["nohz_full=2-3"], facts)
    assert str(merged.line) == "isolcpus=domain,1 nohz_full=1-3"


def test_an_existing_list_for_the_tick_stays_equal_to_that_of_isolcpus(facts: Facts) -> None:
    merged = merge(cmdline.parse("isolcpus=nohz,domain,1 nohz_full=1"), ["isolcpus=managed_irq,domain,2-3"], facts)
    assert str(merged.line) == "nohz_full=1-3 isolcpus=managed_irq,domain,1-3"


HUGE = "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512"


@pytest.mark.parametrize("there", ["", "hugepages=4", "hugepagesz=2M hugepages=100", "hugepagesz=2M", HUGE])
def test_a_number_of_huge_pages_stays_behind_its_size(facts: Facts, there: str) -> None:
    assert str(merge(cmdline.parse(f"ro {there}"), HUGE.split(), facts).line) == f"ro {HUGE}"


def test_the_watchdog_of_a_counter_is_kept_if_the_kernel_reads_another_clock(tmp_path: Path) -> None:
    files = {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"}
    root = plant(tmp_path, machine(4) | {"proc/cpuinfo": "vendor_id\t: GenuineIntel"} | files)
    merged = merge(cmdline.parse("ro"), ["tsc=nowatchdog"], Facts(Reader(str(root))))
    assert (merged.add, [row.action for row in merged.rows]) == ((), ["skip"])
    assert "uses the clock hpet" in merged.rows[0].why


def test_a_safeguard_that_stays_is_named(facts: Facts) -> None:
    merged = merge(cmdline.parse("tsc=unstable clocksource=hpet"), ["tsc=nowatchdog"], facts)
    assert (merged.add, merged.drop) == ((), ())
    assert [(row.action, row.wanted) for row in merged.rows] == [("skip", "tsc=nowatchdog")]
    assert "tsc=unstable" in merged.rows[0].why


def test_interrupts_avoid_cpus_that_the_user_had_already_isolated(facts: Facts) -> None:
    merged = merge(cmdline.parse("isolcpus=1"), ["isolcpus=domain,2-3", "irqaffinity=0-1"], facts)
    assert merged.line.words == ("isolcpus=domain,1-3", "irqaffinity=0")


def test_a_line_that_leaves_no_cpu_is_refused_with_the_words_responsible(facts: Facts) -> None:
    with pytest.raises(
        Refused,
        match=r"together with isolcpus=0-1 on the kernel command line, would cover .*, or remove isolcpus=0-1$",
    ):
        merge(cmdline.parse("isolcpus=0-1"), ["isolcpus=2-3"], facts)
    with pytest.raises(Refused, match="together with nohz_full=1-3 on the kernel command line"):
        merge(cmdline.parse("nohz_full=1-3"), ["isolcpus=0"], facts)


def test_every_row_states_the_fate_of_its_parameter_and_the_reason(facts: Facts) -> None:
    merged = merge(cmdline.parse("skew_tick=0 nohz=off rcu_nocbs=2-3 amd"), [*WISH, "amd_pstate=passive"], facts)
    found = {row.parameter: row.action for row in merged.rows}
    wanted = {"isolcpus": "add", "nohz_full": "add", "rcu_nocbs": "keep", "irqaffinity": "add", "skew_tick": "change"}
    assert found == wanted | {"nohz": "drop", "amd_pstate": "skip"}
    assert all(row.why for row in merged.rows)


def test_without_a_tickless_kernel_there_is_no_tick_to_stop(tmp_path: Path) -> None:
    files = {path: text for path, text in machine(4).items() if not path.endswith("nohz_full")}
    merged = merge(cmdline.parse("ro"), WISH, Facts(Reader(str(plant(tmp_path, files)))))
    assert not merged.line.of("nohz_full")
    assert "CONFIG_NO_HZ_FULL" in next(row.why for row in merged.rows if row.action == "skip")


WORDS = ["ro", "quiet", "isolcpus=1", "isolcpus=nohz,1-2", "isolcpus=managed_irq,3", "nohz_full=1", "nohz_full=0-2"]
WORDS += ["rcu_nocbs=all", "rcu_nocbs", "rcu-nocbs=1,3", "irqaffinity=0-3", "irqaffinity=3", "skew_tick=0", "nohz=off"]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=6), st.sets(st.integers(1, 3), min_size=1))
def test_for_any_line_the_merged_one_has_the_requested_words_once_and_merging_is_idempotent(
    facts: Facts, there: list[str], isolated: set[int]
) -> None:
    chosen, rest = cpulist.format(isolated), cpulist.format({0, 1, 2, 3} - isolated)
    wish = [f"isolcpus=managed_irq,domain,{chosen}", f"nohz_full={chosen}", f"rcu_nocbs={chosen}"]
    wish += [f"irqaffinity={rest}", "skew_tick=1"]
    try:
        merged = merge(cmdline.CommandLine(tuple(there)), wish, facts)
    except Refused:
        return
    line = merged.line
    for parameter in ("isolcpus", "nohz_full", "rcu_nocbs", "skew_tick"):
        assert len(line.of(parameter)) == 1, line
    lists = {p: cpus(cmdline.value(line.of(p)[0]) or "", facts) for p in ("isolcpus", "nohz_full", "rcu_nocbs")}
    assert all(isolated <= found for _, found in lists.values())
    assert 0 not in lists["nohz_full"][1]
    assert "nohz" not in lists["isolcpus"][0]
    taken = lists["isolcpus"][1] | lists["nohz_full"][1]
    assert {0, 1, 2, 3} - taken
    for word in line.of("irqaffinity"):
        assert not cpus(cmdline.value(word) or "", facts)[1] & taken
    again = merge(line, wish, facts)
    assert again.line == line
    assert (again.add, again.drop) == ((), ())

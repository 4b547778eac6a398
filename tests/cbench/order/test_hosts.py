"""Studies on several hosts: the hosts are strata, and pooling them must not decide."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from cbench.order import analyze
from cbench.order.analyze import OrderOptions
from cbench.results import to_json
from cbench.study import orders
from cbench.study.store import StudyStore
from quiet import UsageError
from tests.cbench.study.storing import Value, stored

LEVELS = {"node1": 100.0, "node2": 180.0, "node3": 60.0, "node4": 130.0, "node5": 90.0}


def on(level: float, slower: float = 0.0) -> Value:
    """Values of a host, whose first test is so much slower (%) where it is not the first of its run."""

    def value(test: int, position: int, _before: int | None, draw: random.Random) -> float:
        return level * (draw.gauss(1, 0.01) + (slower / 100 if test == 0 and position else 0))

    return value


def stores(folder: Path, slower: float = 0.0, **other: float) -> list[Path]:
    return [
        stored(folder / f"{host}.db", 4, "interleaved", 15, on(level, other.get(host, slower)), host=host)
        for host, level in LEVELS.items()
    ]


def analyzed(paths: list[Path], **options: Any) -> Any:
    return to_json(analyze.analyzed(OrderOptions(str(paths[0]), more=[str(path) for path in paths[1:]], **options)))


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return analyzed(stores(tmp_path_factory.mktemp("slow"), 1.5))


def test_an_effect_within_hosts_is_found_where_pooled_ranks_drown_it(slow: Any) -> None:
    assert slow["order_matters"] is True
    assert slow["verdict"][0].startswith("order matters: 1 of 4 tests differs between fixed and random order: a (")
    assert slow["hosts"]["pooled_significant"] == 0
    assert slow["tests"]["a"]["hosts"]["strata"] == 5
    assert slow["tests"]["a"]["p_decides"] == slow["tests"]["a"]["hosts"]["p"]
    assert slow["tests"]["a"]["hosts"]["p_pooled"] > 0.05


def test_the_first_lines_say_that_hosts_are_strata(slow: Any) -> None:
    assert slow["verdict"][1].startswith("5 hosts, each a separate stratum: van Elteren's test of signed ranks decides")


def test_differences_between_the_hosts_are_reported(slow: Any) -> None:
    (fact,) = slow["hosts"]["passports"]
    assert fact["fact"] == "cpu"
    assert fact["values"]["CPU of node1"] == ["node1"]
    assert any(line.startswith("beware: the hosts differ: cpu CPU of node1 (node1)") for line in slow["verdict"])


def test_each_host_has_its_own_medians_and_interval(slow: Any) -> None:
    hosts = slow["tests"]["a"]["hosts"]["hosts"]
    assert [each["host"] for each in hosts] == list(LEVELS)
    for each in hosts:
        assert each["median_fixed"] == pytest.approx(LEVELS[each["host"]], rel=0.02)
        assert each["n_fixed"] == each["n_random"] == 15


def test_hosts_of_different_speed_without_an_effect_cause_no_alarm_and_no_drift(tmp_path: Path) -> None:
    result = analyzed(stores(tmp_path))
    assert result["order_matters"] is False
    assert not any(claim["named"] for claim in result["claims"])


def test_one_host_with_another_effect_is_named(tmp_path: Path) -> None:
    result = analyzed(stores(tmp_path, node3=8))
    claims = {claim["family"]: claim["named"] for claim in result["claims"]}
    assert claims["interaction"] == ["a"]
    assert claims["unlike"][0].startswith("node3 (a: a different effect of the order, p = ")


def test_pairs_are_made_within_hosts_only(tmp_path: Path) -> None:
    """One host has an odd number of runs begun, so that its last run has no partner on it."""
    paths = stores(tmp_path)
    with StudyStore.open(paths[0], writing=True) as store:
        store._connection.execute("DELETE FROM study_trial WHERE run = 29")
    assert analyzed(paths)["tests"]["a"]["hosts"]["pairs"] == 74


def test_the_unpaired_comparison_is_stratified_too(tmp_path: Path) -> None:
    result = analyzed(stores(tmp_path, 1.5), unpaired=True)
    assert result["tests"]["a"]["significant"]
    assert result["verdict"][1].startswith("5 hosts, each a separate stratum: van Elteren's test decides")


def test_designs_without_a_fixed_order_compare_hosts_at_one_level(tmp_path: Path) -> None:
    paths = [
        stored(tmp_path / f"{host}.db", 4, "random", 20, on(level, 5), host=host) for host, level in LEVELS.items()
    ]
    result = analyzed(paths)
    assert result["verdict"][0].startswith("order matters: 1 of 4 tests depends on its position")
    assert "5 hosts: each host's values are aligned to one level before they are compared" in result["verdict"]


def test_two_hosts_draw_different_orders_from_one_seed_and_the_same_ones_again(tmp_path: Path) -> None:
    drawn = []
    for name, host in (("a", "node1"), ("b", "node2"), ("c", "node1")):
        with StudyStore.open(stored(tmp_path / f"{name}.db", 6, "interleaved", 8, on(1), host=host)) as store:
            drawn.append([run.order for run in store.runs() if run.kind == "random"])
    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2]
    assert orders.seed_on("", 5) == 5


def test_a_store_given_twice_or_belonging_to_another_study_is_refused(tmp_path: Path) -> None:
    paths = stores(tmp_path)
    with pytest.raises(UsageError, match="the same store as"):
        analyzed([paths[0], paths[0]])
    other = stored(tmp_path / "other.db", 3, "interleaved", 15, on(1), host="node9")
    with pytest.raises(UsageError, match="its tests differ from those of"):
        analyzed([paths[0], other])
    table = tmp_path / "table.csv"
    table.write_text("test,order,value\n")
    with pytest.raises(UsageError, match="not a store; several files must be the stores"):
        analyzed([paths[0], table])


def test_stores_with_the_same_host_name_are_distinguished_by_their_files(tmp_path: Path) -> None:
    paths = [stored(tmp_path / f"{name}.db", 2, "interleaved", 8, on(1), host="same") for name in ("a", "b")]
    assert analyzed(paths)["hosts"]["names"] == ["same (a)", "same (b)"]


def test_a_column_of_hosts_makes_strata_and_one_host_changes_nothing(tmp_path: Path) -> None:
    def table(name: str, hosts: list[str], column: bool) -> Path:
        draw = random.Random(1)
        lines = ["test,order,run,position,value" + (",host" if column else "")]
        for host in hosts:
            for run in range(20):
                order = "random" if run % 2 else "fixed"
                end = f",{host}" if column else ""
                lines.append(f"t,{order},{run},0,{LEVELS[host] * draw.gauss(1, 0.01):.9g}{end}")
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    assert analyzed([table("two.csv", ["node1", "node2"], True)])["hosts"]["names"] == ["node1", "node2"]
    assert analyzed([table("one.csv", ["node1"], True)]) == analyzed([table("none.csv", ["node1"], False)])


def test_the_published_definitions_pool_the_hosts_and_say_so(tmp_path: Path) -> None:
    result = analyzed(stores(tmp_path), as_published=True)
    assert "hosts" not in result
    assert "beware: the trials of 5 hosts are pooled, as in OrderSage: node1, node2, node3" in "; ".join(
        result["verdict"]
    )

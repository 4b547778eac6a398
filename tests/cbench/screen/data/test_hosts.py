"""One screen on several hosts: each host's blocks are its own, and hosts are brought to one level."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cbench.screen.config import treatments
from cbench.screen.config.file import parse
from cbench.screen.config.plan import Planned
from cbench.screen.data import hosts
from cbench.study import orders
from cbench.study.records import Header
from cbench.study.store import StudyStore
from quiet import UsageError
from tests.cbench.screen.running import experiment, factor, screen, written

SIZE = factor("size", {"small": "environment = { S = '2' }", "large": "environment = { S = '3' }"})
WAY = factor("way", {"a": "environment = { W = '0' }", "b": "environment = { W = '1' }"})


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two hosts, the second one ten times as slow, whose noise is the trial's process number."""
    paths = []
    for name, scale in (("fast", 1), ("slow", 10)):
        folder = tmp_path_factory.mktemp(name)
        command = f"echo $(( {scale} * (1000 * S + $$ % 50) ))"
        written(folder, experiment(SIZE, WAY, command=command, head="iterations = 8\nseed = 5"))
        done = screen("run", "e.toml", "-o", f"{name}.db", "--host", name, folder=folder)
        assert done.returncode == 0, done.stderr
        paths.append(folder / f"{name}.db")
    return paths


def test_each_host_has_batches_of_its_own_at_one_level(stores: list[Path]) -> None:
    data = hosts.read(stores)
    assert len(data.batches) == 2
    (series,) = data.series
    first, second = (series.value[series.batch == batch] for batch in (0, 1))
    assert first.size == second.size == 32
    assert np.median(first) == pytest.approx(np.median(second))
    assert np.unique(series.sequence).size == 64


@pytest.mark.slow
def test_each_host_draws_orders_of_its_own_from_the_seed_and_its_name(stores: list[Path]) -> None:
    drawn = []
    for path in stores:
        with StudyStore.open(path, kind="screen") as store:
            header, runs = store.header(), store.runs()
        own = replace(parse(header.source, "e.toml", header.folder), seed=orders.seed_on(path.stem, 5))
        assert [run.order for run in runs] == [run.order for run in treatments.runs(own, treatments.treatments(own))]
        assert (header.seed, header.host["hostname"]) == (5, path.stem)
        drawn.append([run.order for run in runs])
    assert drawn[0] != drawn[1]


def test_blocks_of_both_hosts_decide(stores: list[Path]) -> None:
    done = screen("analyze", *stores, "--subsamples", "0", "--json", folder=stores[0].parent)
    assert done.returncode == 1, done.stderr
    (response,) = json.loads(done.stdout)["responses"].values()
    assert response["blocks_used"] == 16
    assert [each["host"] for each in response["hosts"]["effects"][0]["hosts"]] == ["fast", "slow"]
    assert response["hosts"]["levels"][1]["median"] > 5 * response["hosts"]["levels"][0]["median"]


def test_a_duplicate_store_and_another_screen_are_refused(stores: list[Path], tmp_path: Path) -> None:
    same = shutil.copy(stores[0], tmp_path / "same.db")
    with pytest.raises(UsageError, match="is the same experiment as"):
        hosts.read([stores[0], Path(same)])
    written(tmp_path, experiment(SIZE, command="echo $S", head="iterations = 2\nseed = 5"))
    assert screen("run", "e.toml", folder=tmp_path).returncode == 0
    with pytest.raises(UsageError, match="has different factors or treatments"):
        hosts.read([stores[0], tmp_path / "e.db"])


def test_stores_without_a_trial_are_refused(tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.db"
        text = experiment(SIZE)
        parsed = parse(text, "e.toml", "/")
        drawn = treatments.treatments(parsed)
        names = tuple(each.name for each in drawn)
        header = Header("screen", "e", 1, text, "/", names, {"hostname": name, "screen": Planned(parsed).stored()})
        StudyStore.create(path, header, treatments.runs(parsed, drawn)).close()
        paths.append(path)
    with pytest.raises(UsageError, match=r"one\.db: contains no values; neither do the other stores"):
        hosts.read(paths)

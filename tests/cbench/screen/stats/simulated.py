"""Data of the shape of Technical Note 1855's main experiment: os x fp x prf, four responses, a batch for each os."""

from __future__ import annotations

from itertools import product

import numpy as np

from cbench.screen.data.data import Data, Filter, ResponseSeries
from cbench.screen.design.factorial import Factor

CELLS = list(product((0, 1), (0, 1), (0, 1, 2)))


def technical_note(iterations: int, seed: int = 1) -> Data:
    """Known effects: prf 0.19 s at its first level and 0.10 s at its second, fp 0.03 s, os 0.05 s; long-tailed noise;
    sys depends on nothing; samples are not to be had without a profiler.
    """
    draw = np.random.default_rng(seed)
    rows = []
    for os in (0, 1):
        mine = [number for number, cell in enumerate(CELLS) if cell[0] == os]
        orders = draw.permuted(np.tile(mine, (iterations, 1)), axis=1)
        size = orders.size
        rows.append((np.full(size, os), np.repeat(np.arange(iterations), 6), orders))
    batch, iteration, treatment = (
        np.concatenate([each[at].ravel() for each in rows]).astype(np.int32) for at in range(3)
    )
    _, fp, prf = np.array(CELLS).T[:, treatment]
    n = treatment.size
    noise = draw.gamma(2, 0.01, n) + np.where(draw.random(n) < 0.01, 0.3, 0)
    elapsed = 7.4 + 0.05 * batch + 0.03 * fp + np.array([0, 0.19, 0.1])[prf] + 0.02 * fp * (prf == 2) + noise
    system = 0.03 + draw.gamma(2, 0.004, n)
    values = {
        "elapsed": np.round(elapsed, 3),
        "user": np.round(elapsed - 0.05, 3),
        "sys": np.round(system, 3),
        "samples": np.round(elapsed * 2992.5),
    }
    series = []
    for name, value in values.items():
        keep = prf > 0 if name == "samples" else np.ones(n, dtype=bool)
        lacking = frozenset(at for at, cell in enumerate(CELLS) if cell[2] == 0) if name == "samples" else frozenset()
        columns = [each[keep] for each in (treatment, iteration, batch, np.arange(n, dtype=np.int32), value)]
        series.append(ResponseSeries(name, "", name, "" if name == "samples" else "s", "lower", *columns, lacking))
    filters = (
        Filter("first", "minus fp=0 prf=2", np.array([cell[1:] != (0, 2) for cell in CELLS])),
        Filter("second", "minus prf=2", np.array([cell[2] != 2 for cell in CELLS])),
        Filter("third", "only fp=0 prf=1, fp=1 prf=2", np.array([cell[1:] in ((0, 1), (1, 2)) for cell in CELLS])),
    )
    return Data(
        "TN 1855, simulated",
        (Factor("os", ("0", "1"), hard=True), Factor("fp", ("0", "1")), Factor("prf", ("0", "1", "2"))),
        tuple(CELLS),
        tuple(series),
        ("0", "1"),
        {number: "no frame pointers to follow" for number, cell in enumerate(CELLS) if cell[1:] == (0, 2)},
        filters,
    )

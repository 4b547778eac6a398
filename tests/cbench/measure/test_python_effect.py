"""Python does not run between two counter reads: a progress bar on a terminal changes no trial."""

from __future__ import annotations

import os
import pty
import random
import sys
from threading import Thread
from typing import Any

import pytest

from cbench.stats.clean import STEPS
from cbench.stats.rank import rank_sum
from tests.cbench.running import measured

pytestmark = pytest.mark.slow

ALPHA = 1e-4  # twice one after the other by chance alone: less than once in ten million times
RUNS = 10  # of each kind; with 8 no order of the shares has so small a probability
TRIALS, PARAMS = 500, ["n=2000"]


def run() -> dict[str, Any]:
    (result,) = measured("hash", trials=TRIALS, params=PARAMS, warmup="20", trace=False)["results"]
    return dict(result)


def run_with_bar(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], bytes]:
    """The result with a terminal at stderr, and what was drawn there."""
    ours, theirs = pty.openpty()
    drawn: list[bytes] = []
    reader = Thread(target=lambda: drawn.extend(iter(lambda: _read(ours), b"")))
    reader.start()
    with open(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stderr", terminal)
        result = run()
    reader.join()
    os.close(ours)
    return result, b"".join(drawn)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # EIO: no process has the other side open any more
        return b""


def near(result: dict[str, Any], floor: int) -> float:
    """The share of trials that are clean by the value itself."""
    limit = floor + STEPS * (result["counter"]["quantum"] or 1)
    return sum(value <= limit for value in result["trials"]) / len(result["trials"])


def difference(monkeypatch: pytest.MonkeyPatch) -> str:
    """What the bar has changed, if it is more than chance."""
    order = [True, False] * RUNS
    random.Random(1).shuffle(order)  # so that neither kind gets the quieter moments
    results: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for bar in order:
        if bar:
            result, drawn = run_with_bar(monkeypatch)
            assert b"\x1b[" in drawn, drawn
            assert b"hash" in drawn, drawn
        else:
            result = run()
        results[bar].append(result)
    floors = [[each["floor"] or min(each["trials"]) for each in group] for group in results.values()]
    lowest = [min(group) for group in floors]
    quantum = results[True][0]["counter"]["quantum"] or 1
    # On a busy host a neighbor slows the core down by another amount in each run, so the floors of runs of one kind
    # differ too: those of the two kinds may differ by more than two steps only as much as chance explains.
    differ = [max(lowest) - min(lowest) > STEPS * quantum and rank_sum(*floors).p <= ALPHA]
    shares = [[near(each, min(lowest)) for each in group] for group in results.values()]
    differ.append(rank_sum(*shares).p <= ALPHA)
    return f"floors {floors}, shares {shares}" if any(differ) else ""


def test_a_progress_bar_changes_neither_the_floor_nor_the_share_of_clean_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = difference(monkeypatch)
    assert not first or not difference(monkeypatch), first

"""Studies with synthetic results: a store as a finished study leaves it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from cbench.study import orders
from cbench.study.config import parse
from cbench.study.store import Ended, Header, StudyStore
from tests.cbench.study.running import study

Value = Callable[[int, int, int | None, random.Random], float | None]
"""Of a trial: test, position and what ran before it (None: nothing); None where it has failed."""


def stored(path: Path, tests: int, design: str, repetitions: int, value: Value, head: str = "", host: str = "") -> Path:
    """A study of `tests` commands in a design, each trial with a value; on one of several hosts where it has a name."""
    text = study({chr(97 + i): "x" for i in range(tests)}, f"repetitions = {repetitions}\ndesign = '{design}'\n{head}")
    parsed = parse(text, "s.toml", "/")
    names = tuple(test.name for test in parsed.tests)
    plan = orders.plan(design, tests, repetitions, orders.seed_on(host, parsed.seed))
    facts = {"hostname": host, "cpu": f"CPU of {host}", "kernel": "6.1.0"} if host else {}
    draw = random.Random(f"7{host}" if host else 7)
    with StudyStore.create(path, Header("order", "s", parsed.seed, text, "/", names, facts), plan) as store:
        store._connection.execute("PRAGMA synchronous=OFF")
        for number, run in enumerate(plan):
            store.begin_run(number, {}, {})
            for position, test in enumerate(run.order):
                one = value(test, position, run.order[position - 1] if position else None, draw)
                values = {} if one is None else {"": (one, repr(one))}
                failure = None if values else "exited with 1"
                store.add(Ended(number, position, test, 0, 1, failure, 0, b"", b"", values, {}))
            store.end_run(number)
        store.finish()
    return path
